package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
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
	w.isHeld(err, Unreadable)
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
	w.refused(w.real(), Alive)
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
				w.refused(w.actor(8), Alive)
				w.nil(os.Remove(w.lock))
			}
		}
	}
}

// testPublishFails: whatever goes wrong after the exclusive step, nothing is removed but the writer's
// own pending file, and a lock that has replaced ours stays.
func testPublishFails(w *world) {
	for _, kind := range []string{"write", "close"} {
		stage, own := "log.lock.pending-", true
		if w.class == classes[1] {
			stage, own = "log.lock", false
		}
		other := lockOf(9, testHost)
		base := classFS(w.class)
		var failed bool
		fsys := vfstest.Wrap(base, func(op vfstest.Op) error {
			_, name := filepath.Split(op.Name)
			if op.Kind != kind || name != stage && !(own && strings.HasPrefix(name, stage)) || failed {
				return nil
			}
			failed = true
			if !own {
				// An operator has forced the half-made lock out, and a new holder is in.
				w.nil(os.Remove(w.lock))
			}
			w.plant("log.lock", other)
			return syscall.EIO
		})
		o := w.actorFS(8, fsys)
		o.Timeout = -1
		_, err := Acquire(w.t.Context(), w.path, o)
		if !failed || !errors.Is(err, syscall.EIO) || errors.Is(err, ErrHeld) {
			w.t.Fatalf("%s: %v", kind, err)
		}
		w.only("log.lock")
		if got := w.read("log.lock"); got != other {
			w.t.Errorf("the replacement is now %q", got)
		}
		w.nil(os.Remove(w.lock))
	}
}

