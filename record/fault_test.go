package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/lockfile"
)

// changes are what can be done to an array in a file, each by another road through the code.
var changes = []struct {
	name string
	do   func(t *testing.T, rec string, o UpdateOptions) error
	old  string // what it is done to
}{
	{"Append", func(t *testing.T, rec string, o UpdateOptions) error {
		return Append(t.Context(), "/d/f", []byte(rec), o)
	}, "[\n  0\n]\n"},
	{"Append checked", func(t *testing.T, rec string, o UpdateOptions) error {
		return Append(t.Context(), "/d/f", []byte(rec), o)
	}, "[0,\n 1]"},
	{"Update", func(t *testing.T, rec string, o UpdateOptions) error {
		return Update(t.Context(), "/d/f", func(old []byte) ([]byte, error) { return withRecord(old, rec), nil }, o)
	}, "[\n  0\n]\n"},
	{"Rewrite", func(t *testing.T, rec string, o UpdateOptions) error {
		return Rewrite(t.Context(), "/d/f", func(old io.Reader, w io.Writer) error {
			data, err := io.ReadAll(old)
			if err != nil {
				return err
			}
			return vfs.WriteAll(w, withRecord(data, rec))
		}, o)
	}, "[\n  0\n]\n"},
}

func withRecord(old []byte, rec string) []byte {
	return append(bytes.TrimRight(bytes.TrimRight(old, blanks), "]"), ",\n"+rec+"]"...)
}

func count(text []byte, rec string) int { return strings.Count(string(text), rec) }

// Each file operation in turn fails, once or for good, or is where the process dies. An error means that
// the record is not there, unless it says that it is; success means that it is there once; nothing is
// ever there half. The next writer then finds nothing in its way and leaves nothing behind.
func TestEveryOperationFails(t *testing.T) {
	faults := []fault{
		{name: "once", err: syscall.ENOSPC},
		{name: "for good", err: syscall.EIO, onward: true},
		{name: "short write", err: &vfstest.Short{N: 3, Err: syscall.ENOSPC}, only: func(op vfstest.Op) bool { return op.Kind == "write" }},
		{name: "killed", kill: true},
	}
	for _, c := range changes {
		for _, family := range []string{"lock file", "own lock"} {
			for _, m := range faults {
				t.Run(c.name+"/"+family+"/"+m.name, func(t *testing.T) {
					reached := 0
					for n := 0; ; n++ {
						if !m.at(t, n, c.do, c.old, family) {
							break
						}
						reached++
					}
					if least := 6; reached < least && m.name != "short write" || reached == 0 {
						t.Errorf("only %d operations were failed", reached)
					}
				})
			}
		}
	}
}

// fault is what happens at an operation.
type fault struct {
	name         string
	err          error
	onward, kill bool
	only         func(vfstest.Op) bool
}

// at makes it happen at operation n of a change. It says whether there were so many.
func (m fault) at(t *testing.T, n int, do func(*testing.T, string, UpdateOptions) error, old, family string) bool {
	t.Helper()
	mem := vfstest.NewMem("/d")
	mem.Put("/d/f", []byte(old), 0o644)
	in := &vfstest.Injector{At: n, Err: m.err, Onward: m.onward, Kill: m.kill, Only: m.only}
	o := faulty(family, 1, vfstest.Wrap(mem, in.Before), nil)
	err := do(t, `"first"`, o)
	if len(in.Hits()) == 0 {
		if err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		return false
	}
	where := fmt.Sprintf("operation %d, %v", n, in.Hits()[0])
	text, _ := mem.Get("/d/f")
	got := count(text, `"first"`)
	switch {
	case err == nil && got != 1:
		t.Fatalf("%s: success, and the file holds %q", where, text)
	case errors.Is(err, ErrCommitted) && got != 1:
		t.Fatalf("%s: %v, and the file holds %q", where, err, text)
	case err != nil && !errors.Is(err, ErrCommitted) && !m.kill && !bytes.Equal(text, []byte(old)):
		t.Fatalf("%s: %v, and the file holds %q", where, err, text)
	case err != nil && !m.kill && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO):
		t.Fatalf("%s: the error hides the reason: %v", where, err)
	case errors.Is(err, lockfile.ErrHeld):
		t.Fatalf("%s: a fault is called a held lock: %v", where, err)
	}
	if _, ok := decode(text); !ok {
		t.Fatalf("%s: the file holds %q", where, text)
	}
	// The next writer of another process; the first one is dead if it was killed, and otherwise tries
	// again itself.
	next := faulty(family, 2, mem, func(pid int64) bool { return m.kill && pid == 1 })
	if !m.kill {
		next.Seams.Process, next.Lock = o.Seams.Process, relock(o.Lock, next)
	}
	if err := do(t, `"second"`, next); err != nil {
		t.Fatalf("%s: the next writer: %v", where, err)
	}
	text, _ = mem.Get("/d/f")
	if _, ok := decode(text); !ok || count(text, `"first"`) != got || count(text, `"second"`) != 1 {
		t.Fatalf("%s: after the next writer the file holds %q", where, text)
	}
	if names := mem.Names("/d"); len(names) != 1 {
		t.Fatalf("%s: left beside the file: %q", where, names)
	}
	return true
}

// faulty is a process of the given pid on a file system.
func faulty(family string, pid int64, fsys vfs.FS, dead func(int64) bool) UpdateOptions {
	o := actor(pid, fsys, nil)
	judge := o.Seams.Judge
	if dead != nil {
		o.Seams.Judge = deadWhen(dead, judge)
	}
	if family == "own lock" {
		o.Lock = &fakeLock{timeout: time.Minute}
	}
	o.NoSync = false
	return o
}

// relock gives a lock file's lock the seams of o.
func relock(l Lock, o UpdateOptions) Lock {
	lf, ok := l.(lockFile)
	if !ok {
		return l
	}
	lf.o.Seams = o.Seams
	return lf
}

// brokenFile is an AppendFile whose writes stop at a size, as on a full disk, and whose syncs can fail.
type brokenFS struct {
	vfs.FS
	room     int64 // the file's size at which the disk is full; 0: no end
	syncErr  error
	noCut    bool // the file cannot be truncated
	folder   error
	opened   int
	syncs    int
	beforeIO func()
}

func (b *brokenFS) OpenAppend(name string, create bool, perm fs.FileMode) (vfs.AppendFile, error) {
	f, err := b.FS.(vfs.Appender).OpenAppend(name, create, perm)
	if err != nil {
		return nil, err
	}
	b.opened++
	return &brokenFile{f, b}, nil
}

func (b *brokenFS) SyncDir(dir string) error {
	if b.folder != nil {
		return b.folder
	}
	return b.FS.SyncDir(dir)
}

type brokenFile struct {
	vfs.AppendFile
	b *brokenFS
}

func (f *brokenFile) Write(p []byte) (int, error) {
	if f.b.beforeIO != nil {
		f.b.beforeIO()
	}
	if f.b.room == 0 {
		return f.AppendFile.Write(p)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	n := max(min(int64(len(p)), f.b.room-info.Size), 0)
	if n > 0 {
		if _, err := f.AppendFile.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	if n < int64(len(p)) {
		return int(n), &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}
	}
	return int(n), nil
}

func (f *brokenFile) Truncate(size int64) error {
	if f.b.noCut {
		return syscall.EPERM
	}
	return f.AppendFile.Truncate(size)
}

func (f *brokenFile) SyncData() error {
	f.b.syncs++
	if f.b.syncErr != nil {
		return f.b.syncErr
	}
	return f.AppendFile.SyncData()
}

var _ vfs.Appender = (*brokenFS)(nil)
