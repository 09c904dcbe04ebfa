package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openForAppend shares deletion, so that holding the file open never makes another process's rename
// fail. With the right to append and none to write, the system itself puts every write at the end.
func openForAppend(name string, create bool, _ fs.FileMode) (*os.File, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	how := uint32(windows.OPEN_EXISTING)
	if create {
		how = windows.CREATE_NEW
	}
	h, err := windows.CreateFile(p, windows.GENERIC_READ|windows.FILE_APPEND_DATA|windows.SYNCHRONIZE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, how,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

// Truncate needs the right to write, which openForAppend does not ask for.
func (f osFile) Truncate(int64) error {
	return &fs.PathError{Op: "truncate", Path: f.Name(), Err: errors.ErrUnsupported}
}
