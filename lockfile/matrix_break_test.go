package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

func testTwoBreakers(w *world) {
	w.dies(66)
	for range 20 {
		w.plant("log.lock", lockOf(66, testHost))
		var inside, broke atomic.Int32
		var running []chan error
		for _, pid := range []int64{7, 8} {
			o := onStep(w.actor(pid), func(s seam.Step) {
				switch s {
				case seam.BreakClaimed:
					if inside.Add(1) > 1 {
						w.t.Error("two breakers went on together")
					}
				case seam.BreakRemoved:
					broke.Add(1)
					inside.Add(-1)
				}
			})
			running = append(running, in(func() error { return update(w.t.Context(), w.path, o, "a") }))
		}
		for _, done := range running {
			w.nil(<-done)
		}
		if broke.Load() != 1 {
			w.t.Errorf("%d breakers removed the lock", broke.Load())
		}
		w.records("a", "a")
		w.only("log")
		w.nil(os.Remove(w.path))
	}
	// Forced to overlap: whoever lists later sees the other's claim and gives way.
	w.plant("log.lock", lockOf(66, testHost))
	hook, reached, resume := stall(seam.BreakClaimed)
	done := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "a") })
	<-reached
	if held := w.refused(w.actor(8), Dead); !errors.Is(held, ErrBusy) || !strings.Contains(held.Claim, "pid 7") {
		w.t.Errorf("the second breaker: %v", held)
	}
	resume()
	w.nil(<-done)
	w.only("log")
}

func testJudgedReplaced(w *world) {
	w.dies(66)
	w.plant("log.lock", lockOf(66, testHost))
	hook, reached, resume := stall(seam.BreakJudged)
	slow, waiting := waits(onStep(w.actor(7), func(s seam.Step) {
		hook(s)
		if s == seam.BreakRenamed {
			w.t.Error("the fresh lock was moved")
		}
	}))
	done := in(func() error { return update(w.t.Context(), w.path, slow, "slow") })
	<-reached
	h, err := Acquire(w.t.Context(), w.path, w.actor(8))
	w.nil(err)
	before, err := vfs.OS().Lstat(w.lock)
	w.nil(err)
	resume()
	<-waiting // it has judged the fresh lock and waits for it
	after, err := vfs.OS().Lstat(w.lock)
	if err != nil || after.Ino != before.Ino || after.ModTime != before.ModTime {
		w.t.Errorf("the fresh lock was moved: %v", err)
	}
	w.nil(addRecord(h, "fresh"))
	w.nil(h.Release())
	w.nil(finish(waiting, done))
	w.records("fresh", "slow")
	w.only("log")
}

func testBreakerStalled(w *world) {
	w.dies(66)
	w.plant("log.lock", lockOf(66, testHost))
	lock := w.read("log.lock")
	hook, reached, resume := stall(seam.BreakClaimed)
	done := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "breaker") })
	<-reached
	// Past any window.
	for _, name := range w.names() {
		old := time.Now().Add(-time.Hour)
		w.nil(os.Chtimes(filepath.Join(w.dir, name), old, old))
	}
	for range 3 {
		if held := w.refused(w.actor(8), Dead); !strings.Contains(held.Error(), "pid 66 on here (dead)") {
			w.t.Errorf("%v does not name the dead holder", held)
		}
	}
	// Unlock waits a second, of its own clock, and names the claim's owner.
	clock := &jumpClock{}
	set := *w.actor(9).Seams
	set.Clock = clock
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: &set})
	held := w.isHeld(err, Dead)
	if !errors.Is(err, ErrBusy) || !strings.Contains(held.Claim, "pid 7") || clock.slept < unlockBusyWait {
		w.t.Errorf("unlock while the claim is live: %v after %v", err, clock.slept)
	}
	if got := w.read("log.lock"); got != lock {
		w.t.Errorf("the lock is now %q", got)
	}
	resume()
	w.nil(<-done)
	w.records("breaker")
	w.only("log")
}

