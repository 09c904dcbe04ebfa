package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func openFolder(t *testing.T, dir string) vfs.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return vfs.Folder(root, dir)
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	vfstest.TestFS(t, openFolder(t, dir), dir, func(name string) {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	})
}

// A link is neither read nor followed, wherever it leads, and nothing outside the folder can be named.
func TestFolderFollowsNoLink(t *testing.T) {
	top := t.TempDir()
	dir, secret := filepath.Join(top, "d"), filepath.Join(top, "secret")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(secret, []byte("s"), 0o600),
		os.WriteFile(filepath.Join(dir, "inside"), []byte("i"), 0o600),
		os.Symlink("inside", filepath.Join(dir, "near")), os.Symlink(secret, filepath.Join(dir, "far")))
	if err != nil {
		t.Fatal(err)
	}
	f := openFolder(t, dir)
	for _, name := range []string{"near", "far"} {
		if _, err := f.Open(filepath.Join(dir, name)); !errors.Is(err, vfs.ErrLink) {
			t.Errorf("opening %s: %v", name, err)
		}
		if _, err := f.Readlink(filepath.Join(dir, name)); !errors.Is(err, vfs.ErrLink) {
			t.Errorf("reading %s: %v", name, err)
		}
		if _, err := f.Create(filepath.Join(dir, name), 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("creating %s: %v", name, err)
		}
	}
	for _, name := range []string{secret, dir + "/../secret", dir + "/..", dir + "/."} {
		if _, err := f.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("opening %s: %v", name, err)
		}
		if err := f.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removing %s: %v", name, err)
		}
	}
}
