//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock of the kind named, or says that it is held.
// It is for doctor, which wants to know what the system does and not what
// package kernlock makes of it.
func tryLock(f *os.File, kind string) (bool, error) {
	var err error
	switch kind {
	case "flock":
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	case "ofd":
		err = setOFD(f)
	default:
		return false, usagef("there is no lock %q", kind)
	}
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func tryFolderSync(dir string) (bool, string) {
	d, err := os.Open(dir)
	if err != nil {
		return false, err.Error()
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return false, err.Error()
	}
	return true, "answers"
}

func openShared(name string) (io.ReadCloser, error) { return os.Open(name) }
