package lockfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// sim is a folder in memory with the guarded file /d/log, and processes that a test kills at will.
type sim struct {
	t     *testing.T
	mem   *vfstest.Mem
	dead  map[int64]bool
	rand  *rand.ChaCha8
	procs map[int64]*seam.Process
	sync  bool
}

const simPath, simLock = "/d/log", "/d/log.lock"

func newSim(t *testing.T, class string) *sim {
	s := &sim{
		t: t, mem: vfstest.NewMem("/d"), dead: map[int64]bool{},
		rand: rand.NewChaCha8([32]byte{}), procs: map[int64]*seam.Process{},
	}
	if class == classes[1] {
		s.mem.LinkErr = syscall.ENOTSUP
	}
	s.mem.Put(simPath, []byte("before\n"), 0o644)
	return s
}

// actor is the process pid, whose file operations pass the hook. The process remembers from one call
// to the next what a real one would.
func (s *sim) actor(pid int64, hook func(vfstest.Op) error) Options {
	var fsys vfs.FS = s.mem
	if hook != nil {
		fsys = vfstest.Wrap(s.mem, hook)
	}
	if s.procs[pid] == nil {
		self := proc.Holder{PID: pid, Host: testHost}
		s.procs[pid] = seam.NewProcess(func() proc.Holder { return self },
			func() string { return proc.HostTagFor(testHost, nil) }, true)
	}
	return Options{NoSync: !s.sync, Timeout: -1, Seams: &seam.Set{
		FS: fsys, Clock: &jumpClock{}, Rand: s.rand, Process: s.procs[pid],
		Judge: func(h proc.Holder, _ string) proc.Judgement {
			switch {
			case h.Host != "" && h.Host != testHost:
				return proc.Judgement{Verdict: proc.Unknown, Reason: proc.OtherHost}
			case s.dead[h.PID]:
				return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
			}
			return proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
		},
	}}
}

func (s *sim) has(id string) int {
	data, _ := s.mem.Get(simPath)
	return strings.Count("\n"+string(data), "\n"+id+"\n")
}

// scenario is something that process 7 does in a prepared folder. It reports whether a commit of the
// record "a" reported success.
type scenario struct {
	name    string
	prepare func(*sim)
	run     func(*sim, Options) (committed bool, err error)
}

func runUpdate(s *sim, o Options) (bool, error) {
	h, err := Acquire(s.t.Context(), simPath, o)
	if err != nil {
		return false, err
	}
	err = addRecord(h, "a")
	return err == nil, errors.Join(err, h.Release())
}

// replaceLock is what an operator and a new holder, pid 9, do while somebody is at the given step.
func replaceLock(s *sim, o Options, step seam.Step) Options {
	return onStep(o, once(step, func() {
		if _, err := Unlock(s.t.Context(), simPath, UnlockOptions{Force: true, Seams: s.actor(8, nil).Seams}); err != nil {
			s.t.Fatal(err)
		}
		if _, err := Acquire(s.t.Context(), simPath, s.actor(9, nil)); err != nil {
			s.t.Fatal(err)
		}
	}))
}

func plantSimDead(s *sim) {
	s.dead[66] = true
	s.mem.Put(simLock, []byte(lockOf(66, testHost)), 0o600)
	for name, content := range earlier(66, testHost) {
		s.mem.Put("/d/"+name, []byte(content), 0o600)
	}
}

var scenarios = []scenario{
	{"update", func(*sim) {}, runUpdate},
	{"update over a dead holder", plantSimDead, runUpdate},
	{"unlock", plantSimDead, func(s *sim, o Options) (bool, error) {
		_, err := Unlock(s.t.Context(), simPath, UnlockOptions{Seams: o.Seams})
		return false, err
	}},
	{"unlock force", plantSimDead, func(s *sim, o Options) (bool, error) {
		_, err := Unlock(s.t.Context(), simPath, UnlockOptions{Force: true, Seams: o.Seams})
		return false, err
	}},
	{"release moves a newer lock", func(*sim) {}, func(s *sim, o Options) (bool, error) {
		return runUpdate(s, replaceLock(s, o, seam.CommitRenamed))
	}},
	{"break moves a newer lock", plantSimDead, func(s *sim, o Options) (bool, error) {
		return runUpdate(s, replaceLock(s, o, seam.BreakConfirmed))
	}},
}

