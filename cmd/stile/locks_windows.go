package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

func tryLock(f *os.File, kind string) (bool, error) {
	if kind != "flock" {
		return false, errors.ErrUnsupported
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func tryFolderSync(string) (bool, string) {
	return true, "not needed: NTFS keeps names in its journal"
}

// openShared opens as our own readers do: so that the file can be replaced.
func openShared(name string) (io.ReadCloser, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(p, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), name), nil
}
