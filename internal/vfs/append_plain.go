//go:build !linux && !windows

package vfs

import (
	"io/fs"
	"os"
)

func openForAppend(name string, create bool, perm fs.FileMode) (*os.File, error) {
	flags := os.O_RDWR | os.O_APPEND | openFlags | neverWait
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	return os.OpenFile(name, flags, perm)
}