// recovered checks that the processes 7 and 9 having ended, the next write by process 8 loses nothing
// and leaves nothing. Where blocked may be, one forced unlock is allowed for.
func (s *sim) recovered(what string, mayBlock bool) {
	s.t.Helper()
	s.dead[7], s.dead[9] = true, true
	o := s.actor(8, nil)
	err := update(s.t.Context(), simPath, o, "after")
	if mayBlock && errors.Is(err, ErrHeld) {
		var held *HeldError
		if errors.As(err, &held) && held.State.Holder.State != Unreadable {
			s.t.Fatalf("%s: blocked by %v", what, err)
		}
		if _, err := Unlock(s.t.Context(), simPath, UnlockOptions{Force: true, Seams: o.Seams}); err != nil {
			s.t.Fatalf("%s: unlock --force: %v", what, err)
		}
		err = update(s.t.Context(), simPath, o, "after")
	}
	if err != nil {
		s.t.Fatalf("%s: the next write: %v", what, err)
	}
	if s.has("before") != 1 || s.has("after") != 1 || s.has("a") > 1 {
		data, _ := s.mem.Get(simPath)
		s.t.Fatalf("%s: the records are %q", what, data)
	}
	if names := s.mem.Names("/d"); !slices.Equal(names, []string{"log"}) {
		s.t.Fatalf("%s: left beside the file: %q", what, names)
	}
}

// faulty runs a scenario with its operation n failing in one of the ways, until n is past its end.
func faulty(t *testing.T, class string, sc scenario, way string, check func(s *sim, what string, committed bool, err error)) {
	for n := 0; ; n++ {
		s := newSim(t, class)
		sc.prepare(s)
		in := &vfstest.Injector{At: n, Err: syscall.EIO, Onward: way == "onward", Kill: way == "kill"}
		if way == "unanswered" {
			in.Err = &vfstest.After{Err: syscall.EIO}
		}
		if way == "no space" {
			in.Err = syscall.ENOSPC
		}
		committed, err := sc.run(s, s.actor(7, in.Before))
		hits := in.Hits()
		if len(hits) == 0 {
			if n == 0 {
				t.Fatal("no operation")
			}
			return
		}
		what := fmt.Sprintf("%s at %d, %v", way, n, hits[0])
		// What failed has its own name: the injected one, or the hold's loss where that was arranged.
		arranged := strings.HasSuffix(sc.name, "newer lock") // there the hold is lost, or another's
		injected := errors.Is(err, in.Err) || errors.Is(err, syscall.EIO) || errors.Is(err, vfstest.ErrKilled)
		if err != nil && !injected && !arranged && !(class == classes[1] && errors.Is(err, ErrHeld)) {
			t.Fatalf("%s: the error is %v", what, err)
		}
		if errors.Is(err, ErrHeld) && !arranged && class == classes[0] {
			t.Fatalf("%s: taken for a held lock: %v", what, err)
		}
		if committed && s.has("a") != 1 {
			t.Fatalf("%s: success was reported, and the record is not there", what)
		}
		if !committed && s.has("a") != 0 && way != "unanswered" && way != "kill" {
			t.Fatalf("%s: %v was reported, and the record is there", what, err)
		}
		check(s, what, committed, err)
		if n > 500 {
			t.Fatal("no end")
		}
	}
}

func everyFault(t *testing.T, ways []string, check func(class string) func(*sim, string, bool, error)) {
	for _, class := range classes {
		for _, sc := range scenarios {
			for _, way := range ways {
				t.Run(class+"/"+sc.name+"/"+way, func(t *testing.T) {
					faulty(t, class, sc, way, check(class))
				})
			}
		}
	}
}

// Whichever operation fails, and however: the error is reported, no record is lost, and the next write
// finds its way and leaves nothing.
func TestFailEveryOperation(t *testing.T) {
	everyFault(t, []string{"once", "onward", "no space", "unanswered"}, func(class string) func(*sim, string, bool, error) {
		return func(s *sim, what string, _ bool, _ error) { s.recovered(what, class == classes[1]) }
	})
}

