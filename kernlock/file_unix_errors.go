//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"fmt"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/unix"
)

// openError gives what open(2) says its own name. ENOSPC, EROFS, EACCES,
// EMFILE and the rest stay themselves.
func openError(n *names, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return badLockFile(n, "it is a symbolic link")
	case errors.Is(err, unix.EISDIR):
		return badLockFile(n, "it is a folder")
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return badLockFile(n, "it is a FIFO, socket or device")
	case errors.Is(err, unix.ENAMETOOLONG):
		return fmt.Errorf("open lock file %s: %w: %w", display.Text(n.lock), ErrNameTooLong, err)
	}
	return fmt.Errorf("open lock file %s: %w", display.Text(n.lock), err)
}

func badLockFile(n *names, why string) error {
	return fmt.Errorf("lock file %s: %w: %s", display.Text(n.lock), ErrBadLockFile, why)
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "a folder"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// lockError tells a filesystem without flock from one that is out of locks.
// Neither is ever taken for a held or a free lock.
func lockError(err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTTY):
		return fmt.Errorf("%w: flock: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("flock: %w", err)
}
