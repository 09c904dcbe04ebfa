package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

func TestUpdate(t *testing.T) {
	for _, l := range locks {
		t.Run(l.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			o := UpdateOptions{Lock: l.lock}

			err := Update(t.Context(), path, add("x"), o)
			is(t, err, ErrNoFile)
			is(t, err, fs.ErrNotExist)
			only(t, dir)

			o.Create = true
			var seen []byte
			must(t, Update(t.Context(), path, func(old []byte) ([]byte, error) {
				seen = old
				return []byte("one"), nil
			}, o))
			if seen != nil {
				t.Errorf("a missing file was %q", seen)
			}
			holds(t, path, "one")
			only(t, dir, append(l.leaves, "f")...)

			must(t, os.Chmod(path, 0o640))
			must(t, os.Symlink("f", filepath.Join(dir, "link")))
			must(t, Update(t.Context(), filepath.Join(dir, "link"), add(" two"), o))
			holds(t, path, "one two")
			if st, err := os.Lstat(path); err != nil || st.Mode() != 0o640 {
				t.Errorf("the mode is %v, %v", st.Mode(), err)
			}
			only(t, dir, append(l.leaves, "f", "link")...)

			// An error of the change changes nothing, and is what comes back.
			stop := errors.New("stop")
			if err := Update(t.Context(), path, func([]byte) ([]byte, error) { return []byte("no"), stop }, o); err != stop { //nolint:errorlint // it must be the very same
				t.Errorf("got %v", err)
			}
			must(t, Rewrite(t.Context(), path, func(old io.Reader, w io.Writer) error {
				_, err := io.Copy(w, io.MultiReader(old, strings.NewReader(" three")))
				return err
			}, o))
			err = Rewrite(t.Context(), path, func(_ io.Reader, w io.Writer) error {
				return errors.Join(vfs.WriteAll(w, []byte("half")), stop)
			}, o)
			is(t, err, stop)
			holds(t, path, "one two three")
			only(t, dir, append(l.leaves, "f", "link")...)
		})
	}
}

func TestUpdateIfChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "same")
	before, err := os.Stat(path)
	must(t, err)
	landed := 0
	o := UpdateOptions{IfChanged: true, NoSync: true, AfterWrite: func(context.Context, Hold) error { landed++; return nil }}
	rewrite := func(chunks ...string) {
		t.Helper()
		must(t, Rewrite(t.Context(), path, func(_ io.Reader, w io.Writer) error {
			for _, c := range chunks {
				if _, err := io.WriteString(w, c); err != nil {
					return err
				}
			}
			return nil
		}, o))
	}
	must(t, Update(t.Context(), path, func([]byte) ([]byte, error) { return []byte("same"), nil }, o))
	rewrite("same")
	rewrite("s", "", "am", "e")
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) || landed != 0 {
		t.Fatalf("a file that did not change was replaced (%v), AfterWrite %d times", err, landed)
	}
	for i, want := range []string{"samE", "sam", "same1", "", "x"} {
		rewrite(want)
		holds(t, path, want)
		if landed != i+1 {
			t.Fatalf("%q: AfterWrite %d times, want %d", want, landed, i+1)
		}
	}
	// A missing file and an empty one are not the same.
	must(t, os.Remove(path))
	o.Create = true
	rewrite()
	holds(t, path, "")
	must(t, os.Remove(path))
	must(t, Update(t.Context(), path, add(""), o))
	holds(t, path, "")
}

