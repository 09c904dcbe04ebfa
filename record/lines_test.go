package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/kernlock"
)

func newLines(t *testing.T, path string, o LineOptions) *Lines {
	t.Helper()
	l, err := OpenLines(path, o)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.Symlink("f", filepath.Join(dir, "link")))
	l := newLines(t, filepath.Join(dir, "link"), LineOptions{})
	only(t, dir, "link")
	must(t, l.Append(t.Context()))
	only(t, dir, "link") // no lines, no file
	must(t, l.Append(t.Context(), []byte("a"), []byte("b\n"), nil))
	holds(t, path, "a\nb\n\n")
	must(t, AppendLine(t.Context(), path, []byte("c"), LineOptions{Sync: true}))
	must(t, l.Append(t.Context(), []byte("d")))
	holds(t, path, "a\nb\n\nc\nd\n")
	only(t, dir, "link", "f", "f.lock")

	for _, bad := range []string{"a\nb", "\n\n", "a\n\n"} {
		err := l.Append(t.Context(), []byte("fine"), []byte(bad))
		is(t, err, ErrRecord)
		var place *FormatError
		if !errors.As(err, &place) || place.Line != 2 || place.Column != strings.IndexByte(bad, '\n')+1 {
			t.Errorf("%q: %v", bad, err)
		}
	}
	holds(t, path, "a\nb\n\nc\nd\n")
}

func TestLinesCheckJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	l := newLines(t, path, LineOptions{CheckJSON: true})
	must(t, l.Append(t.Context(), []byte(`{"a":1}`), []byte("2\n")))
	for bad, column := range map[string]int{"": 1, "{": 2, "{\"a\":1} x": 9, "\"\xff\"": 2, "nul": 4, "{'a':1}": 2} {
		err := l.Append(t.Context(), []byte("3"), []byte(bad))
		var place *FormatError
		if !errors.As(err, &place) || !errors.Is(err, ErrRecord) || place.Line != 2 || place.Column != column {
			t.Errorf("%q: %v, want line 2, column %d", bad, err, column)
		}
	}
	holds(t, path, "{\"a\":1}\n2\n")
}

// A last line that was left without its newline is closed, never cut, each time.
func TestTornLastLineIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "whole\nto")
	l := newLines(t, path, LineOptions{})
	must(t, l.Append(t.Context(), []byte("a")))
	holds(t, path, "whole\nto\na\n")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString("rn")
	must(t, err)
	must(t, f.Close())
	must(t, l.Append(t.Context(), []byte("b")))
	must(t, l.Append(t.Context(), []byte("c")))
	holds(t, path, "whole\nto\na\nrn\nb\nc\n")
}

// A file that is renamed away, removed, replaced, or changed into something else meanwhile is noticed.
func TestLinesNoticeAnotherFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	l := newLines(t, path, LineOptions{})
	must(t, l.Append(t.Context(), []byte("1")))
	must(t, os.Rename(path, path+".old"))
	must(t, l.Append(t.Context(), []byte("2")))
	holds(t, path+".old", "1\n")
	holds(t, path, "2\n")
	must(t, Update(t.Context(), path, add("3"), UpdateOptions{NoSync: true})) // a new inode, torn
	must(t, l.Append(t.Context(), []byte("4")))
	holds(t, path, "2\n3\n4\n")
	must(t, os.Remove(path))
	must(t, l.Append(t.Context(), []byte("5")))
	holds(t, path, "5\n")
	must(t, os.Truncate(path, 0))
	must(t, l.Append(t.Context(), []byte("6")))
	holds(t, path, "6\n")

	victim := filepath.Join(dir, "victim")
	put(t, victim, "precious")
	must(t, os.Remove(path))
	must(t, os.Symlink("victim", path))
	is(t, l.Append(t.Context(), []byte("7")), ErrNotRegular)
	holds(t, victim, "precious")
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o755))
	is(t, l.Append(t.Context(), []byte("8")), ErrNotRegular)
	must(t, os.Remove(path))
	must(t, l.Append(t.Context(), []byte("9")))
	holds(t, path, "9\n")
}

// A lock file that is deleted while a line is about to be written: nothing is written under the lost
// hold, and the line gets in under a fresh one.
func TestLinesAreFenced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "")
	tries := 0
	fsys := &hookedAppender{FS: vfs.OS(), read: func() {
		if tries++; tries == 1 {
			must(t, os.Remove(path+".lock"))
			must(t, AppendLine(t.Context(), path, []byte("other"), LineOptions{}))
		}
	}}
	put(t, path, "x\n")
	must(t, AppendLine(t.Context(), path, []byte("mine"), LineOptions{Seams: &seam.Set{FS: fsys}}))
	holds(t, path, "x\nother\nmine\n")
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
}

