package vfs

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	foldersSync = true
	// openQuietly: never wait for a FIFO's writer, never take a terminal.
	openQuietly = unix.O_NONBLOCK | unix.O_NOCTTY
)

func patientlyIn(f func() error) error { return f() }

func syncUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

func infoOfFile(fi fs.FileInfo) Info {
	info := Info{Mode: fi.Mode(), Size: fi.Size(), ModTime: fi.ModTime(), UID: -1, GID: -1}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		info.Dev, info.Ino = uint64(st.Dev), st.Ino
		info.UID, info.GID = int(st.Uid), int(st.Gid)
	}
	return info
}
