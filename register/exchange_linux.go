package register

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange puts a folder in another's place, and that one in its. File systems that cannot (FUSE among them) get
// two renames.
func exchange(tree, dir string) error {
	err := unix.Renameat2(unix.AT_FDCWD, tree, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return displace(tree, dir)
	}
	return err
}
