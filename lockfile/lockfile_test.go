package lockfile

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
	"syscall"
	"testing"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func eachClass(t *testing.T, f func(*world)) {
	for _, class := range classes {
		t.Run(class, func(t *testing.T) { f(newWorld(t, class)) })
	}
}

// A forced unlock F confirms A's lock; A releases; B acquires; F moves B's lock; B's fence fails and B
// runs again; F puts B's old lock back. Without a remedy B now waits for its own live pid until it
// ends, and so does everybody else.
func TestOwnLockComesBack(t *testing.T) {
	eachClass(t, func(w *world) {
		a, err := Acquire(t.Context(), w.path, w.actor(1))
		w.nil(err)
		hook, confirmed, move := stall(seam.BreakConfirmed)
		hook2, moved, putBack := stall(seam.BreakMismatch)
		o := onStep(w.actor(9), func(s seam.Step) { hook(s); hook2(s) })
		forced := in(func() error {
			_, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: o.Seams})
			return err
		})
		<-confirmed
		w.nil(a.Release())
		optionsB := w.actor(2)
		b, err := Acquire(t.Context(), w.path, optionsB)
		w.nil(err)
		move()
		<-moved
		if err := addRecord(b, "b"); !errors.Is(err, ErrLost) {
			t.Fatalf("b's fence: %v", err)
		}
		if err := b.Release(); !errors.Is(err, ErrLost) {
			t.Fatalf("b's release: %v", err)
		}
		putBack()
		if err := <-forced; !errors.Is(err, ErrChanged) {
			t.Fatalf("unlock: %v", err)
		}
		w.only("log.lock")
		_ = w.refused(w.actor(3), Alive) // a block for everybody else, until b writes again
		optionsB.Timeout = -1
		w.update(optionsB, "b")
		w.records("b")
		w.only("log")
	})
}

// A hold whose release failed is let go by the next writer of the process, or by a second Release, and
// by one of them only.
func TestReleaseFails(t *testing.T) {
	for _, again := range []string{"acquire", "release", "both"} {
		t.Run(again, func(t *testing.T) { eachClass(t, func(w *world) { releaseFails(w, again) }) })
	}
}

func releaseFails(w *world, again string) {
	fail := false
	o := w.actorFS(7, vfstest.Wrap(classFS(w.class), func(op vfstest.Op) error {
		if op.Kind == "rename" && strings.HasSuffix(op.Name, ".lock") && fail {
			fail = false
			return syscall.EIO
		}
		return nil
	}))
	o.Timeout = -1
	h, err := Acquire(w.t.Context(), w.path, o)
	w.nil(err)
	fail = true
	if err := h.Release(); !errors.Is(err, syscall.EIO) {
		w.t.Fatal(err)
	}
	if h.Fence() == nil || h.Commit(nil) == nil {
		w.t.Fatal("an ended hold goes on")
	}
	_ = w.refused(w.actor(8), Alive)
	if again == "release" {
		w.nil(h.Release())
		w.nil(h.Release())
		w.only()
		return
	}
	w.update(o, "a")
	if again == "both" {
		other, err := Acquire(w.t.Context(), w.path, w.actor(8))
		w.nil(err)
		before := w.read("log.lock")
		w.nil(h.Release())
		if w.read("log.lock") != before {
			w.t.Fatal("a second release took another's lock")
		}
		w.nil(other.Release())
	}
	w.only("log")
}

func TestLossIsForGood(t *testing.T) {
	eachClass(t, func(w *world) {
		h, err := Acquire(t.Context(), w.path, w.actor(7))
		w.nil(err)
		content := w.read("log.lock")
		w.nil(os.Rename(w.lock, w.lock+".away"))
		if err := h.Fence(); !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
		w.nil(os.Rename(w.lock+".away", w.lock))
		if w.read("log.lock") != content {
			t.Fatal("not back")
		}
		if err := h.Commit(nil); !errors.Is(err, ErrLost) {
			t.Fatalf("others may have committed while it was away: %v", err)
		}
		w.nil(h.Release()) // it is ours to take away, all the same
		w.only()
	})
}

// A commit of somebody else since the read is never overwritten, though the lock is there and ours at
// the fence: a holder forced out in its last step, or a lock that was away for a whole other hold.
func TestStale(t *testing.T) {
	eachClass(t, func(w *world) {
		replace := func(content string) {
			w.plant("other", content)
			w.nil(os.Rename(filepath.Join(w.dir, "other"), w.path))
		}
		for _, before := range []string{"", "old"} {
			if before != "" {
				replace(before)
			}
			h, err := Acquire(t.Context(), w.path, w.actor(7))
			w.nil(err)
			if _, err := h.Read(); (err != nil) != (before == "") {
				t.Fatal(err)
			}
			replace("others' work")
			if err := h.Commit([]byte("x")); !errors.Is(err, ErrStale) || errors.Is(err, ErrLost) {
				t.Errorf("%q: %v", before, err)
			}
			if got := w.read("log"); got != "others' work" {
				t.Errorf("the file has %q", got)
			}
			// Having read it anew, or never, the holder may.
			_, err = h.Read()
			w.nil(err)
			w.nil(h.Commit([]byte("y")))
			w.nil(h.Commit([]byte("z")))
			w.nil(h.Release())
			w.only("log")
			w.nil(os.Remove(w.path))
		}
		replace("old")
		h, err := Acquire(t.Context(), w.path, w.actor(7))
		w.nil(err)
		_, err = h.Read()
		w.nil(err)
		w.nil(os.Remove(w.path))
		if err := h.Commit([]byte("x")); !errors.Is(err, ErrStale) {
			t.Errorf("a file that went: %v", err)
		}
		w.nil(h.Release())
		w.only()
	})
}

