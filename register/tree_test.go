package register

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTreeOfOddThings(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("a/file", "x")
	t.Chdir(dir)
	for path, want := range map[string]error{
		"a/file": nil, "./a/file": nil, "a/../a/file": nil,
		"a": ErrIsFolder, "../x": ErrName, "a/../../x": ErrName, filepath.Join(dir, "a/file"): ErrName, "": ErrName, ".": ErrName,
		"gone": fs.ErrNotExist,
	} {
		if err := (&Tree{}).AddFile(path); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%q: %v, not %v", path, err, want)
		}
	}
	twice := &Tree{}
	if err := errors.Join(twice.AddFile("a/file"), twice.AddFile("./a/file")); !errors.Is(err, ErrName) {
		t.Error(err)
	}
	if err := (&Tree{}).AddDir("a/file"); err == nil {
		t.Error("a file is a folder")
	}
	if err := (&Tree{}).AddDir("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestTreeOfLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.Mkdir("a", 0o777), os.WriteFile("a/file", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", "a/link"); err != nil {
		t.Skip("no links here:", err)
	}
	if err := (&Tree{}).AddDir("a"); !errors.Is(err, ErrLink) || !strings.Contains(err.Error(), "link") {
		t.Error(err)
	}
	links := &Tree{Links: true}
	if err := links.AddDir("a"); err != nil || links.Len() != 2 {
		t.Errorf("%d, %v", links.Len(), err)
	}
	if err := os.Symlink("../../etc", "a/out"); err != nil {
		t.Fatal(err)
	}
	if err := (&Tree{Links: true}).AddDir("a"); !errors.Is(err, ErrTarget) {
		t.Error(err)
	}
}

// A file that changes while it is read, in whatever way, does not land.
func TestFileThatChanges(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	const size = 3 << 20
	path := filepath.Join(t.TempDir(), "f")
	grow := func() error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("more")
		return errors.Join(err, f.Close())
	}
	// Within one tick of the file system's clock the time stays, as it does for whoever puts it back.
	then := time.Now().Add(-time.Hour)
	sameTime := func(change func() error) func() error {
		return func() error { return errors.Join(change(), os.Chtimes(path, then, then)) }
	}
	truncate := func(to int64) func() error { return func() error { return os.Truncate(path, to) } }
	for name, change := range map[string]struct{ reading, read func() error }{
		"grows":                             {reading: grow},
		"shrinks":                           {reading: truncate(size / 2)},
		"is rewritten":                      {reading: func() error { return os.WriteFile(path, make([]byte, size), 0o666) }},
		"grows in the same tick":            {reading: sameTime(grow)},
		"shrinks in the same tick":          {reading: sameTime(truncate(size / 2))},
		"grows when it was read, same":      {read: sameTime(grow)},
		"is rewritten when it was read":     {read: func() error { return os.WriteFile(path, make([]byte, size), 0o666) }},
		"shrinks and is as large as before": {reading: sameTime(truncate(size / 2)), read: sameTime(truncate(size))},
	} {
		t.Run(name, func(t *testing.T) {
			w.must(errors.Join(os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o666), os.Chtimes(path, then, then)))
			tr := &Tree{}
			w.must(tr.addPath("f", path, false))
			open := tr.items[0].open
			tr.items[0].open = func() (source, error) {
				src, err := open()
				return &interrupted{source: src, after: size / 4, reading: change.reading, read: change.read}, err
			}
			if _, err := a.land(tr); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "land f") {
				t.Error(err)
			}
		})
	}
	// One that another took the place of is not the one that was looked at.
	w.must(os.WriteFile(path, []byte("x"), 0o666))
	tr := &Tree{}
	w.must(tr.addPath("f", path, false))
	w.must(errors.Join(os.WriteFile(path+"2", []byte("y"), 0o666), os.Chtimes(path+"2", then, then), os.Rename(path+"2", path)))
	if _, err := a.land(tr); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if w.page().Register.Seq != 0 {
		t.Error("something landed")
	}
}

// interrupted does something in the middle of reading, and when all is read.
type interrupted struct {
	source
	after         int64
	reading, read func() error
}

func (i *interrupted) Read(p []byte) (int, error) {
	n, err := i.source.Read(p[:min(len(p), 64<<10)])
	if i.after -= int64(n); i.after <= 0 && i.reading != nil {
		err = errors.Join(err, i.reading())
		i.reading = nil
	}
	return n, err
}

func (i *interrupted) settled(n int64) error {
	if i.read != nil {
		if err := i.read(); err != nil {
			return err
		}
	}
	return i.source.settled(n)
}

// Memory does not grow with the artifact.
func TestLargeArtifact(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	const size = 200 << 20
	tr, most := &Tree{}, 0
	w.must(tr.add(item{Entry: Entry{Kind: KindFile, Name: "large"}, open: func() (source, error) {
		return &long{left: size, biggest: &most}, nil
	}}))
	r, err := a.land(tr)
	w.must(err)
	m, err := w.reg.Manifest(context.Background(), r.Manifest)
	w.must(err)
	if m.Entries[0].Size != size {
		t.Error(m.Entries[0].Size)
	}
	if most > 4<<20 {
		t.Errorf("read by %d bytes at once", most)
	}
}

// long is a source that notes how much is asked for at once.
type long struct {
	left    int64
	biggest *int
}

func (l *long) Read(p []byte) (int, error) {
	*l.biggest = max(*l.biggest, len(p))
	if l.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), l.left))
	for i := range p[:n] {
		p[i] = byte(l.left >> (i & 15))
	}
	l.left -= int64(n)
	return n, nil
}

func (*long) Close() error        { return nil }
func (*long) settled(int64) error { return nil }