// hookedAppender calls read each time the end of the file is looked at.
type hookedAppender struct {
	vfs.FS
	read func()
}

func (h *hookedAppender) OpenAppend(name string, create bool, perm fs.FileMode) (vfs.AppendFile, error) {
	f, err := h.FS.(vfs.Appender).OpenAppend(name, create, perm)
	return &hookedEnd{f, h}, err
}

type hookedEnd struct {
	vfs.AppendFile
	h *hookedAppender
}

func (f *hookedEnd) ReadAt(p []byte, off int64) (int, error) {
	f.h.read()
	return f.AppendFile.ReadAt(p, off)
}

// A full disk, at each byte of the line: nothing of it stays, the error is the disk's own, and the next
// line is whole.
func TestLinesOnAFullDisk(t *testing.T) {
	for _, old := range []string{"", "whole\n", "torn"} {
		for room := range 12 {
			path := filepath.Join(t.TempDir(), "f")
			put(t, path, old)
			fsys := &brokenFS{FS: vfs.OS(), room: int64(len(old) + room)}
			if fsys.room == 0 {
				continue
			}
			l := newLines(t, path, LineOptions{Seams: &seam.Set{FS: fsys}})
			line := "0123456789"
			need := len(line) + 1
			if old == "torn" {
				need++
			}
			err := l.Append(t.Context(), []byte(line))
			if room >= need {
				must(t, err)
				continue
			}
			is(t, err, syscall.ENOSPC)
			if errors.Is(err, ErrCommitted) || errors.Is(err, kernlock.ErrTimeout) {
				t.Errorf("%v", err)
			}
			holds(t, path, old)
			fsys.room = 0
			must(t, l.Append(t.Context(), []byte("next")))
			holds(t, path, strings.Replace(old, "torn", "torn\n", 1)+"next\n")
		}
	}
}

// Where what was written of a line cannot be cut off again, the error says so, and the next line closes it.
func TestLinesThatCannotBeUndone(t *testing.T) {
	for name, fsys := range map[string]*brokenFS{
		"no right": {FS: vfs.OS(), room: 8, noCut: true},
		"others":   {FS: vfs.OS(), room: 8},
	} {
		path := filepath.Join(t.TempDir(), "f")
		put(t, path, "12345\n")
		l := newLines(t, path, LineOptions{Seams: &seam.Set{FS: fsys}})
		if name == "others" {
			// A program without the lock writes between the failed write and the look at the size.
			fsys.beforeIO = func() {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				must(t, err)
				_, err = f.WriteString("X")
				must(t, err)
				f.Close()
				fsys.room = 9
			}
		}
		err := l.Append(t.Context(), []byte("abc"))
		is(t, err, syscall.ENOSPC)
		if !strings.Contains(err.Error(), "stay") {
			t.Errorf("%s: %v does not say that something stays", name, err)
		}
		fsys.room, fsys.beforeIO = 0, nil
		must(t, l.Append(t.Context(), []byte("next")))
		if got := get(t, path); !strings.HasPrefix(got, "12345\n") || !strings.HasSuffix(got, "\nnext\n") {
			t.Errorf("%s: the file holds %q", name, got)
		}
	}
}

// A disk that does not answer: the line is there, the error says that the disk may not have it, every
// append that waited for this file hears of it, and later ones get a descriptor of their own.
func TestLinesNotDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	fsys := &brokenFS{FS: vfs.OS(), syncErr: syscall.EIO}
	l := newLines(t, path, LineOptions{Sync: true, Seams: &seam.Set{FS: fsys}})
	for i := range 2 {
		err := l.Append(t.Context(), []byte("a"))
		is(t, err, ErrNotDurable)
		is(t, err, ErrCommitted)
		is(t, err, syscall.EIO)
		if fsys.opened != i+1 {
			t.Errorf("%d descriptors after %d errors", fsys.opened, i+1)
		}
	}
	fsys.syncErr, fsys.folder = nil, syscall.ENOSPC
	is(t, l.Append(t.Context(), []byte("a")), syscall.ENOSPC)
	fsys.folder = nil
	must(t, l.Append(t.Context(), []byte("a")))
	must(t, l.Append(t.Context(), []byte("a")))
	if fsys.opened != 4 {
		t.Errorf("%d descriptors, want 4", fsys.opened)
	}
	holds(t, path, strings.Repeat("a\n", 5))
}