func TestContext(t *testing.T) {
	w := newWorld(t, classes[0])
	h, err := Acquire(t.Context(), w.path, w.actor(7))
	w.nil(err)
	ctx := h.Context()
	if _, err := Acquire(ctx, w.path, w.actor(7)); !errors.Is(err, ErrReentry) {
		t.Errorf("re-entry: %v", err)
	}
	inner, err := Acquire(ctx, w.path+"2", w.actor(7))
	w.nil(err)
	if _, err := Acquire(inner.Context(), w.path, w.actor(7)); !errors.Is(err, ErrReentry) {
		t.Errorf("re-entry from within another hold: %v", err)
	}
	w.nil(inner.Release())
	w.nil(ctx.Err())
	w.nil(h.Release())
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrReleased) {
		t.Errorf("after the release: %v", context.Cause(ctx))
	}
	h, err = Acquire(t.Context(), w.path, w.actor(7))
	w.nil(err)
	ctx = h.Context()
	w.nil(os.Remove(w.lock))
	if err := h.Fence(); !errors.Is(err, ErrLost) {
		t.Errorf("fence: %v", err)
	}
	if !errors.Is(context.Cause(ctx), ErrLost) {
		t.Errorf("after the loss: %v", context.Cause(ctx))
	}
	if err := h.Release(); !errors.Is(err, ErrLost) {
		t.Errorf("release: %v", err)
	}
	if h.Context().Err() == nil {
		t.Error("the context of an ended hold lives")
	}
}

func TestCancel(t *testing.T) {
	eachClass(t, func(w *world) {
		h, err := Acquire(t.Context(), w.path, w.actor(7))
		w.nil(err)
		defer h.Release()
		for _, watching := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			o, waiting := waits(w.actor(8))
			if watching {
				o = w.actorFS(8, classFS(classes[0])) // the system's own, which can watch
			}
			done := in(func() error { _, err := Acquire(ctx, w.path, o); return err })
			if !watching {
				<-waiting
			}
			cancel()
			err := <-done
			if !errors.Is(err, context.Canceled) {
				t.Errorf("watching %v: %v", watching, err)
			}
			if _, err := Acquire(ctx, w.path, o); !errors.Is(err, context.Canceled) {
				t.Errorf("a context that was over before: %v", err)
			}
		}
		w.only("log.lock")
	})
}

// Neighbours that share the host name but not the pid namespace: their names and their locks are
// never judged by pids that mean something else here.
func TestNeighbourNamespace(t *testing.T) {
	eachClass(t, func(w *world) {
		const theirs = "deadbeef"
		w.dies(7)
		names := []string{
			"log.lock.pending-" + theirs + "-7-00112233445566778899aabb",
			"log.lock.broken-" + theirs + "-7-00112233445566778899aabb",
			"log.tmp-" + theirs + "-7-00112233445566778899aabb",
		}
		for _, name := range names {
			w.plant(name, "x")
		}
		w.update(w.actor(8), "a")
		w.only(append([]string{"log"}, "log.lock.broken-deadbeef-7-00112233445566778899aabb",
			"log.lock.pending-deadbeef-7-00112233445566778899aabb", names[2])...)

		// A neighbour's claim on a dead lock is a live breaker's.
		w.plant("log.lock", lockOf(7, testHost))
		r := &reading{data: []byte(lockOf(7, testHost)), ended: true}
		claim := "log.lock.claim-" + r.key() + "-" + theirs + "-7-00112233445566778899aabb"
		w.plant(claim, "{}")
		if held := w.refused(w.actor(8), Dead); !errors.Is(held, ErrBusy) {
			t.Errorf("%v", held)
		}
		w.nil(os.Remove(filepath.Join(w.dir, claim)))
		w.update(w.actor(8), "b")

		// Outside the initial namespace, names that say no host are left alone as well.
		o := w.actor(8)
		self := proc.Holder{PID: 8, Host: testHost}
		o.Seams.Process = seam.NewProcess(func() proc.Holder { return self }, func() string { return theirs + "" }, false)
		w.plant("log.tmp-7-0a1b", "x")
		w.update(o, "c")
		w.read("log.tmp-7-0a1b")
	})
}

