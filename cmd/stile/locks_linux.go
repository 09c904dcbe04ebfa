package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func setOFD(f *os.File) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Len: 1})
}