// Lines whose sync waits share the one that runs, and each is on disk when its Append returns.
func TestLinesShareTheirSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	fsys := &syncGate{FS: vfs.OS(), begun: make(chan struct{}, 100), goOn: make(chan struct{})}
	l := newLines(t, path, LineOptions{Sync: true, Seams: &seam.Set{FS: fsys}})
	const crowd = 20
	done := make(chan error, crowd)
	add := func() { done <- l.Append(context.Background(), []byte("line")) }
	go add()
	<-fsys.begun
	for range crowd - 1 {
		go add()
	}
	// All write while one syncs: the lock is not held for it.
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if st, err := os.Stat(path); err == nil && st.Size() == crowd*5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the lines wait for another's sync")
		}
	}
	select {
	case err := <-done:
		t.Fatalf("an append returned (%v) before its sync", err)
	default:
	}
	close(fsys.goOn)
	for range crowd {
		must(t, <-done)
	}
	if n := fsys.syncs.Load(); n != 2 {
		t.Errorf("%d syncs, want the first and one for all the lines that came during it", n)
	}
}

// syncGate holds each sync until it is told to go on.
type syncGate struct {
	vfs.FS
	begun chan struct{}
	goOn  chan struct{}
	syncs atomic.Int32
}

func (g *syncGate) OpenAppend(name string, create bool, perm fs.FileMode) (vfs.AppendFile, error) {
	f, err := g.FS.(vfs.Appender).OpenAppend(name, create, perm)
	return &gatedSync{f, g}, err
}

type gatedSync struct {
	vfs.AppendFile
	g *syncGate
}

func (f *gatedSync) SyncData() error {
	f.g.syncs.Add(1)
	f.g.begun <- struct{}{}
	<-f.g.goOn
	return f.AppendFile.SyncData()
}

func TestLinesClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	l, err := OpenLines(path, LineOptions{})
	must(t, err)
	must(t, l.Append(t.Context(), []byte("a")))
	must(t, l.Close())
	must(t, l.Close())
	is(t, l.Append(t.Context(), []byte("b")), ErrClosed)
	holds(t, path, "a\n")
}

// A lock that is held is waited for, as long as the options say, and the holder is named.
func TestLinesWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	held, err := kernlock.Acquire(t.Context(), path, kernlock.Options{Operation: "tidy"})
	must(t, err)
	l := newLines(t, path, LineOptions{Lock: kernlock.Options{Timeout: kernlock.TryOnce}})
	err = l.Append(t.Context(), []byte("a"))
	is(t, err, kernlock.ErrTimeout)
	if !strings.Contains(err.Error(), "tidy") {
		t.Errorf("%v does not name the holder", err)
	}
	is(t, AppendLine(held.Context(), path, []byte("a"), LineOptions{}), kernlock.ErrReentrant)
	isNotThere(t, path)
	must(t, held.Release())
	must(t, l.Append(t.Context(), []byte("a")))
}

// Lines of many goroutines, through one Lines and through many, with the file replaced under them.
func TestLinesFromManyGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const writers, each = 8, 50
	shared := newLines(t, path, LineOptions{Sync: true})
	var wg sync.WaitGroup
	for w := range writers {
		l := shared
		if w%2 == 0 {
			l = newLines(t, path, LineOptions{Lock: kernlock.Options{NoRecord: true, Timeout: time.Minute}})
		}
		wg.Go(func() {
			for i := range each {
				line := fmt.Sprintf("%d.%d %s", w, i, strings.Repeat("x", 37*i%300))
				if err := l.Append(context.Background(), []byte(line)); err != nil {
					t.Error(err)
				}
				if i%10 == w {
					err := Update(context.Background(), path, func(old []byte) ([]byte, error) { return old, nil }, UpdateOptions{NoSync: true})
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	next := make([]int, writers)
	for line := range bytes.Lines([]byte(get(t, path))) {
		var w, i int
		var pad string
		_, _ = fmt.Sscanf(string(line), "%d.%d %s", &w, &i, &pad) // a line without a pad is short
		if i != next[w] || len(pad) != 37*i%300 || line[len(line)-1] != '\n' {
			t.Fatalf("writer %d: line %q, want number %d", w, line, next[w])
		}
		next[w]++
	}
	for w, n := range next {
		if n != each {
			t.Errorf("writer %d has %d lines, want %d", w, n, each)
		}
	}
}
