//go:build unix && !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	openFlags   = unix.O_NOFOLLOW
	neverWait   = unix.O_NONBLOCK | unix.O_NOCTTY
	foldersSync = true
)

// patiently is for systems on which another program's use of a file makes calls fail for a moment.
func patiently(f func() error) error { return f() }

func openForRead(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// remove unlinks; os.Remove would go on to remove an empty folder.
func remove(name string) error {
	for {
		err := unix.Unlink(name)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &fs.PathError{Op: "remove", Path: name, Err: err}
		}
	}
}

func syncUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

func infoOf(fi fs.FileInfo) Info {
	info := Info{Mode: fi.Mode(), Size: fi.Size(), ModTime: fi.ModTime(), UID: -1, GID: -1}
	fillSys(&info, fi.Sys())
	return info
}
