package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// What went wrong with other tools' lock files, by the numbers that all tests of such cases go by. Numbers
// that are not here are in the files for one system, or concern other parts.

// A holder on another host cannot be judged. The wait ends at its deadline, and the error names the host.
func TestCase05ForeignHostHolderReturnsAtTheDeadline(t *testing.T) {
	s := newSim(t, classes[0])
	s.mem.Put(simLock, []byte(lockOf(66, "elsewhere")), 0o600)
	s.dead[66] = true
	o := s.actor(7, nil)
	o.Timeout = DefaultTimeout
	_, err := Acquire(t.Context(), simPath, o)
	var held *HeldError
	if !errors.As(err, &held) || held.State.Holder.State != OtherHost || !strings.Contains(err.Error(), "pid 66 on elsewhere") {
		t.Fatalf("the error is %v", err)
	}
	if slept := o.Seams.Clock.(*jumpClock).slept; held.Waited < DefaultTimeout || slept > 2*DefaultTimeout {
		t.Errorf("waited %v, slept %v", held.Waited, slept)
	}
	if data, _ := s.mem.Get(simLock); string(data) != lockOf(66, "elsewhere") {
		t.Errorf("the lock is now %q", data)
	}
}

func TestCase06SkewedTimes(t *testing.T) { eachClass(t, testSkewedTimes) }

// A lock is its holder's whatever its age.
func TestCase08OldLockIsKept(t *testing.T) {
	eachClass(t, func(w *world) {
		h, err := Acquire(t.Context(), w.path, w.actor(7))
		w.nil(err)
		old := time.Now().Add(-10000 * time.Hour)
		w.nil(os.Chtimes(w.lock, old, old))
		_ = w.refused(w.actor(8), Alive)
		_, err = Unlock(t.Context(), w.path, UnlockOptions{Seams: w.actor(9).Seams})
		_ = w.isHeld(err, Alive)
		w.nil(h.Fence())
		w.nil(addRecord(h, "a"))
		w.nil(h.Release())
		w.records("a")
		w.only("log")
	})
}

// A holder that was forced out releases late: its successor's lock stays, and is good.
func TestCase09LateRelease(t *testing.T) {
	eachClass(t, func(w *world) {
		first, err := Acquire(t.Context(), w.path, w.actor(7))
		w.nil(err)
		_, err = Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(9).Seams})
		w.nil(err)
		second, err := Acquire(t.Context(), w.path, w.actor(8))
		w.nil(err)
		before := w.read("log.lock")
		if err := first.Release(); !errors.Is(err, ErrLost) {
			t.Errorf("the late release: %v", err)
		}
		if got := w.read("log.lock"); got != before {
			t.Errorf("the successor's lock is now %q", got)
		}
		w.nil(second.Fence())
		w.nil(addRecord(second, "b"))
		w.nil(second.Release())
		w.records("b")
		w.only("log")
	})
}

func TestCase11BreakerPaused(t *testing.T) { eachClass(t, testJudgedReplaced) }

// No release unlinks the lock's name, so none can unlink what a waiter has just made there: every one of
// two processes' records is there, and the name is only ever moved.
func TestCase12ReleaseBesideAWaiter(t *testing.T) {
	eachClass(t, func(w *world) {
		const each = 100
		var want []string
		var children []*child
		for _, id := range []string{"a", "b"} {
			for n := range each {
				want = append(want, fmt.Sprintf("%s.%d", id, n))
			}
			children = append(children, start(t, order{Path: w.path, Class: w.class, Do: "update", ID: id, Times: each}))
		}
		for _, c := range children {
			c.succeeds()
		}
		w.records(want...)
		w.only("log")

		fsys := vfstest.Wrap(classFS(w.class), func(op vfstest.Op) error {
			if op.Kind == "remove" && op.Name == w.lock {
				t.Error("the lock's name was unlinked")
			}
			return nil
		})
		w.update(w.actorFS(7, fsys), "c")
		w.dies(66)
		w.plant("log.lock", lockOf(66, testHost))
		w.update(w.actorFS(7, fsys), "d")
		w.plant("log.lock", lockOf(7, testHost))
		_, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actorFS(9, fsys).Seams})
		w.nil(err)
		w.only("log")
	})
}

