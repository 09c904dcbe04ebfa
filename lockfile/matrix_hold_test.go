package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
)

func testFree(w *world) {
	o := w.actor(7)
	h, err := Acquire(w.t.Context(), w.path, o)
	w.nil(err)
	w.only("log.lock")
	l, err := format.ParseLock([]byte(w.read("log.lock")))
	w.nil(err)
	if l.PID != 7 || l.Host != testHost || len(l.Token) != 24 || l.Token != h.Token() {
		w.t.Errorf("the lock says %+v", l)
	}
	if at, ok := l.Time(); !ok || time.Since(at).Abs() > time.Hour {
		w.t.Errorf("acquired at %q", l.AcquiredAt)
	}
	w.nil(h.Fence())
	w.nil(addRecord(h, "a"))
	w.nil(h.Release())
	w.records("a")
	w.only("log")
}

func testLiveShort(w *world) {
	h, err := Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	before := w.read("log.lock")
	held := w.refused(w.actor(8), Alive)
	if !strings.Contains(held.Error(), "pid 7 on here (alive)") {
		w.t.Errorf("%v does not name the holder", held)
	}
	o := w.actor(8)
	o.Timeout = 20 * time.Millisecond
	_, err = Acquire(w.t.Context(), w.path, o)
	if w.isHeld(err, Alive).Waited < o.Timeout {
		w.t.Errorf("gave up early: %v", err)
	}
	if got := w.read("log.lock"); got != before {
		w.t.Error("the lock was touched")
	}
	w.nil(h.Release())
	w.only()
}

// ages are file times that mean nothing.
var ages = []time.Duration{0, StaleAfter + time.Second, 11 * time.Minute, time.Hour, 1000 * time.Hour}

// neverBroken checks that the lock that stands there is not broken, whatever its file time.
func (w *world) neverBroken(state HolderState) {
	w.t.Helper()
	before := w.read("log.lock")
	for _, age := range ages {
		at := time.Now().Add(-age)
		w.nil(os.Chtimes(w.lock, at, at))
		held := w.refused(w.actor(8), state)
		if !strings.Contains(held.Error(), "stile unlock --force "+w.path) {
			w.t.Errorf("%q does not name the remedy", held)
		}
		if got := w.read("log.lock"); got != before {
			w.t.Fatalf("at the age of %v the lock was touched", age)
		}
	}
	w.nil(os.Remove(w.lock))
	w.only()
}

func testLiveAnyAge(w *world) {
	h, err := Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	old := time.Now().Add(-time.Hour)
	w.nil(os.Chtimes(w.lock, old, old))
	if _, err := h.Read(); !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatalf("no file yet: %v", err)
	}
	o, waiting := waits(w.actor(8))
	done := in(func() error { return update(w.t.Context(), w.path, o, "contender") })
	for range 5 {
		<-waiting
	}
	w.nil(h.Commit([]byte("holder\n")))
	w.nil(h.Release())
	w.nil(finish(waiting, done))
	w.records("holder", "contender")
	w.only("log")
	w.nil(os.Remove(w.path))

	w.plant("log.lock", lockOf(7, testHost))
	w.neverBroken(Alive)
}

func testDeadHolder(w *world) {
	w.dies(7)
	with := format.Lock{PID: 7, Host: testHost, Token: "t", Proc: &proc.ID{BootID: "b", StartTime: 1}}
	for i, lock := range []string{lockOf(7, testHost), lockOf(7, ""), `{"pid":7}`, string(with.Encode())} {
		w.plant("log.lock", lock)
		o := w.actor(8)
		o.Timeout = -1
		w.update(o, fmt.Sprint(i))
	}
	w.records("0", "1", "2", "3")
	w.only("log")
}

func testUnreadable(w *world) {
	// Each is a block, though it names a dead pid where it names any.
	w.dies(7)
	for _, lock := range []string{
		"", " ", "{", `{"pid":7`, `[7]`, `7`, `"7"`, `null`, `{}`, `{"PID":7}`, `{"pid":"7"}`, `{"pid":7.5}`,
		`{"pid":true}`, `{"pid":7}{"pid":7}`, "\x00\x01\x02", "\xff\xfe", `{"pid":7}` + strings.Repeat(" ", format.MaxLock),
	} {
		w.plant("log.lock", lock)
		w.neverBroken(Unreadable)
	}
	// Only force removes it.
	w.plant("log.lock", "")
	_, err := Unlock(w.t.Context(), w.path, UnlockOptions{Seams: w.actor(8).Seams})
	_ = w.isHeld(err, Unreadable)
	w.only("log.lock")
	_, err = Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(8).Seams})
	w.nil(err)
	w.only()
}