// The retry deadline: after a lost hold the change runs again until the lock's timeout has passed, each
// hold gets the time that is left, and what was lost landed nothing.
func TestUpdateRetriesUntilItsDeadline(t *testing.T) {
	for _, lost := range []error{kernlock.ErrLost, lockfile.ErrLost} {
		mem := vfstest.NewMem("/d")
		mem.Put("/d/f", []byte("0"), 0o644)
		clock := &stepClock{now: time.Now()}
		l := &fakeLock{timeout: 10 * time.Second}
		fences := 0
		l.fence = func() error {
			fences++
			clock.move(4 * time.Second)
			return fmt.Errorf("away: %w", lost)
		}
		runs := 0
		err := Update(t.Context(), "/d/f", func(old []byte) ([]byte, error) { runs++; return append(old, '1'), nil },
			UpdateOptions{Lock: l, Seams: &seam.Set{FS: mem, Clock: clock}})
		is(t, err, lost)
		if errors.Is(err, ErrCommitted) {
			t.Errorf("%v says that it landed", err)
		}
		// At 0, 4 and 8 s; at 12 s the time is over.
		if fmt.Sprint(l.acquired) != "[10s 6s 2s]" || runs != 3 || fences != 3 {
			t.Errorf("acquired with %v, %d runs, %d fences", l.acquired, runs, fences)
		}
		if data, _ := mem.Get("/d/f"); string(data) != "0" {
			t.Errorf("the file holds %q", data)
		}
		if names := mem.Names("/d"); len(names) != 1 {
			t.Errorf("left: %q", names)
		}
	}
}

// A fence that cannot tell, and a change that says "lost" of another lock, are no reason to run again.
func TestUpdateDoesNotRetryOtherErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "0")
	runs := 0
	count := func(old []byte) ([]byte, error) { runs++; return append(old, '1'), nil }
	l := &fakeLock{timeout: time.Hour, fence: func() error { return syscall.EIO }}
	is(t, Update(t.Context(), path, count, UpdateOptions{Lock: l}), syscall.EIO)
	l.fence = nil
	err := Update(t.Context(), path, func([]byte) ([]byte, error) { runs++; return nil, kernlock.ErrLost }, UpdateOptions{Lock: l})
	is(t, err, kernlock.ErrLost)
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
	holds(t, path, "0")
}

// What comes after the change never repeats it, and says that it has landed.
func TestUpdateNeverRepeatsWhatLanded(t *testing.T) {
	for _, after := range []error{lockfile.ErrLost, kernlock.ErrLost, syscall.EIO} {
		path := filepath.Join(t.TempDir(), "f")
		put(t, path, "0")
		l := &fakeLock{timeout: time.Hour}
		calls := 0
		err := Update(t.Context(), path, add("1"), UpdateOptions{Lock: l, NoSync: true, AfterWrite: func(_ context.Context, h Hold) error {
			calls++
			holds(t, path, "01")
			if h.Fence() != nil || len(l.acquired) != 1 {
				t.Error("it does not run in the hold")
			}
			l.fence = func() error { return after }
			return h.Fence()
		}})
		is(t, err, after)
		is(t, err, ErrCommitted)
		if calls != 1 {
			t.Errorf("AfterWrite ran %d times", calls)
		}
		holds(t, path, "01")
	}
}

// A folder that cannot be synced after the rename: landed, AfterWrite runs, and the error says both.
func TestUpdateNotDurable(t *testing.T) {
	mem := vfstest.NewMem("/d")
	mem.Put("/d/f", []byte("0"), 0o644)
	fsys := vfstest.Wrap(mem, func(op vfstest.Op) error {
		if op.Kind == "syncdir" {
			return syscall.EIO
		}
		return nil
	})
	after := 0
	err := Update(t.Context(), "/d/f", add("1"), UpdateOptions{
		Lock: &fakeLock{timeout: time.Hour}, Seams: &seam.Set{FS: fsys},
		AfterWrite: func(context.Context, Hold) error { after++; return nil },
	})
	is(t, err, ErrNotDurable)
	is(t, err, ErrCommitted)
	is(t, err, syscall.EIO)
	if data, _ := mem.Get("/d/f"); string(data) != "01" || after != 1 {
		t.Errorf("the file holds %q, AfterWrite %d times", data, after)
	}
}

