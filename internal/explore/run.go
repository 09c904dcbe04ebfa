package explore

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/lockfile"
)

const (
	host     = "here"
	dir      = "/d"
	logPath  = "/d/log"
	lockPath = "/d/log.lock"
	deadPID  = 99
)

// run is one execution of a world.
type run struct {
	w      World
	seed   maphash.Seed
	mem    *vfstest.Mem
	procs  []*actor
	dead   map[int64]bool
	deaths int
	faults []string
	window bool // a commit landed whose lock was taken away since its fence
}

// actor is a process of a run, seen from the scheduler.
type actor struct {
	r    *run
	i    int
	p    *Proc
	gate chan error  // lets it go on; an error is its operation's
	at   chan string // where it stops; "" when it is done
	here string      // where it stands
	done bool
	died bool
	hist uint64 // every result it has seen
	// What it saw last of the things that end a wait.
	sawLock, sawClaims string
	sawDead            int
	waits              int
	gaveUp             bool
	rand               *rand.ChaCha8
	token              string // of its live hold
	moved              bool   // its lock was, since its fence
	fenced             bool   // it has read its own token in the lock since it made its temp file
	reading            bool   // a temp file is written: the guarded file is about to be looked at
}

func newRun(w World, seed maphash.Seed) *run {
	r := &run{w: w, seed: seed, mem: vfstest.NewMem(dir), dead: map[int64]bool{deadPID: true}}
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.mem.Now = func() time.Time { return epoch }
	if w.NoLinks {
		r.mem.LinkErr = syscall.ENOTSUP
	}
	r.mem.Put(logPath, nil, 0o600)
	if w.DeadLock {
		l := format.Lock{PID: deadPID, Host: host, Token: "dead"}
		r.mem.Put(lockPath, l.Encode(), 0o600)
	}
	for i, a := range w.Actors {
		x := &actor{r: r, i: i, gate: make(chan error), at: make(chan string),
			rand: rand.NewChaCha8([32]byte{byte(i + 1)})}
		x.p = &Proc{w: r, letter: byte('a' + i), record: string(rune('a' + i))}
		x.p.opts = r.options(int64(i+1), x)
		r.procs = append(r.procs, x)
		go func() {
			a.Do(context.Background(), x.p)
			x.at <- ""
		}()
		x.arrive()
	}
	return r
}

// arrive waits until the actor stands at its next stop, or is done.
func (x *actor) arrive() {
	x.here = <-x.at
	x.done = x.here == ""
}

// stop ends the actors that still stand somewhere, so that no goroutine is left.
func (r *run) stop() {
	for _, x := range r.procs {
		x.kill()
	}
}

func (x *actor) kill() {
	if !x.done {
		x.died = true
		x.gate <- vfstest.ErrKilled
		x.arrive() // a dead process does not stop again until it is done
	}
}

func (r *run) take(c choice) {
	x := r.procs[c.actor]
	if c.kill {
		r.deaths++
		x.kill()
		r.dead[int64(x.i+1)] = true
		return
	}
	x.gate <- nil
	x.arrive()
}

// canGo reports whether the actor's operation may pass: all but a wait for something that has not
// changed.
func (r *run) canGo(i int) bool {
	x := r.procs[i]
	if x.done {
		return false
	}
	return x.here != "wait" || x.waits < r.w.Waits && (x.sawLock != r.lockNow() || x.sawClaims != r.claimsNow() && x.sawClaims != "" || x.sawDead != len(r.dead))
}

func (r *run) choices() []choice {
	var all []choice
	for i := range r.procs {
		if r.canGo(i) {
			all = append(all, choice{actor: i})
		}
	}
	if r.deaths < r.w.Deaths {
		for i, x := range r.procs {
			if !x.done {
				all = append(all, choice{actor: i, kill: true})
			}
		}
	}
	return all
}

func (r *run) lockNow() string {
	data, ok := r.mem.Get(lockPath)
	if !ok {
		return "none"
	}
	return "is " + string(data)
}

func (r *run) claimsNow() string {
	names, _ := r.mem.List(dir, "log.lock.claim-")
	return strings.Join(names, " ") + ";"
}

// hash is the state.
func (r *run) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for _, name := range r.mem.Names(dir) {
		data, _ := r.mem.Get(dir + "/" + name)
		h.WriteString(name)
		h.WriteByte(0)
		if !strings.Contains(name, ".tmp-") && !strings.Contains(name, ".pending-") && !strings.Contains(name, ".claim-") {
			h.Write(data)
		}
		h.WriteByte(0)
	}
	for _, x := range r.procs {
		var b [10]byte
		binary.LittleEndian.PutUint64(b[:], x.hist)
		if x.done {
			b[8] = 1
		}
		if x.died {
			b[9] = 1
		}
		h.Write(b[:])
	}
	return h.Sum64()
}

// saw adds a result to what the actor has seen.
func (x *actor) saw(parts ...string) {
	var h maphash.Hash
	h.SetSeed(x.r.seed)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x.hist)
	h.Write(b[:])
	for _, p := range parts {
		h.WriteString(p)
		h.WriteByte(0)
	}
	x.hist = h.Sum64()
}