func testOtherHost(w *world) {
	w.dies(7)
	w.plant("log.lock", lockOf(7, "elsewhere"))
	w.neverBroken(OtherHost)
	if len(w.probed) > 0 {
		w.t.Errorf("probed %v", w.probed)
	}
}

func testReusedPID(w *world) {
	// Some process answers to the pid: the test's own, so that the real judgement is asked too.
	w.plant("log.lock", lockOf(int64(os.Getpid()), proc.Self().Host))
	_ = w.refused(w.real(), Alive)
	w.nil(os.Remove(w.lock))
	w.plant("log.lock", lockOf(7, testHost))
	w.neverBroken(Alive)
	if proc.Self().Proc == nil || proc.Self().Proc.StartTime == 0 {
		return
	}
	// With proc it is proven that the holder is not the process that answers: an extension of
	// "provably dead", and broken at once.
	self := proc.Self()
	self.Proc.StartTime++
	reused := format.Lock{PID: self.PID, Host: self.Host, Token: "t", Proc: self.Proc}
	w.plant("log.lock", string(reused.Encode()))
	w.update(w.real(), "a")
	w.records("a")
	w.only("log")
}

func testSkewedTimes(w *world) {
	now := time.Now()
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(format.TimeFormat) }
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		acquired, file time.Duration
		least, most    time.Duration
	}{
		{24 * time.Hour, 24 * time.Hour, 0, 0},
		{24 * time.Hour, -year, 0, 0},
		{-year, 24 * time.Hour, 0, 0},
		{-year, -year, year - time.Hour, year + time.Hour},
		{-year, -time.Hour, time.Hour, time.Hour + time.Minute},
		{-time.Hour, -year, time.Hour, time.Hour + time.Minute},
	} {
		for _, pid := range []int64{7, 66} {
			w.dies(66)
			l := format.Lock{PID: pid, Host: testHost, Token: "t", AcquiredAt: at(tt.acquired)}
			w.plant("log.lock", string(l.Encode()))
			w.nil(os.Chtimes(w.lock, now.Add(tt.file), now.Add(tt.file)))
			st, err := Status(w.path, w.actor(8))
			w.nil(err)
			if age := st.Holder.Age; age < tt.least || age > tt.most {
				w.t.Errorf("acquired %v, file %v: age %v", tt.acquired, tt.file, age)
			}
			if pid == 66 {
				o := w.actor(8)
				o.Timeout = -1
				w.update(o, "a") // the dead one goes whatever its times
				w.nil(os.Remove(w.path))
			} else {
				_ = w.refused(w.actor(8), Alive)
				w.nil(os.Remove(w.lock))
			}
		}
	}
}

func testLost(w *world) {
	h, err := Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	w.nil(os.Remove(w.lock))
	other := lockOf(9, testHost)
	w.plant("log.lock", other)
	if err := h.Commit([]byte("lost\n")); !errors.Is(err, ErrLost) {
		w.t.Fatalf("commit: %v", err)
	}
	w.only("log.lock")
	if err := h.Fence(); !errors.Is(err, ErrLost) {
		w.t.Fatalf("fence: %v", err)
	}
	if err := h.Release(); !errors.Is(err, ErrLost) {
		w.t.Fatalf("release: %v", err)
	}
	w.only("log.lock")
	if got := w.read("log.lock"); got != other {
		w.t.Errorf("the newer lock is now %q", got)
	}
	w.nil(os.Remove(w.lock))

	// The lock of a holder, put back as a copy, is still that holder's: its bytes are its identity.
	h, err = Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	content := w.read("log.lock")
	w.nil(os.Remove(w.lock))
	w.plant("log.lock", content)
	w.nil(h.Commit([]byte("kept\n")))
	w.nil(h.Release())
	w.records("kept")
	w.only("log")
}

// testBoardWrite stands in for the board: the guarded file is committed, the lock is lost, and the
// fence before the second file's rename refuses it. The record stays.
func testBoardWrite(w *world) {
	h, err := Acquire(w.t.Context(), w.path, w.actor(7))
	w.nil(err)
	w.nil(addRecord(h, "a"))
	_, err = Unlock(w.t.Context(), w.path, UnlockOptions{Force: true, Seams: w.actor(9).Seams})
	w.nil(err)
	board := filepath.Join(w.dir, "board")
	if err := h.Fence(); err == nil {
		w.nil(os.WriteFile(board, nil, 0o600))
	} else if !errors.Is(err, ErrLost) {
		w.t.Fatal(err)
	}
	if err := h.Release(); !errors.Is(err, ErrLost) {
		w.t.Fatalf("release: %v", err)
	}
	w.records("a")
	w.only("log")
}
