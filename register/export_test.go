package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestExportGivesTheSameTree: whatever tree lands comes back the same.
func TestExportGivesTheSameTree(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	links := runtime.GOOS != "windows" && os.Symlink("x", filepath.Join(w.dir, "link")) == nil
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		src, out := filepath.Join(w.dir, fmt.Sprint("src", n)), filepath.Join(w.dir, fmt.Sprint("out", n))
		drawn := drawTree(rt, links)
		for _, name := range slices.Sorted(maps.Keys(drawn)) {
			path := filepath.Join(src, filepath.FromSlash(name))
			w.must(os.MkdirAll(filepath.Dir(path), 0o777))
			f := drawn[name]
			switch {
			case f.folder:
				w.must(os.MkdirAll(path, 0o777))
			case f.link != "":
				w.must(os.Symlink(filepath.FromSlash(f.link), path))
			default:
				w.must(os.WriteFile(path, f.data, 0o666))
				w.must(os.Chmod(path, f.mode))
			}
		}
		tr := &Tree{Links: true}
		w.must(tr.AddDir(src))
		r, err := a.land(tr)
		w.must(err)
		m, err := w.reg.Manifest(context.Background(), r.Manifest)
		w.must(err)
		w.must(w.reg.Export(context.Background(), m, out, false))
		same(t, src, out)
		// And what comes back lands as the same.
		again := &Tree{Links: true}
		w.must(again.AddDir(out))
		r2, err := a.land(again)
		w.must(err)
		if r2.Manifest != r.Manifest {
			rt.Errorf("the tree that came back lands as another")
		}
		if t.Failed() {
			rt.Fatalf("tree %v", slices.Sorted(maps.Keys(drawn)))
		}
		w.must(os.RemoveAll(src))
		w.must(os.RemoveAll(out))
	})
}

type drawnFile struct {
	data   []byte
	mode   fs.FileMode
	link   string
	folder bool
}

// drawTree draws names that can stand side by side.
func drawTree(rt *rapid.T, links bool) map[string]drawnFile {
	element := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "A b", ".x", "-r", "~", "é", "e\u0301x", "漢", "🙂", "a'b", "$HOME", "%TEMP%", "x.tar.gz", strings.Repeat("l", 255), "..y", " lead", "#", "[0]", "com10"}),
		rapid.StringMatching(`[a-z0-9_.é漢]{1,12}[a-z]`),
	).Filter(func(s string) bool { return elementFault(s) == "" })
	files, all := map[string]drawnFile{}, names{}
	for range rapid.IntRange(1, 8).Draw(rt, "files") {
		name := strings.Join(rapid.SliceOfN(element, 1, 6).Draw(rt, "name"), "/")
		f := drawnFile{mode: fs.FileMode(rapid.SampledFrom([]int{0o644, 0o755, 0o600, 0o400, 0o777, 0o640}).Draw(rt, "mode"))}
		kind := rapid.IntRange(0, 9).Draw(rt, "kind")
		switch {
		case kind == 0:
			f.folder = true
		case kind == 1 && links:
			f.link = rapid.SampledFrom([]string{"a", "b/c", "nowhere", "."}).Draw(rt, "target")
		default:
			f.data = rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(rt, "data")
		}
		if len(name) > 500 {
			continue
		}
		trial := maps.Clone(all)
		if trial.add(name, f.folder) != nil {
			continue
		}
		if f.folder {
			if _, filled := trial[key(name)]; filled && hasBelow(files, name) {
				continue
			}
		}
		// A folder that was empty is not any more.
		for at := range files {
			if files[at].folder && strings.HasPrefix(name, at+"/") {
				delete(files, at)
			}
		}
		all = trial
		files[name] = f
	}
	if len(files) == 0 {
		files["a"] = drawnFile{mode: 0o644}
	}
	return files
}

func hasBelow(files map[string]drawnFile, name string) bool {
	for at := range files {
		if strings.HasPrefix(at, name+"/") {
			return true
		}
	}
	return false
}

func TestExportReplaces(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	one, err := a.land(tree(t, "x", "1", "gone/y", "2"))
	w.must(err)
	two, err := a.land(tree(t, "x", "2"))
	w.must(err)
	m1, err := w.reg.Manifest(ctx, one.Manifest)
	w.must(err)
	m2, err := w.reg.Manifest(ctx, two.Manifest)
	w.must(err)
	parent := t.TempDir()
	out := filepath.Join(parent, "out")

	w.must(os.Mkdir(out, 0o777))
	w.must(w.reg.Export(ctx, m1, out, false)) // an empty folder
	before := folder(t, out)
	if err := w.reg.Export(ctx, m2, out, false); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
	if got := folder(t, out); !maps.Equal(got, before) {
		t.Errorf("%v", got)
	}
	w.must(w.reg.Export(ctx, m2, out, true))
	if got := folder(t, out); len(got) != 1 || !strings.HasSuffix(got["x"], " 2") {
		t.Errorf("%v", got)
	}
	if list, err := os.ReadDir(parent); err != nil || len(list) != 1 {
		t.Errorf("left: %v, %v", list, err)
	}

	// One that fails leaves what there was.
	e, _ := m1.Find("gone/y")
	w.damage(e.SHA256)
	if err := w.reg.Export(ctx, m1, out, true); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if got := folder(t, out); len(got) != 1 || !strings.HasSuffix(got["x"], " 2") {
		t.Errorf("%v", got)
	}
	if list, err := os.ReadDir(parent); err != nil || len(list) != 1 {
		t.Errorf("left: %v, %v", list, err)
	}

	// A file or a link is never replaced.
	file := filepath.Join(parent, "file")
	w.must(os.WriteFile(file, nil, 0o666))
	if err := w.reg.Export(ctx, m2, file, true); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
}

func TestExportReplacesNoLink(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	r, err := a.land(tree(t, "x", "1"))
	w.must(err)
	m, err := w.reg.Manifest(ctx, r.Manifest)
	w.must(err)
	out, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(out, link); err != nil {
		t.Skip("no links here:", err)
	}
	if err := w.reg.Export(ctx, m, link, true); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
	if got := folder(t, out); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// Where folders cannot be exchanged: two renames, and a death between them.
func TestDisplace(t *testing.T) {
	parent := t.TempDir()
	dir, temp := filepath.Join(parent, "d"), filepath.Join(parent, "temp")
	tree := filepath.Join(temp, "tree")
	for _, name := range []string{dir, tree} {
		if err := errors.Join(os.MkdirAll(name, 0o777), os.WriteFile(filepath.Join(name, "f"), []byte(filepath.Base(name)), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if err := displace(filepath.Join(temp, "none"), dir); err == nil {
		t.Error("nothing took the folder's place")
	}
	if got := folder(t, dir); !strings.HasSuffix(got["f"], " d") {
		t.Errorf("not put back: %v", got)
	}
	if err := displace(tree, dir); err != nil {
		t.Fatal(err)
	}
	if got := folder(t, dir); !strings.HasSuffix(got["f"], " tree") {
		t.Errorf("%v", got)
	}
}
