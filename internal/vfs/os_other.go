//go:build !unix && !windows

package vfs

import (
	"io/fs"
	"os"
)

const (
	openFlags   = 0
	neverWait   = 0
	foldersSync = false
)

func patiently(f func() error) error            { return f() }
func openForRead(name string) (*os.File, error) { return os.Open(name) }
func remove(name string) error                  { return os.Remove(name) }
func syncUnsupported(error) bool                { return false }
func infoOf(fi fs.FileInfo) Info {
	return Info{Mode: fi.Mode(), Size: fi.Size(), ModTime: fi.ModTime(), UID: -1, GID: -1}
}
