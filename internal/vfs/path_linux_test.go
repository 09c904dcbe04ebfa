package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
)

// Paths are copied to a buffer of the stack; longer ones take another way.
func TestLongAndOddPaths(t *testing.T) {
	fsys := vfs.OS()
	dir := t.TempDir()
	for range 4 {
		dir = filepath.Join(dir, strings.Repeat("d", 150))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := 500; n < 530; n++ { // around the buffer's length
		short := filepath.Join(t.TempDir(), "x")
		name := short + strings.Repeat("/.", (n-len(short))/2)
		name = filepath.Dir(short) + name[len(short):] + "/f"
		tryAll(t, fsys, name)
	}
	tryAll(t, fsys, filepath.Join(dir, "f"))
	if _, err := fsys.Open("a\x00b"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a path with a zero byte: %v", err)
	}
	if err := fsys.Rename("a\x00b", "c"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("rename a path with a zero byte: %v", err)
	}
}

func tryAll(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	f, err := fsys.Create(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Link(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.Open(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open what was removed: %v", err)
	}
	if err := fsys.Rename(name, name+"3"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename what was removed: %v", err)
	}
	if err := fsys.Rename(name+"2", name+"3"); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Remove(name + "3"); err != nil {
		t.Fatal(err)
	}
}
