//go:build unix

package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
)

func TestModesAndOwners(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := vfs.OS().Create(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Chmod(0o640 | fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Mode != 0o640|fs.ModeSetgid || info.UID != os.Getuid() {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := f.Chown(-1, info.GID); err != nil {
		t.Fatal(err)
	}
}

func TestTryFlock(t *testing.T) {
	fsys, ok := vfs.OS().(vfs.Flocker)
	if !ok {
		t.Skip("no flock here")
	}
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, held, err := fsys.TryFlock(name)
	if err != nil || held {
		t.Fatalf("a free lock: held %v, %v", held, err)
	}
	if _, held, err := fsys.TryFlock(name); err != nil || !held {
		t.Fatalf("a held lock: held %v, %v", held, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, held, err = fsys.TryFlock(name)
	if err != nil || held {
		t.Fatalf("a lock let go: held %v, %v", held, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
