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
)

func TestOpenAppend(t *testing.T) {
	fsys, ok := vfs.OS().(vfs.Appender)
	if !ok {
		t.Fatal("the system's files cannot be appended to")
	}
	dir := t.TempDir()
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
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v; want %q", got, err, want)
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