// An operator forces the lock of a writer away at each point before its fence; another writes; then the
// writer goes on. Both changes are there.
func TestUpdateAfterAForcedUnlock(t *testing.T) {
	for _, step := range []seam.Step{seam.AcquirePublished, seam.HoldRead, seam.CommitTempWritten} {
		t.Run(string(step), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			put(t, path, "[\n]\n")
			other := actor(2, vfs.OS(), nil)
			var once sync.Once
			runs := 0
			victim := actor(1, vfs.OS(), func(s seam.Step) {
				if s == seam.HoldRead {
					runs++
				}
				if s == step {
					once.Do(func() {
						forceAway(t, path, other)
						must(t, Append(t.Context(), path, []byte(`"other"`), other))
					})
				}
			})
			must(t, Append(t.Context(), path, []byte(`"victim"`), victim))
			holds(t, path, "[\n  \"other\",\n  \"victim\"\n]\n")
			only(t, dir, "f")
			if runs != 2 {
				t.Errorf("the file was read %d times, want 2", runs)
			}
		})
	}
}

// A kernel lock's file that is deleted under its holder: the same.
func TestUpdateAfterADeletedLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "0")
	runs := 0
	must(t, Update(t.Context(), path, func(old []byte) ([]byte, error) {
		if runs++; runs == 1 {
			must(t, os.Remove(path+".lock"))
			must(t, Update(t.Context(), path, add("2"), UpdateOptions{}))
		}
		return append(old, '1'), nil
	}, UpdateOptions{}))
	holds(t, path, "021")
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
}

// Each kind of file that cannot be changed is refused by its own name, before any lock file is made.
func TestBadTargets(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("folder"), 0o755))
	must(t, os.Symlink("folder", at("link")))
	long := strings.Repeat("n", 210)
	put(t, at(long), "x")
	before, err := os.ReadDir(dir)
	must(t, err)
	for name, want := range map[string]error{
		"folder": ErrNotRegular, "link": ErrNotRegular, "missing": ErrNoFile, "missing/f": fs.ErrNotExist,
		long: kernlock.ErrNameTooLong, "": kernlock.ErrUsage,
	} {
		path := at(name)
		if name == "" {
			path = ""
		}
		is(t, Update(t.Context(), path, add("x"), UpdateOptions{}), want)
		is(t, Rewrite(t.Context(), path, func(io.Reader, io.Writer) error { return nil }, UpdateOptions{}), want)
		if name != "missing" {
			is(t, Append(t.Context(), path, []byte("1"), UpdateOptions{}), want)
		}
		if name != "missing" && name != long { // lines need no temp file, so their names may be longer
			is(t, AppendLine(t.Context(), path, []byte("1"), LineOptions{}), want)
		}
	}
	after, err := os.ReadDir(dir)
	must(t, err)
	if len(after) != len(before) {
		t.Errorf("something was made: %v", after)
	}
}

// What dead writers left beside the file is swept under a kernel lock too.
func TestUpdateSweepsUnderAKernelLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	put(t, path, "0")
	s := (*seam.Set)(nil).Or()
	temp := fmt.Sprintf("f.tmp-%s-%d-0123456789abcdef01234567", s.Process.Tag(), deadPID(t))
	foreign := "f.tmp-00000000-4711-0123456789abcdef01234567"
	put(t, filepath.Join(dir, temp), "half")
	put(t, filepath.Join(dir, foreign), "half")
	must(t, Update(t.Context(), path, add("1"), UpdateOptions{}))
	only(t, dir, "f", "f.lock", foreign)
}

// A panic in a change lets the lock go.
func TestUpdateReleasesInAPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "0")
	func() {
		defer func() { recover() }()
		_ = Update(t.Context(), path, func([]byte) ([]byte, error) { panic("!") }, UpdateOptions{})
	}()
	must(t, Update(t.Context(), path, add("1"), UpdateOptions{Lock: KernelLock(kernlock.Options{Policy: kernlock.SingleFlight})}))
	holds(t, path, "01")
}