// options are an actor's; of the clean writer at the end when x is nil.
func (r *run) options(pid int64, x *actor) lockfile.Options {
	self := proc.Holder{PID: pid, Host: host}
	set := &seam.Set{
		FS: r.mem, Clock: stillClock{x}, Rand: rand.NewChaCha8([32]byte{byte(pid)}),
		Process: seam.NewProcess(func() proc.Holder { return self }, func() string { return proc.HostTagFor(host, nil) }, true),
		Judge: func(h proc.Holder, _ string) proc.Judgement {
			v := proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
			if r.dead[h.PID] {
				v = proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
			}
			if x != nil {
				x.saw("judge", v.Verdict.String())
				x.sawDead = len(r.dead)
			}
			return v
		},
	}
	o := lockfile.Options{NoSync: true, Timeout: -1, Seams: set}
	if x != nil {
		set.FS = &gatedFS{r.mem, x}
		o.Timeout = time.Hour
	}
	return o
}

// stillClock stands still until its process has waited as often as it may; then its time is up.
type stillClock struct{ x *actor }

func (c stillClock) Now() time.Time {
	t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if c.x != nil && c.x.gaveUp {
		t = t.Add(24 * time.Hour)
	}
	return t
}

func (c stillClock) Sleep(context.Context, time.Duration) error {
	x := c.x
	if x == nil {
		return errors.New("the clean writer waits")
	}
	if err := x.stop("wait"); err != nil {
		return err
	}
	if x.waits++; x.waits >= x.r.w.Waits {
		x.gaveUp = true
	}
	x.saw("woken")
	return nil
}

// stop is where an actor stands until the scheduler passes it. A dead one does not stop.
func (x *actor) stop(what string) error {
	if x.died {
		return vfstest.ErrKilled
	}
	x.at <- what
	return <-x.gate
}

func (r *run) timedOut() bool {
	return slices.ContainsFunc(r.procs, func(x *actor) bool { return x.gaveUp || !x.done })
}

// blocked reports whether an empty or unreadable lock is there.
func (r *run) blocked() bool {
	data, ok := r.mem.Get(lockPath)
	if !ok {
		return false
	}
	_, err := format.ParseLock(data)
	return err != nil
}

// final checks the state at the end of a schedule.
func (r *run) final() []string {
	var faults []string
	if slices.ContainsFunc(r.procs, func(x *actor) bool { return !x.done && x.waits < r.w.Waits }) && !r.blocked() {
		faults = append(faults, r.stuck())
	}
	// All processes end, and one more writes.
	for _, x := range r.procs {
		x.kill()
		r.dead[int64(x.i+1)] = true
	}
	o := r.options(50, nil)
	blocked := r.blocked()
	if blocked {
		if _, err := lockfile.Unlock(context.Background(), logPath, lockfile.UnlockOptions{Force: true, Seams: o.Seams}); err != nil {
			return append(faults, NextWrite)
		}
	}
	err := update(context.Background(), o, "z")
	if err != nil || !slices.Equal(r.mem.Names(dir), []string{"log"}) {
		faults = append(faults, NextWrite)
	}
	data, _ := r.mem.Get(logPath)
	for _, x := range r.procs {
		n := strings.Count(string(data), x.p.record+"\n")
		if x.p.said && n != 1 || n > 1 {
			kind := LostRecord
			if r.window {
				kind = LostInWindow
			}
			faults = append(faults, kind)
			break
		}
	}
	return faults
}

// stuck says what kind of wait for ever this is. One for a process that has done what it had to do, and
// lives on with an old lock of its own in the way, is over as soon as that process writes again.
func (r *run) stuck() string {
	data, _ := r.mem.Get(lockPath)
	l, err := format.ParseLock(data)
	if err != nil || l.PID < 1 || l.PID > int64(len(r.procs)) {
		return Stuck
	}
	owner := r.procs[l.PID-1]
	if !owner.done || owner.died {
		return Stuck
	}
	o := r.options(l.PID, nil)
	o.Seams.Process = owner.p.opts.Seams.Process // it remembers
	o.Seams.Rand = rand.NewChaCha8([32]byte{byte(l.PID), 1})
	if update(context.Background(), o, "again") != nil {
		return Stuck
	}
	return CameBack
}

// update is the read-modify-write of a record, again when the lock was lost.
func update(ctx context.Context, o lockfile.Options, record string) error {
	for range 3 {
		h, err := lockfile.Acquire(ctx, logPath, o)
		if err != nil {
			return err
		}
		old, err := h.Read()
		if err == nil {
			err = h.Commit(append(old, record+"\n"...))
		}
		rerr := h.Release()
		switch {
		case errors.Is(err, lockfile.ErrLost), errors.Is(err, lockfile.ErrStale):
			continue
		case err != nil:
			return err
		case rerr != nil && !errors.Is(rerr, lockfile.ErrLost):
			return rerr
		}
		return nil
	}
	return errors.New("lost too often")
}

// Update adds the actor's record, as a program would.
func Update(ctx context.Context, p *Proc) error {
	err := update(ctx, p.opts, p.record)
	p.said = err == nil
	return err
}

// Unlock is an operator's.
func Unlock(ctx context.Context, p *Proc) error {
	_, err := lockfile.Unlock(ctx, logPath, lockfile.UnlockOptions{Seams: p.opts.Seams})
	return err
}

// ForceUnlock is an operator's, with force.
func ForceUnlock(ctx context.Context, p *Proc) error {
	_, err := lockfile.Unlock(ctx, logPath, lockfile.UnlockOptions{Force: true, Seams: p.opts.Seams})
	return err
}
