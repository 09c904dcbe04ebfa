package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func TestCase24OddLockPaths(t *testing.T) {
	m := vfstest.NewMem("/d")
	for name, mode := range map[string]fs.FileMode{
		"link": fs.ModeSymlink, "folder": fs.ModeDir, "fifo": fs.ModeNamedPipe, "socket": fs.ModeSocket,
		"device": fs.ModeDevice | fs.ModeCharDevice,
	} {
		m.Put("/d/"+name+".lock", []byte("other"), mode|0o600)
		o := Options{Timeout: -1, Seams: &seam.Set{FS: m}}
		before := len(m.Names("/d"))
		for verb, f := range map[string]func() error{
			"acquire": func() error { _, err := Acquire(t.Context(), "/d/"+name, o); return err },
			"status":  func() error { _, err := Status("/d/"+name, o); return err },
			"unlock":  func() error { _, err := Unlock(t.Context(), "/d/"+name, UnlockOptions{Seams: o.Seams}); return err },
			"force": func() error {
				_, err := Unlock(t.Context(), "/d/"+name, UnlockOptions{Force: true, Seams: o.Seams})
				return err
			},
		} {
			if err := f(); !errors.Is(err, ErrNotLockFile) || errors.Is(err, ErrHeld) {
				t.Errorf("%s of a %s: %v", verb, name, err)
			}
		}
		if data, _ := m.Get("/d/" + name + ".lock"); string(data) != "other" || len(m.Names("/d")) != before {
			t.Errorf("%s: touched", name)
		}
	}
}

func TestOddGuardedPaths(t *testing.T) {
	m := vfstest.NewMem("/d", "/d/folder", "/e")
	m.Put("/d/fifo", nil, fs.ModeNamedPipe|0o600)
	m.Put("/d/loop", []byte("loop"), fs.ModeSymlink|0o777)
	m.Put("/d/link", []byte("../e/file"), fs.ModeSymlink|0o777)
	o := Options{Timeout: -1, Seams: &seam.Set{FS: m}}
	for path, want := range map[string]error{
		"/d/folder": ErrNotRegular, "/d/fifo": ErrNotRegular, "/d/loop": syscall.ELOOP, "/d/": ErrNotRegular,
		"/missing/file": fs.ErrNotExist, "/d/folder/x/y": fs.ErrNotExist,
		"/d/" + strings.Repeat("n", format.MaxNameLen-format.LongestSuffix+1): ErrNameTooLong,
	} {
		if _, err := Acquire(t.Context(), path, o); !errors.Is(err, want) || errors.Is(err, ErrHeld) {
			t.Errorf("%.20s: %v, want %v", path, err, want)
		}
	}
	// The longest name that fits goes all the way through a break.
	long := "/d/" + strings.Repeat("n", format.MaxNameLen-format.LongestSuffix)
	m.Put(long+".lock", []byte(lockOf(noSuchPID, "")), 0o600)
	h, err := Acquire(t.Context(), long, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	// Two names of one file have one lock, beside the file.
	h, err = Acquire(t.Context(), "/d/link", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Names("/e"); fmt.Sprint(got) != "[file.lock]" {
		t.Errorf("the lock is %q", got)
	}
	if _, err := Acquire(t.Context(), "/e/file", o); !errors.Is(err, ErrHeld) {
		t.Errorf("the file's own name: %v", err)
	}
	if err := errors.Join(h.Commit([]byte("x")), h.Release()); err != nil {
		t.Fatal(err)
	}
	if text, _ := m.Get("/d/link"); string(text) != "../e/file" {
		t.Errorf("the link was replaced: %q", text)
	}
}

// The other family's file is refused by every verb, its bytes untouched; so is any file under a kernel
// lock, however empty.
func TestKernelLock(t *testing.T) {
	eachClass(t, func(w *world) {
		for _, content := range []string{
			`{"agent_id":"a","schema_version":"file_lock_holder_v0","pid":2147483646}` + "\n",
			`{"schema_version":"file_lock_holder_v9","pid":1,"token":"x"}   ` + "\n",
			`{"agent_id":"a","schema_version":"file_lock_holder_v0","pid":21`,
		} {
			w.plant("log.lock", content)
			_, err := Acquire(t.Context(), w.path, w.real())
			_, serr := Status(w.path, w.real())
			_, uerr := Unlock(t.Context(), w.path, UnlockOptions{Seams: w.real().Seams})
			_, ferr := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
			for _, err := range []error{err, serr, uerr, ferr} {
				if !errors.Is(err, ErrKernelLock) || errors.Is(err, ErrHeld) {
					t.Errorf("%v", err)
				}
			}
			if w.read("log.lock") != content {
				t.Errorf("the record is now %q", w.read("log.lock"))
			}
			w.only("log.lock")
		}
		fl, ok := vfs.OS().(vfs.Flocker)
		if !ok || w.class != classes[0] {
			return
		}
		w.plant("log.lock", "")
		release, held, err := fl.TryFlock(w.lock)
		if held || err != nil {
			t.Fatal(held, err)
		}
		force := UnlockOptions{Force: true, Seams: w.real().Seams}
		if _, err := Unlock(t.Context(), w.path, force); !errors.Is(err, ErrKernelLock) {
			t.Errorf("force under a kernel lock: %v", err)
		}
		w.only("log.lock")
		w.nil(release())
		_, err = Unlock(t.Context(), w.path, force)
		w.nil(err)
		w.only()
	})
}

// A refused rename is a permission error at once, and leaves no claim behind.
func TestStickyFolder(t *testing.T) {
	eachClass(t, func(w *world) {
		w.dies(66)
		w.plant("log.lock", lockOf(66, testHost))
		o := w.actorFS(7, vfstest.Wrap(classFS(w.class), func(op vfstest.Op) error {
			if op.Kind == "rename" && op.Name == w.lock {
				return &os.LinkError{Op: "rename", Old: op.Name, New: op.New, Err: syscall.EPERM}
			}
			return nil
		}))
		_, err := Acquire(t.Context(), w.path, o)
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrHeld) {
			t.Errorf("acquire: %v", err)
		}
		_, err = Unlock(t.Context(), w.path, UnlockOptions{Seams: o.Seams})
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrHeld) {
			t.Errorf("unlock: %v", err)
		}
		w.only("log.lock")
	})
}

// A huge lock is read no further than it must be, and force removes it by its whole content.
func TestCase25HugeLock(t *testing.T) {
	w := newWorld(t, classes[0])
	w.nil(os.WriteFile(w.lock, []byte(`{"pid":7}`), 0o600))
	w.nil(os.Truncate(w.lock, 1<<30))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.dies(7)
	_ = w.refused(w.actor(8), Unreadable)
	w.nil(os.Truncate(w.lock, 64<<20)) // hashing a whole gibibyte twice takes too long for a test
	_, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(8).Seams})
	w.nil(err)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("allocated %d bytes", n)
	}
	w.only()
}
