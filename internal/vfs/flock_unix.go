//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// TryFlock implements Flocker with flock(2). Closing lets the lock go.
func (osFS) TryFlock(name string) (release func() error, held bool, err error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	for {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return func() error { return unix.Close(fd) }, false, nil
	}
	unix.Close(fd)
	if err == unix.EWOULDBLOCK {
		return nil, true, nil
	}
	return nil, false, &fs.PathError{Op: "flock", Path: name, Err: err}
}
