package kernlock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/windows"
)

// lockFile is one open handle of a lock file. Two of them exclude each
// other, in one process as in two: Windows counts byte locks by handle.
//
// The lock is byte 0, which need not exist. Nothing is ever written into the
// file, since a locked byte cannot be read through another handle: the holder
// record lies in a file beside it (holder_windows.go).
type lockFile struct {
	handle    windows.Handle
	volume    uint32
	index     uint64
	queueable bool
	bare      bool
	last      []byte
}

// shareAll lets others open, write, rename and delete what we have open: a
// reader must never make a writer fail.
const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// deletePatience is how long a file may take to go that somebody has deleted
// and not yet closed.
const deletePatience = 500 * time.Millisecond

// openLockFile opens n's lock file, making it when it is not there.
func openLockFile(n *names, o *Options) (*lockFile, error) {
	access := uint32(windows.GENERIC_READ | windows.GENERIC_WRITE)
	began := time.Now()
	for {
		h, err := createFile(n.lock, access, windows.OPEN_ALWAYS)
		switch {
		case err == nil:
			f, err := newLockFile(h, n)
			if err != nil {
				_ = windows.CloseHandle(h)
			}
			return f, err
		case errors.Is(err, errDeletePending) && time.Since(began) < deletePatience:
			time.Sleep(time.Millisecond)
			continue
		case errors.Is(err, windows.ERROR_ACCESS_DENIED) && o.Shared && access != windows.GENERIC_READ:
			access = windows.GENERIC_READ
			continue
		}
		return nil, openError(n, err)
	}
}

// errDeletePending is ERROR_ACCESS_DENIED for a file that is going away.
var errDeletePending = errors.New("file is being deleted")

var rtlGetLastNtStatus = windows.NewLazySystemDLL("ntdll.dll").NewProc("RtlGetLastNtStatus")

// createFile opens path without following a link. It tells a file that is
// about to go from one that we may not open, which Win32 reports alike.
func createFile(path string, access, disposition uint32) (windows.Handle, error) {
	p, err := windows.UTF16PtrFromString(longPath(path))
	if err != nil {
		return windows.InvalidHandle, err
	}
	// The last status is the thread's own.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, err := windows.CreateFile(p, access, shareAll, nil, disposition,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) && rtlGetLastNtStatus.Find() == nil {
		status, _, _ := rtlGetLastNtStatus.Call()
		if windows.NTStatus(status) == windows.STATUS_DELETE_PENDING {
			return h, errDeletePending
		}
	}
	return h, err
}

func newLockFile(h windows.Handle, n *names) (*lockFile, error) {
	var info windows.ByHandleFileInformation
	if t, err := windows.GetFileType(h); err == nil && t != windows.FILE_TYPE_DISK {
		return nil, badLockFile(n, "it is a pipe or device")
	}
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return nil, fmt.Errorf("stat lock file %s: %w", display.Text(n.lock), err)
	}
	switch {
	case info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0:
		return nil, badLockFile(n, "it is a folder")
	case info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		return nil, badLockFile(n, "it is a link or another reparse point")
	case info.NumberOfLinks > 1:
		return nil, badLockFile(n, fmt.Sprintf("it has %d hard links", info.NumberOfLinks))
	}
	f := &lockFile{handle: h, volume: info.VolumeSerialNumber,
		index: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}
	// A lock of the other family is not held by a byte lock, so it can be
	// read; a byte lock in the way means that it is one of ours.
	if b, err := readHandle(h, maxRecord); err == nil && isLockFile(b) {
		return nil, fmt.Errorf("lock %s: %w", display.Text(n.lock), ErrOtherFamily)
	}
	return f, nil
}

// try takes the lock if it is free.
func (f *lockFile) try(shared bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	var at windows.Overlapped // byte 0
	switch err := windows.LockFileEx(f.handle, flags, 0, 1, 0, &at); {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	case errors.Is(err, windows.ERROR_NOT_SUPPORTED), errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED),
		errors.Is(err, windows.ERROR_INVALID_FUNCTION):
		return false, fmt.Errorf("%w: LockFileEx: %w", ErrUnsupported, err)
	default:
		return false, fmt.Errorf("LockFileEx: %w", err)
	}
}

func (f *lockFile) unlock() error {
	var at windows.Overlapped
	return windows.UnlockFileEx(f.handle, 0, 1, 0, &at)
}

func (f *lockFile) close() error { return windows.CloseHandle(f.handle) }

// adopt does nothing: a new file inherits its folder's access list, as the
// target did.
func (f *lockFile) adopt(*names, bool) {}

// at says whether path still names this file.
func (f *lockFile) at(path string) (bool, error) {
	h, err := createFile(path, 0, windows.OPEN_EXISTING)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errDeletePending):
		return false, nil
	case err != nil:
		return false, err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return false, err
	}
	return info.VolumeSerialNumber == f.volume &&
		uint64(info.FileIndexHigh)<<32|uint64(info.FileIndexLow) == f.index, nil
}

// readLockedByte says whether byte 0 of path is locked, by trying to read it.
func readLockedByte(path string) KernelState {
	h, err := createFile(path, windows.GENERIC_READ, windows.OPEN_EXISTING)
	if err != nil {
		return KernelUnknown
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var b [1]byte
	var n uint32
	switch err := windows.ReadFile(h, b[:], &n, nil); {
	case err == nil, errors.Is(err, windows.ERROR_HANDLE_EOF):
		// A shared lock lets others read: that nothing refused is no proof.
		return KernelUnknown
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return KernelHeld
	}
	return KernelUnknown
}

// readHandle reads up to most bytes from the start of h.
func readHandle(h windows.Handle, most int) ([]byte, error) {
	b := make([]byte, most)
	n := 0
	for n < most {
		var m uint32
		at := windows.Overlapped{Offset: uint32(n)}
		err := windows.ReadFile(h, b[n:], &m, &at)
		if errors.Is(err, windows.ERROR_HANDLE_EOF) || err == nil && m == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		n += int(m)
	}
	return b[:n], nil
}

// openError gives what CreateFile says its own name.
func openError(n *names, err error) error {
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		p, perr := windows.UTF16PtrFromString(longPath(n.lock))
		if perr == nil {
			if a, aerr := windows.GetFileAttributes(p); aerr == nil && a&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
				return badLockFile(n, "it is a folder")
			}
		}
	}
	return fmt.Errorf("open lock file %s: %w", display.Text(n.lock), err)
}

func badLockFile(n *names, why string) error {
	return fmt.Errorf("lock file %s: %w: %s", display.Text(n.lock), ErrBadLockFile, why)
}
