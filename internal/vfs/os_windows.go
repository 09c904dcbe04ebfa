package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const (
	openFlags   = 0
	foldersSync = false
)

// patience is how long a call is repeated while another program (a virus scanner, an editor, an
// indexer) has the file open in a way that forbids it.
const patience = 2 * time.Second

// patiently repeats f while its error says that the file is in use or being deleted. Access denied
// is both a name whose deletion is pending and a real refusal; only the first goes away, and it does
// so within moments, so it gets a tenth of the time.
func patiently(f func() error) error {
	start := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := f()
		var limit time.Duration
		switch {
		case errors.Is(err, windows.ERROR_SHARING_VIOLATION), errors.Is(err, windows.ERROR_LOCK_VIOLATION):
			limit = patience
		case errors.Is(err, windows.ERROR_DELETE_PENDING):
			limit = patience
		case errors.Is(err, windows.ERROR_ACCESS_DENIED):
			limit = patience / 10
		}
		if err == nil || time.Since(start)+wait > limit {
			return err
		}
		time.Sleep(wait)
	}
}

// openForRead shares deletion, so that our reading never makes another process's rename fail.
func openForRead(name string) (*os.File, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	h, err := windows.CreateFile(p, windows.GENERIC_READ,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

// remove deletes a file; os.Remove would go on to remove an empty folder.
func remove(name string) error {
	p, err := windows.UTF16PtrFromString(name)
	if err == nil {
		err = windows.DeleteFile(p)
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func syncUnsupported(error) bool { return false }

func infoOf(fi fs.FileInfo) Info {
	return Info{Mode: fi.Mode(), Size: fi.Size(), ModTime: fi.ModTime(), UID: -1, GID: -1}
}
