package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
)

// Glance says of every kind of file what Lstat says, but for the times.
func TestGlance(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("four"), 0o640); err != nil {
		t.Fatal(err)
	}
	names := []string{dir, file}
	if os.Symlink(file, link) == nil {
		if _, err := os.Lstat(link); err == nil { // Wine says that it has made one, and has not
			names = append(names, link)
		}
	}
	for _, name := range names {
		want, err := vfs.OS().Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := vfs.Glance(vfs.OS(), name)
		if err != nil || got.Mode != want.Mode || got.Size != want.Size || got.Dev != want.Dev || got.Ino != want.Ino {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	if _, err := vfs.Glance(vfs.OS(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