// A program without the lock writes the file between the read and the commit: its change is not lost,
// however it writes, and the update runs again on it.
func TestUpdateNoticesAChangeWithoutTheLock(t *testing.T) {
	for _, l := range locks {
		for name, write := range map[string]func(path string) error{
			"in place": func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
			"renamed over": func(path string) error {
				return errors.Join(os.WriteFile(path+".new", []byte("other"), 0o600), os.Rename(path+".new", path))
			},
			"removed": os.Remove,
		} {
			for _, kind := range []string{"Update", "Rewrite", "missing"} {
				if kind == "missing" && name == "removed" {
					continue // there is nothing to remove
				}
				t.Run(l.name+"/"+name+"/"+kind, func(t *testing.T) {
					dir := t.TempDir()
					path := filepath.Join(dir, "f")
					want := "other+"
					if kind != "missing" {
						put(t, path, "old")
					}
					if name == "removed" {
						want = "+"
					}
					runs := 0
					meanwhile := func() {
						if runs++; runs == 1 {
							must(t, write(path))
						}
					}
					o := UpdateOptions{Lock: l.lock, Create: true, NoSync: true}
					if kind == "Rewrite" {
						must(t, Rewrite(t.Context(), path, func(old io.Reader, w io.Writer) error {
							data, err := io.ReadAll(old)
							meanwhile()
							return errors.Join(err, vfs.WriteAll(w, append(data, '+')))
						}, o))
					} else {
						must(t, Update(t.Context(), path, func(old []byte) ([]byte, error) {
							meanwhile()
							return append(old, '+'), nil
						}, o))
					}
					holds(t, path, want)
					if runs != 2 {
						t.Errorf("%d runs", runs)
					}
				})
			}
		}
	}
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "old")
	err := Update(t.Context(), path, func([]byte) ([]byte, error) {
		return []byte("new"), os.WriteFile(path, []byte("other"), 0o600)
	}, UpdateOptions{Lock: &fakeLock{}})
	is(t, err, ErrStale)
	holds(t, path, "other")
}

// Another file of the same size and time is another file.
func TestUpdateNoticesAnotherInode(t *testing.T) {
	mem := vfstest.NewMem("/d")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(text string) {
		mem.Put("/d/f", []byte(text), 0o644)
		mem.SetTime("/d/f", at)
	}
	write("old")
	runs := 0
	must(t, Update(t.Context(), "/d/f", func(old []byte) ([]byte, error) {
		if runs++; runs == 1 {
			write("new")
		}
		return append(old, '+'), nil
	}, UpdateOptions{Lock: &fakeLock{timeout: time.Hour}, Seams: &seam.Set{FS: mem}}))
	if got, _ := mem.Get("/d/f"); string(got) != "new+" || runs != 2 {
		t.Errorf("the file holds %q after %d runs", got, runs)
	}
}

// What is no plain file is not even opened: opening a device can do things.
func TestUpdateDoesNotOpenDevices(t *testing.T) {
	for _, kind := range []fs.FileMode{fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSymlink, fs.ModeSocket} {
		mem := vfstest.NewMem("/d")
		mem.Put("/d/f", nil, kind|0o644)
		fsys := vfstest.Wrap(mem, func(op vfstest.Op) error {
			if op.Kind == "open" {
				t.Errorf("%v was opened", kind)
			}
			return nil
		})
		o := UpdateOptions{Lock: &fakeLock{timeout: time.Hour}, Seams: &seam.Set{FS: fsys}}
		is(t, Update(t.Context(), "/d/f", add("1"), o), ErrNotRegular)
		is(t, Append(t.Context(), "/d/f", []byte("1"), o), ErrNotRegular)
	}
}

// A lock that turns out to guard another file than the one that was resolved is let go at once.
func TestLockOfAnotherFile(t *testing.T) {
	for _, l := range locks {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		put(t, path, "x")
		must(t, os.Symlink("f", filepath.Join(dir, "link")))
		h, err := l.lock.Acquire(t.Context(), filepath.Join(dir, "link"), time.Second)
		if err == nil || h != nil || !strings.Contains(err.Error(), "moved") {
			t.Errorf("%s: %v, %v", l.name, h, err)
		}
		must(t, Update(t.Context(), path, add("y"), UpdateOptions{Lock: l.lock, NoSync: true}))
		only(t, dir, append(l.leaves, "f", "link")...)
	}
}