func testReleaserStalled(w *world) {
	hook, reached, resume := stall(seam.ReleaseRenamed)
	done := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "releaser") })
	<-reached
	w.update(w.actor(8), "a")
	w.update(w.actor(9), "b")
	h, err := Acquire(w.t.Context(), w.path, w.actor(8))
	w.nil(err)
	before := w.read("log.lock")
	resume()
	w.nil(<-done)
	w.only("log", "log.lock")
	if got := w.read("log.lock"); got != before {
		w.t.Error("the releaser touched a live lock")
	}
	w.nil(addRecord(h, "c"))
	w.nil(h.Release())
	w.records("releaser", "a", "b", "c")
	w.only("log")
}

func testReleaserInWindow(w *world) {
	hook, reached, resume := stall(seam.ReleaseRenamed)
	releaser := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "releaser") })
	<-reached
	hook2, fenced, goOn := stall(seam.CommitFenced)
	holder := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(8), hook2), "holder") })
	<-fenced
	before := w.read("log.lock")
	resume()
	w.nil(<-releaser)
	if got := w.read("log.lock"); got != before {
		w.t.Error("the releaser touched a live lock")
	}
	goOn()
	w.nil(<-holder)
	w.update(w.actor(9), "third")
	w.records("releaser", "holder", "third")
	w.only("log")
}

func testUnlockNone(w *world) {
	shown := false
	o := UnlockOptions{Seams: w.actor(9).Seams, Show: func(State) { shown = true }}
	for _, o.Force = range []bool{false, true} {
		u, err := Unlock(w.t.Context(), w.path, o)
		if err != nil || u.State.Locked || u.Removed || shown {
			w.t.Errorf("%+v, %v, shown %v", u, err, shown)
		}
	}
	w.only()
	_, err := Unlock(w.t.Context(), w.dir, o)
	if !errors.Is(err, ErrNotRegular) {
		w.t.Errorf("a folder: %v", err)
	}
	w.only()
}

func testUnlockDead(w *world) {
	w.dies(7)
	leftover := "log.lock.broken-" + seam.Step("00000000") + "-7-aa"
	w.plant("log.lock", lockOf(7, testHost))
	w.plant(string(leftover), "not unlock's to sweep")
	var shown State
	u, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: w.actor(9).Seams, Show: func(s State) {
		shown = s
		w.only("log.lock", string(leftover))
	}})
	if err != nil || !u.Removed || u.State.Holder.PID != 7 || shown.Holder != u.State.Holder {
		w.t.Fatalf("%+v, shown %+v, %v", u, shown, err)
	}
	w.only(string(leftover))
	w.update(w.actor(8), "a")
	w.records("a")
}

func testUnlockRefused(w *world) {
	w.dies(66)
	impossible := format.Lock{PID: 1 << 40, Host: testHost, Token: "t"}
	for _, tt := range []struct {
		lock  string
		state HolderState
	}{
		{lockOf(7, testHost), Alive},
		{lockOf(66, "elsewhere"), OtherHost},
		{string(impossible.Encode()), Alive}, // the stand-in judge calls it so; the real one unknown
	} {
		w.plant("log.lock", tt.lock)
		u, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: w.actor(9).Seams, UnlockHint: "stile dispatch unlock --agent A"})
		held := w.isHeld(err, tt.state)
		if u.Removed || !strings.Contains(held.Error(), "stile dispatch unlock --force --agent A") ||
			!strings.Contains(held.Error(), whenToForce) {
			w.t.Errorf("%+v, %v", u, err)
		}
		if got := w.read("log.lock"); got != tt.lock {
			w.t.Errorf("the lock is now %q", got)
		}
	}
	w.plant("log.lock", string(impossible.Encode()))
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: &seam.Set{FS: classFS(w.class)}})
	if !errors.Is(err, ErrHeld) {
		w.t.Errorf("an impossible pid: %v", err)
	}
	w.only("log.lock")
}

