package vfs

import (
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// OpenAppend implements Appender.
func (osFS) OpenAppend(name string, create bool, perm fs.FileMode) (AppendFile, error) {
	flags := unix.O_RDWR | unix.O_APPEND | unix.O_NONBLOCK | unix.O_NOCTTY
	if create {
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	f, err := open("open", name, flags, perm)
	if err != nil {
		return nil, err
	}
	return f.(*osFile), nil
}

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		var n int
		err := again(func() (err error) {
			n, err = unix.Pread(f.fd, p[done:], off+int64(done))
			return err
		})
		if err != nil {
			return done, pathErr("read", f.name, err)
		}
		if n == 0 {
			return done, io.EOF
		}
		done += n
	}
	return done, nil
}

func (f *osFile) SyncData() error {
	return pathErr("sync", f.name, again(func() error { return unix.Fdatasync(f.fd) }))
}

func (f *osFile) Truncate(size int64) error {
	return pathErr("truncate", f.name, again(func() error { return unix.Ftruncate(f.fd, size) }))
}
