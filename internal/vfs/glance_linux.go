package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Glance implements Glancer.
func (fsys osFS) Glance(name string) (Info, error) {
	const want = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_SIZE | unix.STATX_INO
	var st unix.Statx_t
	err := again(func() error { return unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, want, &st) })
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), err == nil && st.Mask&want != want:
		return fsys.Lstat(name) // a sandbox or a file system that does not know the call
	case err != nil:
		return Info{}, pathErr("statx", name, err)
	}
	return Info{
		Mode: modeOf(uint32(st.Mode)), Size: int64(st.Size),
		Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino,
	}, nil
}