func testUnlockForce(w *world) {
	for _, lock := range []string{lockOf(7, testHost), lockOf(7, "elsewhere"), "", "{", strings.Repeat("x", 3*format.MaxLock)} {
		w.plant("log.lock", lock)
		shown := 0
		u, err := Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(9).Seams, Show: func(State) {
			shown++
			w.only("log.lock")
		}})
		if err != nil || !u.Removed || shown != 1 {
			w.t.Fatalf("%.20q: %+v, %v", lock, u, err)
		}
		w.only()
	}
	// A live holder forced out before its fence finds the loss there and retries.
	hook, reached, resume := stall(seam.HoldRead)
	done := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "holder") })
	<-reached
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(9).Seams})
	w.nil(err)
	w.update(w.actor(8), "other")
	resume()
	w.nil(<-done)
	w.records("holder", "other")
	w.only("log")

	// Another breaker's claim does not stop it.
	w.dies(66)
	w.plant("log.lock", lockOf(66, testHost))
	hook, reached, resume = stall(seam.BreakClaimed)
	done = in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(7), hook), "breaker") })
	<-reached
	u, err := Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(9).Seams})
	if err != nil || !u.Removed {
		w.t.Errorf("force beside a claim: %+v, %v", u, err)
	}
	resume()
	w.nil(<-done)

	// What was shown and what is removed are one lock.
	w.plant("log.lock", lockOf(7, testHost))
	newer := lockOf(8, testHost)
	o := onStep(w.actor(9), func(s seam.Step) {
		if s == seam.BreakRenamed {
			w.t.Error("a lock that was not shown was moved")
		}
	})
	_, err = Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: o.Seams, Show: func(State) {
		w.plant("log.lock", newer)
	}})
	if !errors.Is(err, ErrChanged) || w.read("log.lock") != newer {
		w.t.Errorf("a lock that changed: %v, now %q", err, w.read("log.lock"))
	}
	w.nil(os.Remove(w.lock))
	w.nil(os.Remove(w.path))
	testStopped(w)
}

// testBoardCheck is Status with its bounded line, at library level.
func testBoardCheck(w *world) {
	o := w.actor(9)
	st, err := Status(w.path, o)
	if err != nil || st.Locked || st.Stale() {
		w.t.Errorf("no lock: %+v, %v", st, err)
	}
	h, err := Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	if st, err = Status(w.path, o); err != nil || !st.Locked || st.Stale() {
		w.t.Errorf("a fresh lock: %+v, %v", st, err)
	}
	w.nil(h.Release())

	host := strings.Repeat("h", 255)
	for _, tt := range []struct {
		pid  int64
		host string
		most int
	}{
		{1234567, testHost, 346}, {1234567, host, 346}, {-1 << 63, host, 362}, {1<<63 - 1, strings.Repeat("\x1b", 255), 362},
	} {
		l := format.Lock{PID: tt.pid, Host: tt.host, Token: "t", AcquiredAt: "2020-" + strings.Repeat("9", 300)}
		w.plant("log.lock", string(l.Encode()))
		old := time.Now().Add(-10000 * 24 * time.Hour)
		w.nil(os.Chtimes(w.lock, old, old))
		before := w.read("log.lock")
		st, err := Status(w.path, o)
		w.nil(err)
		if !st.Stale() || st.Holder.Hostname != tt.host || st.LockPath != w.lock {
			w.t.Errorf("%+v is not whole", st)
		}
		line := st.Line("stile dispatch unlock")
		if n := utf8.RuneCountInString(line); n > tt.most {
			w.t.Errorf("%d characters: %s", n, line)
		}
		if !strings.HasPrefix(line, "stile dispatch unlock") || strings.Contains(line, "\x1b") ||
			strings.Index(line, "pid") > 60 || !strings.HasSuffix(line, whenToForce) {
			w.t.Errorf("the line is %q", line)
		}
		if got := w.read("log.lock"); got != before {
			w.t.Error("status changed the lock")
		}
		w.only("log.lock")
	}
	w.dies(7)
	w.plant("log.lock", lockOf(7, testHost))
	if st, err = Status(w.path, o); err != nil || strings.Contains(st.Line("stile unlock"), "force") {
		w.t.Errorf("a dead holder: %s, %v", st.Line("stile unlock"), err)
	}
	w.only("log.lock")
}