func testLinkFails(w *world) {
	for i, errno := range []syscall.Errno{
		syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.EXDEV, syscall.EMLINK, syscall.ENOSYS,
	} {
		fsys := noLinkFS(classFS(classes[0]), errno)
		var want []string
		for n := range 2 {
			id := fmt.Sprintf("%d.%d", i, n)
			want = append(want, id)
			w.update(w.actorFS(7, fsys), id)
			w.only("log")
		}
		for _, dead := range []bool{false, true} {
			if dead {
				w.dies(66)
				w.plant("log.lock", lockOf(66, testHost))
			}
			var running []chan error
			for n := range 8 {
				id := fmt.Sprintf("%d.%v.%d", i, dead, n)
				want = append(want, id)
				running = append(running, in(func() error {
					return update(w.t.Context(), w.path, w.actorFS(int64(10+n), fsys), id)
				}))
			}
			for _, done := range running {
				w.nil(<-done)
			}
			w.only("log")
		}
		w.records(want...)
		w.nil(os.Remove(w.path))
	}
	// A missing name is itself: the pending file or the folder has gone.
	for _, kind := range []string{"link"} {
		in := &vfstest.Injector{Err: &os.LinkError{Err: syscall.ENOENT}, Only: func(op vfstest.Op) bool { return op.Kind == kind }}
		_, err := Acquire(w.t.Context(), w.path, w.actorFS(7, vfstest.Wrap(classFS(classes[0]), in.Before)))
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrHeld) {
			w.t.Errorf("ENOENT from link: %v", err)
		}
		w.only()
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

var nameShape = regexp.MustCompile(
	`^log(\.tmp|\.lock\.(pending|broken|claim-[0-9a-f]{16}))-[0-9a-f]{8}-[0-9]+-([0-9a-f]{24})$`)

func testUniqueNames(w *world) {
	w.dies(66)
	seen := map[string]int{}
	kinds := map[string]bool{}
	fsys := vfstest.Wrap(classFS(w.class), func(op vfstest.Op) error {
		name := op.Name
		if op.Kind == "rename" {
			name = op.New
		}
		if op.Kind != "create" && op.Kind != "rename" {
			return nil
		}
		base := filepath.Base(name)
		if base == "log" || base == "log.lock" {
			return nil
		}
		m := nameShape.FindStringSubmatch(base)
		if m == nil {
			w.t.Errorf("made %q", base)
			return nil
		}
		seen[m[3]]++
		kinds[strings.SplitN(m[1], "-", 2)[0]] = true
		return nil
	})
	for range 3 {
		w.plant("log.lock", lockOf(66, testHost))
		w.update(w.actorFS(7, fsys), "a")
	}
	for attempt, n := range seen {
		if n != 1 {
			w.t.Errorf("attempt %s made %d names", attempt, n)
		}
	}
	for _, kind := range []string{".tmp", ".lock.pending", ".lock.broken", ".lock.claim"} {
		if !kinds[kind] {
			w.t.Errorf("no %s name was made", kind)
		}
	}
}

// earlier is what earlier builds leave when they die: the first and the second shape.
func earlier(pid int64, host string) map[string]string {
	tag := proc.HostTagFor(host, nil)
	return map[string]string{
		"log.lock.claim-123456":                                           strings.Replace(lockOf(pid, host), fmt.Sprintf(`,"hostname":%q`, host), "", 1),
		fmt.Sprintf("log.lock.broken-%d-0a1b2c", pid):                     "x",
		fmt.Sprintf("log.tmp-%d-0a1b2c3d", pid):                           "x",
		"log.lock.claim-h0123456789abcdef":                                lockOf(pid, host),
		fmt.Sprintf("log.lock.pending-%s-%d-0123456789ab", tag, pid):      "x",
		fmt.Sprintf("log.lock.broken-%s-%d-1700000000000-0a1b", tag, pid): "x",
		fmt.Sprintf("log.tmp-%s-%d-0a1b2c3d", tag, pid):                   "x",
		fmt.Sprintf("log.lock.claim-0123456789abcdef-%s-%d-aa", tag, pid): "x",
		fmt.Sprintf("log.lock.broken-%s-%d-00112233445566aa", tag, pid):   "x",
		fmt.Sprintf("log.tmp-%s-%d-00112233445566778899aabb", tag, pid):   "x",
		fmt.Sprintf("log.lock.pending-%s-%d-0011223344556677", tag, pid):  "x",
		fmt.Sprintf("log.lock.claim-ffff456789abcdef-%s-%d-ab", tag, pid): "x",
		fmt.Sprintf("log.lock.broken-%s-%d-1700000000001-ffff", tag, pid): "x",
	}
}

func testEarlierDead(w *world) {
	w.dies(7)
	for _, lock := range []string{"", lockOf(7, ""), lockOf(7, testHost)} {
		for name, content := range earlier(7, testHost) {
			w.plant(name, content)
		}
		if lock != "" {
			w.plant("log.lock", lock)
		}
		o := w.actor(8)
		o.Timeout = -1
		w.update(o, "a")
		w.only("log")
	}
}

func testLeftoversStay(w *world) {
	// Names that no build makes, however like them they look, are nobody's business.
	keep := map[string]string{
		"log.lock.claim-h0123456789abcde0": "not json", "log.lock.claim-99": "", "log.lock.claim-98": `{"pid":"7"}`,
		"log.tmp": "x", "log.tmp-": "x", "log.tmp-7": "x", "log.tmp-007-aa": "x", "log.tmp-7-zz": "x",
		"log.lock.pending-7-aa": "x", "log.lock.broken-7-aa-1-2-3": "x", "log.tmp-7-AA": "x", "log2.tmp-7-aa": "x",
		"log.lock.claim-0123-aaaaaaaa-7-aa": "x", "log.lock.broken--7-aa": "x", "log.bak": "x",
		"log.tmp-99999999999999999999-aa": "x",
	}
	w.dies(7)
	for name, content := range earlier(6, testHost) { // alive
		keep[name] = content
	}
	for name, content := range earlier(7, "elsewhere") { // pid 7 is dead here, and not theirs
		if strings.Contains(name, proc.HostTagFor("elsewhere", nil)) || strings.Contains(name, "claim-h") {
			keep[name] = content
		}
	}
	var names []string
	for name, content := range keep {
		w.plant(name, content)
		names = append(names, name)
	}
	o := w.actor(8)
	o.Timeout = -1
	w.update(o, "a")
	w.update(o, "b")
	w.records("a", "b")
	slices.Sort(names)
	w.only(append([]string{"log"}, names...)...)
	for name, content := range keep {
		if got := w.read(name); got != content {
			w.t.Errorf("%s is now %q", name, got)
		}
	}
}

func testSweeperStalled(w *world) {
	w.dies(7)
	dead := "log.tmp-" + proc.HostTagFor(testHost, nil) + "-7-00112233445566778899aabb"
	live := "log.tmp-" + proc.HostTagFor(testHost, nil) + "-6-00112233445566778899aabb"
	w.plant(dead, "x")
	w.plant(live, "x")
	hook, reached, resume := stall(seam.SweepJudged)
	done := in(func() error { return update(w.t.Context(), w.path, onStep(w.actor(8), hook), "sweeper") })
	<-reached
	w.update(w.actor(9), "other")
	h, err := Acquire(w.t.Context(), w.path, w.actor(10))
	w.nil(err)
	before := w.read("log.lock")
	resume()
	// The sweeper goes on to wait for the live lock, which it has not touched.
	w.nil(addRecord(h, "holder"))
	if got := w.read("log.lock"); got != before {
		w.t.Error("the sweeper touched a live lock")
	}
	w.nil(h.Release())
	w.nil(<-done)
	w.records("sweeper", "other", "holder")
	w.only("log", live)
}
