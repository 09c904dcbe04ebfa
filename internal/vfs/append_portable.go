//go:build !linux

package vfs

import (
	"io/fs"
	"os"
)

// OpenAppend implements Appender.
func (osFS) OpenAppend(name string, create bool, perm fs.FileMode) (AppendFile, error) {
	var f *os.File
	err := patiently(func() (err error) {
		f, err = openForAppend(name, create, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// SyncData syncs all there is: not every system tells data from the rest.
func (f osFile) SyncData() error { return f.Sync() }
