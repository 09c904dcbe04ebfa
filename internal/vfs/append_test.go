package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func TestOpenAppend(t *testing.T) {
	t.Run("system", func(t *testing.T) { openAppend(t, vfs.OS(), t.TempDir()) })
	mem := vfstest.NewMem("/d")
	t.Run("memory", func(t *testing.T) { openAppend(t, mem, "/d") })
	mem = vfstest.NewMem("/d")
	t.Run("wrapped", func(t *testing.T) { openAppend(t, vfstest.Wrap(mem, func(vfstest.Op) error { return nil }), "/d") })
}

func openAppend(t *testing.T, all vfs.FS, dir string) {
	fsys, ok := all.(vfs.Appender)
	if !ok {
		t.Fatal("its files cannot be appended to")
	}
	name := filepath.Join(dir, "f")
	if _, err := fsys.OpenAppend(name, false, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	a, err := fsys.OpenAppend(name, true, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := fsys.OpenAppend(name, true, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating what is there: %v", err)
	}
	b, err := fsys.OpenAppend(name, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// Each write goes to the end, wherever the other has put it.
	for _, f := range []vfs.AppendFile{a, b, a} {
		if n, err := f.Write([]byte("12")); n != 2 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	var p [4]byte
	if n, err := a.ReadAt(p[:], 1); n != 4 || err != nil || string(p[:]) != "2121" {
		t.Errorf("read %q, %v", p[:n], err)
	}
	if n, err := a.ReadAt(p[:], 3); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d at the end, %v", n, err)
	}
	if err := a.SyncData(); err != nil {
		t.Error(err)
	}
	want := "1212xy"
	if err := a.Truncate(4); errors.Is(err, errors.ErrUnsupported) && runtime.GOOS == "windows" {
		want = "121212xy"
	} else if err != nil {
		t.Error(err)
	}
	if _, err := b.Write([]byte("xy")); err != nil {
		t.Error(err)
	}
	r, err := all.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, _, err := vfs.ReadAll(r, 100); err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v; want %q", got, err, want)
	}
	if all != vfs.OS() {
		return
	}
	if err := os.Symlink("f", filepath.Join(dir, "link")); err == nil {
		if f, err := fsys.OpenAppend(filepath.Join(dir, "link"), false, 0); err == nil {
			info, _ := f.Stat()
			f.Close()
			if info.Mode.IsRegular() {
				t.Error("a link was followed")
			}
		}
	}
}
