package register

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange puts a folder in another's place, and that one in its. File systems that cannot get two renames.
func exchange(tree, dir string) error {
	err := unix.RenamexNp(tree, dir, unix.RENAME_SWAP)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return displace(tree, dir)
	}
	return err
}
