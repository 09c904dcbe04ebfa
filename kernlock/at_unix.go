//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

func (f *lockFile) atByStat(path string) (bool, error) {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case err == nil:
		return uint64(st.Dev) == f.dev && st.Ino == f.ino, nil //nolint:unconvert // the type of Dev differs by system
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