func TestModeAndOwner(t *testing.T) {
	for _, tt := range []struct {
		uid, gid     int // of the process; the file is 5:6
		mode         fs.FileMode
		lock, commit fs.FileMode
		owner, group int
	}{
		{0, 0, 0o640, 0o640, 0o640, 5, 6},                                 // root keeps everything
		{5, 6, 0o664, 0o664, 0o664, 5, 6},                                 // the owner
		{5, 6, 0o755 | fs.ModeSetuid, 0o644, 0o755 | fs.ModeSetuid, 5, 6}, // bits that are no lock's
		{7, 6, 0o660 | fs.ModeSetuid, 0o660, 0o660, 7, 6},                 // a group member cannot give it away
		{7, 8, 0o664 | fs.ModeSetgid, 0o644, 0o644, 7, 8},                 // nor its group: the new one gets what all have
		{7, 8, 0o060, 0o600, 0, 7, 8},
		{5, 6, 0o440, 0o640, 0o440, 5, 6}, // the holder must be able to use its own lock
	} {
		m := vfstest.NewMem("/d")
		m.Umask = 0o022
		m.UID, m.GID = 5, 6
		m.Put("/d/f", []byte("old"), tt.mode)
		m.UID, m.GID = tt.uid, tt.gid
		o := Options{Timeout: -1, Seams: &seam.Set{FS: m}}
		h, err := Acquire(t.Context(), "/d/f", o)
		if err != nil {
			t.Fatal(err)
		}
		lock, _ := m.Lstat("/d/f.lock")
		err = errors.Join(h.Commit([]byte("new")), h.Release())
		file, _ := m.Lstat("/d/f")
		if err != nil || lock.Mode != tt.lock || file.Mode != tt.commit || file.UID != tt.owner || file.GID != tt.group {
			t.Errorf("%v by %d:%d: lock %v, committed %v of %d:%d, %v", tt.mode, tt.uid, tt.gid, lock.Mode, file.Mode,
				file.UID, file.GID, err)
		}
	}
	m := vfstest.NewMem("/d")
	m.Umask = 0o027
	h, err := Acquire(t.Context(), "/d/f", Options{Seams: &seam.Set{FS: m}})
	if err != nil {
		t.Fatal(err)
	}
	lock, _ := m.Lstat("/d/f.lock")
	err = errors.Join(h.Commit(nil), h.Release())
	if file, _ := m.Lstat("/d/f"); err != nil || lock.Mode != 0o600 || file.Mode != 0o640 {
		t.Errorf("a new file: lock %v, file %v, %v", lock.Mode, file.Mode, err)
	}
}

func TestDisplay(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		strings.Repeat("a", 32):   strings.Repeat("a", 32),
		strings.Repeat("a", 33):   strings.Repeat("a", 29) + "...",
		strings.Repeat("é", 33):   strings.Repeat("é", 29) + "...",
		"a\x1b[31mb":              `a\x1b[31mb`,
		"a\nb\\":                  `a\nb\`,
		"\xff":                    `\xff`,
		"\u202e":                  `\u202e`,
		strings.Repeat("\x00", 9): strings.Repeat(`\x00`, 7) + `\...`,
	} {
		if got := CapForDisplay(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// An error and its remedy keep long and hostile names where they must be whole, and off the terminal.
func TestHeldErrorText(t *testing.T) {
	m := vfstest.NewMem("/d", "/d/"+strings.Repeat("a", 240))
	path := "/d/" + strings.Repeat("a", 240) + "/it's"
	l := format.Lock{PID: 1234567, Host: strings.Repeat("h", 200) + "\x1b", Token: "t", AcquiredAt: "\x07"}
	m.Put(path+".lock", l.Encode(), 0o600)
	_, err := Acquire(t.Context(), path, Options{Timeout: -1, Seams: &seam.Set{FS: m}})
	text := fmt.Sprint(err)
	volume := ""
	if runtime.GOOS == "windows" {
		root, err := filepath.Abs("/")
		w := &world{t: t}
		w.nil(err)
		volume = filepath.VolumeName(root)
	}
	if !strings.HasPrefix(text, "lock "+volume+filepath.FromSlash("/d/"+strings.Repeat("a", 29)+".../it's.lock")+" is held by pid 1234567 on "+strings.Repeat("h", 29)+"... (") {
		t.Errorf("it begins %q", text)
	}
	if !strings.Contains(text, "stile unlock --force "+display.ShellWord(volume+filepath.FromSlash(path))) || bytes.ContainsAny([]byte(text), "\x1b\x07") {
		t.Errorf("it reads %q", text)
	}
}

// A lock of ours has the four members that every implementation reads, once each, and proc.
func TestOwnLockMembers(t *testing.T) {
	w := newWorld(t, classes[0])
	h, err := Acquire(t.Context(), w.path, w.real())
	w.nil(err)
	l, err := format.ParseLock([]byte(w.read("log.lock")))
	w.nil(err)
	if l.Host != proc.Self().Host || l.Proc == nil {
		t.Errorf("our lock is %+v", l)
	}
	for _, member := range []string{`"pid":`, `"hostname":`, `"token":`, `"acquiredAt":`} {
		if strings.Count(w.read("log.lock"), member) != 1 {
			t.Errorf("%s is not there once", member)
		}
	}
	w.nil(h.Release())
}
