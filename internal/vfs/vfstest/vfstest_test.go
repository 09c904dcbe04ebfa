package vfstest_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func TestMem(t *testing.T) {
	m := vfstest.NewMem("/d")
	vfstest.TestFS(t, m, "/d", func(name string) { m.Put(name, nil, fs.ModeDir|0o755) })
	m = vfstest.NewMem("/d")
	vfstest.TestFSLinks(t, m, "/d", func(text, name string) { m.Put(name, []byte(text), fs.ModeSymlink|0o777) })
}

func TestMemFolders(t *testing.T) {
	vfstest.TestFSFolders(t, vfstest.NewMem("/d"), "/d")
	m := vfstest.NewMem("/d")
	kinds := ""
	vfstest.TestFSFolders(t, vfstest.Wrap(m, func(op vfstest.Op) error { kinds += op.Kind + " "; return nil }), "/d")
	if !strings.Contains(kinds, "mkdir ") {
		t.Error("mkdir does not pass the hook")
	}
}

// A folder that was not synced into its parent takes with it what was synced into it.
func TestCrashLosesFolders(t *testing.T) {
	for _, synced := range []bool{false, true} {
		m := vfstest.NewMem("/d")
		if err := m.Mkdir("/d/new", 0o700); err != nil {
			t.Fatal(err)
		}
		if synced {
			if err := m.SyncDir("/d"); err != nil {
				t.Fatal(err)
			}
		}
		f, err := m.Create("/d/new/file", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close(), m.SyncDir("/d/new")); err != nil {
			t.Fatal(err)
		}
		lost := false
		for image := range m.CrashImages(100, 1) {
			if _, ok := image.Get("/d/new/file"); !ok {
				lost = true
			}
		}
		if lost == synced {
			t.Errorf("folder synced: %v, file lost: %v", synced, lost)
		}
	}
}

func TestWrapChangesNothing(t *testing.T) {
	m := vfstest.NewMem("/d")
	kinds := map[string]bool{}
	w := vfstest.Wrap(m, func(op vfstest.Op) error {
		kinds[op.Kind] = true
		return nil
	})
	vfstest.TestFS(t, w, "/d", func(name string) { m.Put(name, nil, fs.ModeDir|0o755) })
	m.Put("/e", nil, fs.ModeDir|0o755)
	vfstest.TestFSLinks(t, w, "/e", func(text, name string) { m.Put(name, []byte(text), fs.ModeSymlink|0o777) })
	for _, kind := range []string{"create", "open", "link", "rename", "remove", "lstat", "readlink", "list",
		"syncdir", "read", "write", "sync", "close"} {
		if !kinds[kind] {
			t.Errorf("%s does not pass the hook", kind)
		}
	}
}

func TestNoLinks(t *testing.T) {
	m := vfstest.NewMem("/d")
	m.LinkErr = syscall.ENOTSUP
	m.Put("/d/a", nil, 0o600)
	m.Put("/d/b", nil, 0o600)
	if err := m.Link("/d/a", "/d/b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a taken name: %v", err)
	}
	if err := m.Link("/d/a", "/d/c"); !errors.Is(err, syscall.ENOTSUP) {
		t.Errorf("a free name: %v", err)
	}
}

// replace writes a file anew beside the old one and renames it over. The bugs are the classic ones.
func replace(fsys vfs.FS, data string, syncFile, syncDir bool) error {
	f, err := fsys.Create("/d/tmp", 0o600)
	if err != nil {
		return err
	}
	if err := vfs.WriteAll(f, []byte(data)); err != nil {
		return errors.Join(err, f.Close(), fsys.Remove("/d/tmp"))
	}
	if syncFile {
		if err := f.Sync(); err != nil {
			return errors.Join(err, f.Close(), fsys.Remove("/d/tmp"))
		}
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, fsys.Remove("/d/tmp"))
	}
	if err := fsys.Rename("/d/tmp", "/d/f"); err != nil {
		return errors.Join(err, fsys.Remove("/d/tmp"))
	}
	if syncDir {
		return fsys.SyncDir("/d")
	}
	return nil
}

