//go:build unix

package vfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What is done is done in the folder that was opened, also when its name leads elsewhere since. On Windows an open folder
// cannot be moved.
func TestFolderStaysWhereItWasOpened(t *testing.T) {
	top := t.TempDir()
	dir, other := filepath.Join(top, "d"), filepath.Join(top, "other")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(other, 0o755)); err != nil {
		t.Fatal(err)
	}
	f := openFolder(t, dir)
	moved := filepath.Join(top, "moved")
	if err := errors.Join(os.Rename(dir, moved), os.Symlink(other, dir)); err != nil {
		t.Fatal(err)
	}
	w, err := f.Create(filepath.Join(dir, "x"), 0o600)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(moved, "x")); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(other, "x")); err == nil {
		t.Error("the link was followed")
	}
}
