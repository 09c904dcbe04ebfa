package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
)

// TestFS checks what every vfs.FS promises, in the empty folder dir. Mkdir makes what the interface itself
// cannot.
func TestFS(t *testing.T, fsys vfs.FS, dir string, mkdir func(string)) {
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, data string) {
		t.Helper()
		f, err := fsys.Create(at(name), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(vfs.WriteAll(f, []byte(data)), f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		f, err := fsys.Open(at(name))
		if err != nil {
			t.Fatal(err)
		}
		data, whole, err := vfs.ReadAll(f, 1<<20)
		if err := errors.Join(err, f.Close()); err != nil || !whole {
			t.Fatalf("read %s: whole %v, %v", name, whole, err)
		}
		return string(data)
	}
	is := wants(t)
	mkdir(at("folder"))
	write("a", "one")

	_, err := fsys.Create(at("a"), 0o600)
	is(err, fs.ErrExist)
	_, err = fsys.Create(at("folder"), 0o600)
	is(err, fs.ErrExist)
	_, err = fsys.Create(at("missing/x"), 0o600)
	is(err, fs.ErrNotExist)
	_, err = fsys.Open(at("missing"))
	is(err, fs.ErrNotExist)
	if got := read("a"); got != "one" {
		t.Fatalf("a is %q", got)
	}

	write("b", "two")
	is(fsys.Link(at("a"), at("b")), fs.ErrExist)
	is(fsys.Link(at("missing"), at("c")), fs.ErrNotExist)
	is(fsys.Link(at("a"), at("c")), nil)
	ia, err := fsys.Lstat(at("a"))
	is(err, nil)
	ic, err := fsys.Lstat(at("c"))
	is(err, nil)
	ib, err := fsys.Lstat(at("b"))
	is(err, nil)
	if ia.Ino != 0 && (!vfs.SameFile(ia, ic) || vfs.SameFile(ia, ib)) {
		t.Fatalf("identity: a %v, its link %v, another file %v", ia, ic, ib)
	}
	if ia.Size != 3 || !ia.Mode.IsRegular() {
		t.Fatalf("a is described as %+v", ia)
	}

	is(fsys.Rename(at("missing"), at("x")), fs.ErrNotExist)
	is(fsys.Rename(at("b"), at("a")), nil)
	if got := read("a") + read("c"); got != "twoone" {
		t.Fatalf("after the rename a and c are %q", got)
	}
	_, err = fsys.Lstat(at("b"))
	is(err, fs.ErrNotExist)

	if err := fsys.Remove(at("folder")); err == nil {
		t.Fatal("Remove took a folder")
	}
	is(fsys.Remove(at("b")), fs.ErrNotExist)

	names, err := fsys.List(dir, "")
	is(err, nil)
	if want := []string{"a", "c", "folder"}; !slices.Equal(names, want) {
		t.Fatalf("listed %q, want %q", names, want)
	}
	names, err = fsys.List(dir, "fo")
	is(err, nil)
	if !slices.Equal(names, []string{"folder"}) {
		t.Fatalf("listed %q", names)
	}
	_, err = fsys.List(at("missing"), "")
	is(err, fs.ErrNotExist)
	is(fsys.SyncDir(dir), nil)

	f, err := fsys.Open(at("c"))
	is(err, nil)
	is(fsys.Remove(at("c")), nil)
	var b bytes.Buffer
	if _, err := io.Copy(&b, f); err != nil || b.String() != "one" {
		t.Fatalf("an open file without a name reads %q, %v", b.String(), err)
	}
	is(f.Close(), nil)
	if f.Close() == nil {
		t.Fatal("a second Close succeeds")
	}
}

// TestFSLinks checks that no method of a vfs.FS follows a symbolic link, in the empty folder dir. Symlink
// makes one.
func TestFSLinks(t *testing.T, fsys vfs.FS, dir string, symlink func(text, name string)) {
	at := func(name string) string { return filepath.Join(dir, name) }
	is := wants(t)
	f, err := fsys.Create(at("a"), 0o600)
	is(err, nil)
	is(f.Close(), nil)
	symlink("a", at("s"))
	if f, err := fsys.Open(at("s")); err == nil {
		info, err := f.Stat()
		if err = errors.Join(err, f.Close()); err != nil || info.Mode.IsRegular() {
			t.Fatal("Open followed a link")
		}
	}
	_, err = fsys.Create(at("s"), 0o600)
	is(err, fs.ErrExist)
	info, err := fsys.Lstat(at("s"))
	is(err, nil)
	if info.Mode&fs.ModeSymlink == 0 {
		t.Fatalf("a link is described as %v", info.Mode)
	}
	text, err := fsys.Readlink(at("s"))
	is(err, nil)
	if text != "a" {
		t.Fatalf("the link's text is %q", text)
	}
	is(fsys.Remove(at("s")), nil)
}

// TestFSFolders checks what a vfs.FolderMaker promises, in the empty folder dir.
func TestFSFolders(t *testing.T, fsys vfs.FS, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	is := wants(t)
	maker, ok := fsys.(vfs.FolderMaker)
	if !ok {
		t.Fatal("makes no folders")
	}
	is(maker.Mkdir(at("new"), 0o700), nil)
	info, err := fsys.Lstat(at("new"))
	is(err, nil)
	if !info.Mode.IsDir() {
		t.Fatalf("a new folder is described as %v", info.Mode)
	}
	is(maker.Mkdir(at("new"), 0o700), fs.ErrExist)
	is(maker.Mkdir(at("missing/new"), 0o700), fs.ErrNotExist)
	f, err := fsys.Create(at("new/file"), 0o600)
	is(err, nil)
	is(f.Close(), nil)
	is(maker.Mkdir(at("new/file"), 0o700), fs.ErrExist)
}

// wants returns a check that an error is the one wanted, and names a path.
func wants(t *testing.T) func(err, want error) {
	return func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			var pe *fs.PathError
			var le interface{ Unwrap() error }
			if !errors.As(err, &pe) && !errors.As(err, &le) {
				t.Fatalf("%v names no path", err)
			}
		}
	}
}
