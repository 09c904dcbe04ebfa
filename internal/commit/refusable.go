package commit

import (
	"errors"
	"io/fs"
	"syscall"
)

// refusable drops the errors with which a system says that this process may not, or this file system
// cannot, change an owner or a mode. What else goes wrong (no space, an I/O error) is an error.
func refusable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}