// found collects what /d/f may contain after a crash.
func found(m *vfstest.Mem) []string {
	var all []string
	for image := range m.CrashImages(1000, 1) {
		data, ok := image.Get("/d/f")
		s := string(data)
		if !ok {
			s = "absent"
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

func TestCrashImages(t *testing.T) {
	for _, tt := range []struct {
		name              string
		syncFile, syncDir bool
		want              []string
	}{
		{"both synced", true, true, []string{"newer"}},
		{"folder not synced", true, false, []string{"newer", "old"}},
		{"planted bug: file not synced", false, true, []string{"", "ne", "newer"}},
		{"planted bug: nothing synced", false, false, []string{"", "ne", "newer", "old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := vfstest.NewMem("/d")
			m.Put("/d/f", []byte("old"), 0o600)
			if err := replace(m, "newer", tt.syncFile, tt.syncDir); err != nil {
				t.Fatal(err)
			}
			if got := found(m); !slices.Equal(got, tt.want) {
				t.Errorf("after a crash the file is one of %q, want %q", got, tt.want)
			}
		})
	}
}

// The ends of a rename reach the disk independently: both names, or neither, may be found.
func TestCrashImagesSplitRename(t *testing.T) {
	m := vfstest.NewMem("/d")
	m.Put("/d/a", []byte("x"), 0o600)
	if err := m.Rename("/d/a", "/d/b"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for image := range m.CrashImages(100, 1) {
		s := ""
		for _, name := range image.Names("/d") {
			s += name
		}
		got = append(got, s)
	}
	slices.Sort(got)
	if want := []string{"", "a", "ab", "b"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestCrashImagesSampled(t *testing.T) {
	m := vfstest.NewMem("/d")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		f, err := m.Create("/d/"+name, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(vfs.WriteAll(f, []byte("data")), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	n, different := 0, map[int]bool{}
	for image := range m.CrashImages(50, 7) {
		n++
		different[len(image.Names("/d"))] = true
	}
	if n != 50 || len(different) < 3 {
		t.Errorf("%d images with %d different counts of names", n, len(different))
	}
}

// Failing every operation in turn finds a replace that hides an error or leaves its temp file.
func TestInjectorFindsBugs(t *testing.T) {
	right := func(fsys vfs.FS) error { return replace(fsys, "new", true, true) }
	leaves := func(fsys vfs.FS) error { // planted: no removal after a failed write
		f, err := fsys.Create("/d/tmp", 0o600)
		if err != nil {
			return err
		}
		if err := vfs.WriteAll(f, []byte("new")); err != nil {
			return errors.Join(err, f.Close())
		}
		return errors.Join(f.Close(), fsys.Rename("/d/tmp", "/d/f"))
	}
	hides := func(fsys vfs.FS) error { // planted: the write's error is dropped
		f, err := fsys.Create("/d/tmp", 0o600)
		if err != nil {
			return err
		}
		_, _ = f.Write([]byte("new"))
		f.Close()
		return fsys.Rename("/d/tmp", "/d/f")
	}
	for _, tt := range []struct {
		name string
		run  func(vfs.FS) error
		bug  bool
	}{{"right", right, false}, {"leaves", leaves, true}, {"hides", hides, true}} {
		t.Run(tt.name, func(t *testing.T) {
			bug := false
			for n := 0; ; n++ {
				m := vfstest.NewMem("/d")
				m.Put("/d/f", []byte("old"), 0o600)
				in := &vfstest.Injector{At: n, Err: syscall.ENOSPC}
				err := tt.run(vfstest.Wrap(m, in.Before))
				data, _ := m.Get("/d/f")
				if err == nil && string(data) != "new" || len(m.Names("/d")) != 1 {
					bug = true
				}
				if len(in.Hits()) == 0 {
					break
				}
				if n > 100 {
					t.Fatal("no end")
				}
			}
			if bug != tt.bug {
				t.Errorf("bug found: %v, want %v", bug, tt.bug)
			}
		})
	}
}

func TestInjectorKill(t *testing.T) {
	sawHalf := false
	for n := 0; ; n++ {
		m := vfstest.NewMem("/d")
		m.Put("/d/f", []byte("old"), 0o600)
		in := &vfstest.Injector{At: n, Kill: true}
		err := replace(vfstest.Wrap(m, in.Before), "new!", true, true)
		if len(in.Hits()) == 0 {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if !errors.Is(err, vfstest.ErrKilled) {
			t.Errorf("kill at %v: %v", in.Hits()[0], err)
		}
		if data, ok := m.Get("/d/tmp"); ok && string(data) == "ne" {
			sawHalf = true
		}
		// A dead process cleans nothing up.
		if k := in.Hits()[0].Kind; k == "sync" && len(m.Names("/d")) != 2 {
			t.Errorf("killed at %s, yet the temp file is gone", k)
		}
	}
	if !sawHalf {
		t.Error("no kill in the middle of a write")
	}
}

func TestInjectorOnward(t *testing.T) {
	m := vfstest.NewMem("/d")
	in := &vfstest.Injector{At: 1, Err: syscall.EIO, Onward: true}
	w := vfstest.Wrap(m, in.Before)
	if _, err := w.Lstat("/d"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := w.Lstat("/d"); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
}

func TestAfterTheFact(t *testing.T) {
	m := vfstest.NewMem("/d")
	in := &vfstest.Injector{Err: &vfstest.After{Err: syscall.EIO}}
	f, err := vfstest.Wrap(m, in.Before).Create("/d/f", 0o600)
	if f != nil || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v, %v", f, err)
	}
	if _, ok := m.Get("/d/f"); !ok {
		t.Fatal("the operation did not happen")
	}
}

// The gate can force the interleaving in which an unguarded read-modify-write loses an update.
func TestGate(t *testing.T) {
	m := vfstest.NewMem("/d")
	m.Put("/d/f", nil, 0o600)
	g := vfstest.NewGate()
	done := make(chan string)
	for _, name := range []string{"x", "y"} {
		w := g.Wrap(m, name)
		go func() {
			f, err := w.Open("/d/f")
			if err != nil {
				t.Error(err)
			}
			old, _, err := vfs.ReadAll(f, 100)
			if err != nil {
				t.Error(err)
			}
			m.Put("/d/f", append(old, name...), 0o600)
			done <- name
		}()
	}
	// Both open the old file before either replaces it.
	pass := func(actor, kind string) {
		h := g.Await(actor)
		if h.Op.Kind != kind {
			t.Fatalf("%s is at %v, want %s", actor, h.Op, kind)
		}
		g.Pass(h, nil)
	}
	pass("x", "open")
	pass("y", "open")
	pass("x", "read")
	<-done
	pass("y", "read")
	<-done
	if data, _ := m.Get("/d/f"); string(data) != "y" {
		t.Errorf("the file is %q; x's update should be lost", data)
	}
}
