package lockfile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
)

// The kill rows: a child process kills itself with SIGKILL at the step, and real proof of death judges
// it.

// noSuchPID is a pid that no system gives out.
const noSuchPID = 1<<31 - 2

// real is options with the real identity and judgement.
func (w *world) real() Options {
	return Options{NoSync: true, Timeout: -1, Seams: &seam.Set{FS: classFS(w.class)}}
}

func plantDead(w *world) { w.plant("log.lock", lockOf(noSuchPID, proc.Self().Host)) }

func plantLeftover(w *world) {
	w.plant(fmt.Sprintf("log.tmp-%s-%d-%s", proc.HostTag(), noSuchPID, "00112233445566778899aabb"), "old")
}

// kill makes the test of a row: after the setup the child dies in its update, at the step; the next
// write, which gets one try, clears what is left, and no committed record is missing.
func kill(step seam.Step, setup func(*world), committed []string) func(*world) {
	return func(w *world) {
		w.update(w.real(), "before")
		if setup != nil {
			setup(w)
		}
		start(w.t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Kill: step}).dies()
		w.update(w.real(), "after")
		w.records(append([]string{"before", "after"}, committed...)...)
		w.only("log")
	}
}

// killAcquireOpened: with hard links the lock appears whole and there is no such step.
func killAcquireOpened(w *world) {
	if w.class == classes[0] {
		var steps []seam.Step
		w.update(onStep(w.real(), func(s seam.Step) { steps = append(steps, s) }), "a")
		for _, s := range steps {
			if s == seam.AcquireOpened {
				w.t.Error("with hard links the lock was opened before it was written")
			}
		}
		w.records("a")
		w.only("log")
		return
	}
	w.update(w.real(), "before")
	start(w.t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Kill: seam.AcquireOpened}).dies()
	if got := w.read("log.lock"); got != "" {
		w.t.Fatalf("the lock left has %q", got)
	}
	w.emptyLockBlocks()
	w.update(w.real(), "after")
	w.records("before", "after")
	w.only("log")
}

// emptyLockBlocks checks that the empty lock is a block that names the remedy, and applies it.
func (w *world) emptyLockBlocks() {
	w.t.Helper()
	held := w.refused(w.real(), Unreadable)
	for _, want := range []string{"empty or unreadable", "stile unlock --force " + w.path} {
		if !strings.Contains(held.Error(), want) {
			w.t.Errorf("%q does not say %q", held, want)
		}
	}
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: w.real().Seams})
	_ = w.isHeld(err, Unreadable)
	u, err := Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
	if err != nil || !u.Removed {
		w.t.Fatalf("unlock --force: %+v, %v", u, err)
	}
}

// pauseBefore is where a child must stand for the world to change under it, so that what it moves next
// is another's lock.
func pauseBefore(step seam.Step) seam.Step {
	if strings.HasPrefix(string(step), "break:") {
		return seam.BreakConfirmed
	}
	return seam.CommitRenamed
}

// moveOther runs a child until it has moved the lock of a live holder and been killed at the step. The
// holder, this process, has read the file.
func (w *world) moveOther(step seam.Step) *Hold {
	w.t.Helper()
	w.update(w.real(), "before")
	if strings.HasPrefix(string(step), "break:") {
		plantDead(w)
	}
	c := start(w.t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Pause: pauseBefore(step), Kill: step})
	c.reaches(pauseBefore(step))
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
	w.nil(err)
	h, err := Acquire(w.t.Context(), w.path, w.real())
	w.nil(err)
	_, err = h.Read()
	w.nil(err)
	c.goOn()
	c.dies()
	return h
}

// committed says which records of the child must be there: a releaser has committed, a breaker not yet.
func committed(step seam.Step) []string {
	if strings.HasPrefix(string(step), "release:") {
		return []string{"child", "before"}
	}
	return []string{"before"}
}

// killMismatch: the child moved a live holder's lock and died. Before the put-back the holder has lost
// it: a contender commits, the holder is fenced out and commits after it, under a fresh lock. After the
// put-back the holder still has it.
func killMismatch(step seam.Step) func(*world) {
	return func(w *world) {
		h := w.moveOther(step)
		if strings.HasSuffix(string(step), ":put-back") {
			w.nil(addRecord(h, "holder"))
			w.nil(h.Release())
			w.update(w.real(), "after")
			w.records(append(committed(step), "holder", "after")...)
			w.only("log")
			return
		}
		w.update(w.real(), "contender")
		w.fencedOut(h)
		w.records(append(committed(step), "holder", "contender")...)
		w.only("log")
	}
}

// fencedOut checks that the holder commits nothing under the lock it has lost, and then everything
// under a fresh one.
func (w *world) fencedOut(h *Hold) {
	w.t.Helper()
	if err := h.Commit([]byte("lost\n")); !errors.Is(err, ErrLost) {
		w.t.Fatalf("commit under a lost lock: %v", err)
	}
	if err := h.Release(); !errors.Is(err, ErrLost) {
		w.t.Fatalf("release of a lost lock: %v", err)
	}
	w.update(w.real(), "holder")
}

// killPutBackOpened: without hard links a put-back is a copy, and can die when the lock is there but
// empty. With them there is no such step, and the kill comes after.
func killPutBackOpened(opened, putBack seam.Step) func(*world) {
	return func(w *world) {
		if w.class == classes[0] {
			killMismatch(putBack)(w)
			return
		}
		h := w.moveOther(opened)
		if got := w.read("log.lock"); got != "" {
			w.t.Fatalf("the lock left has %q", got)
		}
		w.emptyLockBlocks()
		w.update(w.real(), "contender")
		w.fencedOut(h)
		w.records(append(committed(opened), "holder", "contender")...)
		w.only("log")
	}
}

func killUnlock(w *world) {
	w.update(w.real(), "before")
	for _, step := range []seam.Step{
		seam.BreakJudged, seam.BreakClaimed, seam.BreakConfirmed, seam.BreakRenamed, seam.BreakRemoved,
	} {
		for _, do := range []string{"unlock", "force"} {
			plantDead(w)
			start(w.t, order{Path: w.path, Class: w.class, Do: do, Kill: step}).dies()
			id := fmt.Sprintf("%s-%s", do, step)
			w.update(w.real(), id)
			if !strings.Contains(w.read("log"), id) {
				w.t.Errorf("%s is lost", id)
			}
			w.only("log")
		}
	}
}

// testEightWriters: eight processes at once against a dead holder's lock, 25 times.
func testEightWriters(w *world) {
	trials := 25
	if runtime.GOOS == "windows" || testing.Short() { // where it takes long to start a process, and under the race detector, too
		trials = 3
	}
	var want []string
	for n := range trials {
		plantDead(w)
		var children []*child
		for i := range 8 {
			id := fmt.Sprintf("%d.%d", n, i)
			want = append(want, id)
			children = append(children, start(w.t, order{Path: w.path, Class: w.class, Do: "update", ID: id}))
		}
		for _, c := range children {
			c.succeeds()
		}
	}
	w.records(want...)
	w.only("log")
}

// A real holder is stopped, forced out, and continued: its commit is refused and made again.
func testStopped(w *world) {
	w.update(w.real(), "before")
	c := start(w.t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Pause: seam.HoldRead})
	c.reaches(seam.HoldRead)
	_, err := Unlock(context.Background(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
	w.nil(err)
	o := w.real()
	o.Timeout = time.Minute
	w.update(o, "other")
	c.goOn()
	c.succeeds()
	w.records("before", "child", "other")
	w.only("log")
}
