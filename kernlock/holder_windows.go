package kernlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/windows"
)

// The holder record lies beside the lock file. Its name does not end in
// .json, lest a scan for state records take it for one; an earlier release
// called it by the second name, which is still read, and removed by the next
// holder.
const (
	sidecarSuffix      = ".holder"
	olderSidecarSuffix = ".holder.json"
	// A record is written here and moved over the sidecar. Only the holder
	// writes it, so one name is enough, and one left by a crash is used again.
	newSidecarSuffix = ".holder.new"
)

// sign writes the holder record. Failure is a warning: the lock is held.
func (l *Lock) sign() {
	l.acquired = time.Now()
	l.f.last = l.h.enc.append(l.f.last[:0], l.acquired, time.Time{}, 0)
	if err := writeSidecar(&l.h.names, l.f.last); err != nil {
		l.warn(err)
		return
	}
	l.signed = true
	if err := removeFile(l.h.names.lock + olderSidecarSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.warn(err)
	}
}

func (l *Lock) warn(err error) {
	l.warning = fmt.Errorf("lock %s: holder not recorded: %w", display.Text(l.h.names.target), err)
}

// signOff writes released_at into this hold's record.
func (l *Lock) signOff(*lockFile) {
	l.f.last = l.h.enc.append(l.f.last[:0], l.acquired, time.Now(), 0)
	if err := writeSidecar(&l.h.names, l.f.last); err != nil {
		l.warn(err)
	}
}

// writeSidecar replaces the sidecar whole.
func writeSidecar(n *names, b []byte) error {
	fresh := n.lock + newSidecarSuffix
	h, err := createFile(fresh, windows.GENERIC_WRITE, windows.CREATE_ALWAYS)
	if err != nil {
		return fmt.Errorf("write holder record: %w", err)
	}
	var m uint32
	err = windows.WriteFile(h, b, &m, nil)
	if err == nil && int(m) < len(b) {
		err = windows.ERROR_DISK_FULL
	}
	if err = errors.Join(err, windows.CloseHandle(h)); err != nil {
		return fmt.Errorf("write holder record: %w", err)
	}
	return replaceFile(fresh, n.lock+sidecarSuffix)
}

// replacePatience is how long a program that has the sidecar open without
// sharing it is borne with: a virus scanner, an editor. What is written is
// advisory, and the holder waits for it, so it is short.
const replacePatience = 50 * time.Millisecond

// replaceFile moves from over to. A sharing violation, or a deletion under
// way, passes; a real denial is reported at once.
func replaceFile(from, to string) error {
	f, err := windows.UTF16PtrFromString(longPath(from))
	if err != nil {
		return err
	}
	t, err := windows.UTF16PtrFromString(longPath(to))
	if err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := windows.MoveFileEx(f, t, windows.MOVEFILE_REPLACE_EXISTING)
		if err == nil {
			return nil
		}
		passing := errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
			errors.Is(err, windows.ERROR_ACCESS_DENIED) && deletePending(to)
		if !passing || time.Since(began) > replacePatience {
			return fmt.Errorf("replace holder record: %w", err)
		}
	}
}

// deletePending says whether path is a file that somebody has deleted and not
// yet closed.
func deletePending(path string) bool {
	h, err := createFile(path, windows.GENERIC_READ, windows.OPEN_EXISTING)
	if err == nil {
		_ = windows.CloseHandle(h)
	}
	return errors.Is(err, errDeletePending)
}

func removeFile(path string) error {
	p, err := windows.UTF16PtrFromString(longPath(path))
	if err != nil {
		return err
	}
	return windows.DeleteFile(p)
}

// holder reads the newest valid record of both names.
func (f *lockFile) holder(n *names) ([]byte, error) { return readSidecars(n), nil }

// sample is the record as it is now, to be compared with a later one.
func (f *lockFile) sample(n *names) []byte { return readSidecars(n) }

// readSidecars returns the valid record acquired last; without a valid one,
// what is there, to be called unreadable; nil when nothing is.
func readSidecars(n *names) []byte {
	var best, damaged []byte
	var when time.Time
	for _, suffix := range []string{sidecarSuffix, olderSidecarSuffix} {
		h, err := createFile(n.lock+suffix, windows.GENERIC_READ, windows.OPEN_EXISTING)
		if err != nil {
			continue
		}
		b, err := readHandle(h, maxRecord)
		_ = windows.CloseHandle(h)
		if err != nil || len(b) == 0 {
			continue
		}
		damaged = b
		if r, err := decode(b); err == nil && (best == nil || r.AcquiredAt.After(when)) {
			best, when = b, r.AcquiredAt
		}
	}
	if best != nil {
		return best
	}
	return damaged
}

// readHolder reads n's holder record without a lock file that is open. There
// is none when it returns an error that matches fs.ErrNotExist.
func readHolder(n *names) ([]byte, error) {
	h, err := createFile(n.lock, windows.GENERIC_READ, windows.OPEN_EXISTING)
	switch {
	case errors.Is(err, errDeletePending):
		return nil, fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, openError(n, err)
	}
	// What lies in the lock file itself is not ours, since we write nothing
	// there: the other family's lock, or somebody's data. It cannot be read
	// while a holder has byte 0.
	inside, rerr := readHandle(h, maxRecord)
	_ = windows.CloseHandle(h)
	if rerr == nil && isLockFile(inside) {
		return inside, nil
	}
	if beside := readSidecars(n); beside != nil {
		return beside, nil
	}
	return inside, nil
}

// openPlain opens a file for reading; others may go on writing, renaming and
// deleting it.
func openPlain(path string) (*os.File, error) {
	h, err := createFile(path, windows.GENERIC_READ, windows.OPEN_EXISTING)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), filepath.Base(path)), nil
}

// Inherit is not offered by Windows: a byte lock belongs to the process that
// took it. Run the command in a job that ends with this process instead.
func (l *Lock) Inherit() error {
	return fmt.Errorf("inherit lock %s: %w", display.Text(l.h.names.target), ErrUnsupported)
}

// Descriptor is the lock file's handle.
func (l *Lock) Descriptor() uintptr { return uintptr(l.f.handle) }

func (l *Lock) releaseInherited() error { return nil }
