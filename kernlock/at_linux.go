package kernlock

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// at says whether path still names this file. It asks for the inode number
// and not, as stat(2) does, for the times: a file whose times were asked for
// has to store finer ones at its next write, which costs a holder that writes
// its record as much as the lock does.
func (f *lockFile) at(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &st)
	switch {
	case err == nil:
		return unix.Mkdev(st.Dev_major, st.Dev_minor) == f.dev && st.Ino == f.ino, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return f.atByStat(path) // a sandbox that does not know the call
	}
	return false, err
}