// A write that does only its first part is a failure, whichever file it is of: nothing half is published, and
// nothing of it left. Without hard links the lock itself is written under its name: what is left there blocks.
func TestCase13ShortWrites(t *testing.T) {
	for _, class := range classes {
		for _, part := range []string{".lock.pending-", ".lock", ".lock.claim-", ".tmp-"} {
			if part == ".lock.pending-" && class == classes[1] || part == ".lock" && class == classes[0] {
				continue // no such write
			}
			t.Run(class+"/"+part, func(t *testing.T) {
				s := newSim(t, class)
				s.dead[66] = true
				if part == ".lock.claim-" {
					s.mem.Put(simLock, []byte(lockOf(66, testHost)), 0o600)
				}
				in := &vfstest.Injector{Err: &vfstest.Short{N: 3, Err: syscall.ENOSPC}, Only: func(op vfstest.Op) bool {
					rest := strings.TrimPrefix(vfsBase(op.Name), "log")
					return op.Kind == "write" && (rest == part || part != ".lock" && strings.HasPrefix(rest, part))
				}}
				committed, err := runUpdate(s, s.actor(7, in.Before))
				if committed || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrHeld) || len(in.Hits()) != 1 {
					t.Fatalf("committed %v, %v, after %v", committed, err, in.Hits())
				}
				if data, _ := s.mem.Get(simPath); string(data) != "before\n" {
					t.Errorf("the file has %q", data)
				}
				want := []string{"log"}
				switch part {
				case ".lock":
					want = append(want, "log.lock")
					if st, err := Status(simPath, s.actor(8, nil)); err != nil || st.Holder.State != Unreadable {
						t.Errorf("what is left is %+v, %v", st, err)
					}
				case ".lock.claim-":
					want = append(want, "log.lock") // the dead holder's, as it was
					if data, _ := s.mem.Get(simLock); string(data) != lockOf(66, testHost) {
						t.Errorf("the lock is now %q", data)
					}
				}
				if names := s.mem.Names("/d"); !slices.Equal(names, want) {
					t.Errorf("left: %q, want %q", names, want)
				}
			})
		}
	}
}

func vfsBase(name string) string {
	_, base := vfs.Split(name)
	return base
}

// Quota, too many open files, no locks, no space, no permission: each is itself, never "held", and nothing
// is left of the attempt.
func TestCase21ErrorsByTheirNames(t *testing.T) {
	for _, class := range classes {
		for _, errno := range []syscall.Errno{
			syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOLCK, syscall.ENOSPC, syscall.EROFS, syscall.EACCES,
		} {
			for _, kind := range []string{"create", "open", "write", "list", "rename"} {
				s := newSim(t, class)
				in := &vfstest.Injector{
					Err:    &os.PathError{Op: kind, Path: "x", Err: errno},
					Onward: kind != "rename",
					Only:   func(op vfstest.Op) bool { return op.Kind == kind },
				}
				committed, err := runUpdate(s, s.actor(7, in.Before))
				if committed || !errors.Is(err, errno) || errors.Is(err, ErrHeld) || errors.Is(err, ErrLost) {
					t.Errorf("%s: %v at %s: committed %v, %v", class, errno, kind, committed, err)
				}
				if errno == syscall.EACCES && !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%s: %v is no permission error", class, err)
				}
				if data, _ := s.mem.Get(simPath); string(data) != "before\n" {
					t.Errorf("%s: %v at %s: the file has %q", class, errno, kind, data)
				}
			}
		}
	}
}

func TestCase22LinkFails(t *testing.T) { eachClass(t, testLinkFails) }

func TestCase25UnreadableLock(t *testing.T) { eachClass(t, testUnreadable) }

// Whose lock it is is shown before anything is removed, and if it is another's by then nothing is.
func TestCase35ForcedUnlockShowsTheLockFirst(t *testing.T) {
	eachClass(t, func(w *world) {
		for _, changed := range []bool{false, true} {
			w.plant("log.lock", lockOf(7, testHost))
			newer := lockOf(8, testHost)
			var shown State
			o := onStep(w.actor(9), func(step seam.Step) {
				if changed && step == seam.BreakRenamed {
					t.Error("a lock that was not shown was moved")
				}
			})
			_, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: o.Seams, Show: func(st State) {
				shown = st
				w.only("log.lock")
				if changed {
					w.plant("log.lock", newer)
				}
			}})
			if shown.Holder.PID != 7 || shown.Holder.Hostname != testHost {
				t.Errorf("shown %+v", shown)
			}
			if !changed {
				w.nil(err)
				w.only()
				continue
			}
			if !errors.Is(err, ErrChanged) || w.read("log.lock") != newer {
				t.Errorf("a lock that changed: %v, now %q", err, w.read("log.lock"))
			}
		}
	})
}
