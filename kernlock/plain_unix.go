//go:build unix && !aix && !solaris

package kernlock

import (
	"os"

	"golang.org/x/sys/unix"
)

// openPlain opens a plain file for reading, and nothing else.
func openPlain(path string) (*os.File, error) {
	fd, err := openRegular(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