// The process itself, living on, finds its way too: what it could not remove or release it removes and
// releases at its next write.
func TestFailEveryOperationAndGoOn(t *testing.T) {
	for _, class := range classes {
		for _, sc := range scenarios[:4] {
			for _, way := range []string{"once", "onward", "unanswered"} {
				t.Run(class+"/"+sc.name+"/"+way, func(t *testing.T) {
					faulty(t, class, sc, way, func(s *sim, what string, _ bool, _ error) {
						err := update(t.Context(), simPath, s.actor(7, nil), "again")
						if errors.Is(err, ErrHeld) && class == classes[1] {
							return // an unreadable lock: recovered in the other test
						}
						if err != nil || s.has("again") != 1 || s.has("before") != 1 {
							t.Fatalf("%s: the next write of the same process: %v", what, err)
						}
						if names := s.mem.Names("/d"); !slices.Equal(names, []string{"log"}) {
							t.Fatalf("%s: left beside the file: %q", what, names)
						}
					})
				})
			}
		}
	}
}

func TestKillAtEveryOperation(t *testing.T) {
	everyFault(t, []string{"kill"}, func(class string) func(*sim, string, bool, error) {
		return func(s *sim, what string, _ bool, _ error) { s.recovered(what, class == classes[1]) }
	})
}

// The recovery is faulted too: process 7 is killed at its operation n, process 10 while it clears that
// up, at its operation m.
func TestKillTheRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("short: no death in a recovery")
	}
	for _, class := range classes {
		for _, sc := range scenarios {
			t.Run(class+"/"+sc.name, func(t *testing.T) {
				for n, more := 0, true; more; n++ {
					for m, moreM := 0, true; moreM; m++ {
						s := newSim(t, class)
						sc.prepare(s)
						first := &vfstest.Injector{At: n, Kill: true}
						_, _ = sc.run(s, s.actor(7, first.Before)) // killed: its error reaches nobody
						if more = len(first.Hits()) > 0; !more {
							break
						}
						s.dead[7], s.dead[9] = true, true
						second := &vfstest.Injector{At: m, Kill: true}
						_ = update(t.Context(), simPath, s.actor(10, second.Before), "second")
						moreM = len(second.Hits()) > 0
						s.dead[10] = true
						s.recovered(fmt.Sprintf("killed at %d, its successor at %d", n, m), class == classes[1])
					}
				}
			})
		}
	}
}

// After a power cut at any operation, whatever part of what was not synced has reached the disk: every
// record whose write reported success is there, the file is whole, and with hard links no lock is empty.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("short: no power cuts")
	}
	images := 0
	for _, class := range classes {
		for _, sc := range scenarios[:2] {
			t.Run(class+"/"+sc.name, func(t *testing.T) {
				for n, more := 0, true; more; n++ {
					s := newSim(t, class)
					s.sync = true
					sc.prepare(s)
					var cut []*vfstest.Mem
					take := func() {
						for image := range s.mem.CrashImages(200, uint64(n)) {
							cut = append(cut, image)
						}
					}
					ops := 0
					done, err := sc.run(s, s.actor(7, func(op vfstest.Op) error {
						if ops == n {
							take()
						}
						ops++
						return nil
					}))
					if err != nil {
						t.Fatal(err)
					}
					if more = n < ops; !more {
						take() // after the last
					}
					for _, image := range cut {
						images++
						after := newSim(t, class)
						after.mem, after.sync = image, true
						after.rand = rand.NewChaCha8([32]byte{1}) // never the same names twice
						after.dead[7], after.dead[66] = true, true
						if !more && done && after.has("a") != 1 {
							t.Fatalf("after the end: the committed record is lost")
						}
						if data, _ := image.Get(simPath); string(data) != "before\n" && string(data) != "before\na\n" {
							t.Fatalf("cut at %d: the file has %q", n, data)
						}
						if data, ok := image.Get(simLock); ok && class == classes[0] && !strings.HasSuffix(string(data), "}") {
							t.Fatalf("cut at %d: the lock has %q", n, data)
						}
						after.recovered(fmt.Sprintf("cut at %d", n), class == classes[1])
					}
				}
			})
		}
	}
	t.Logf("%d images", images)
}
