//go:build !linux && !windows && !darwin && !freebsd && !openbsd

package proc

import (
	"errors"
	"fmt"
)

// FilesystemLocal cannot tell on this system: no filesystem is known to be local.
func FilesystemLocal(path string) (local bool, fstype string, err error) {
	return false, "", fmt.Errorf("look at filesystem of %q: %w", path, errors.ErrUnsupported)
}
