package explore

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/lockfile"
)

// The names in the folder, and the host that every process is on.
const (
	logName  = "log"
	lockName = "log.lock"
	logPath  = folder + "/" + logName
	hostName = "here"
)

// job is what an actor does.
type job uint8

const (
	writes  job = iota // adds its record to the log
	unlocks            // clears the lock of a dead holder
	forces             // clears the lock whatever its holder
)

// actor is a process of the world.
type actor struct {
	name  string // one letter; also the record that it adds
	pid   int64
	ns    uint64 // pid namespace
	born  uint64 // start time
	tag   string // host part of the names it makes
	job   job
	fault *fault
	index uint32
}

const (
	// patience is how many waits that something ended an actor's timeout has room for.
	patience = 3
	// retries is how often a writer that was fenced out begins again.
	retries = 2
)

// run is the actor's program: the shipped code with every one of its seams at the gate. An actor that
// has done its job stays alive, as a service does, and can be asked to do it again.
func (a *actor) run(p *port) {
	e := &env{actor: a, port: p, files: &files{p: p}, clock: &clock{p: p, now: epoch}, dice: &dice{actor: a.index}}
	e.seams = e.newSeams()
	for n := 1; ; n++ {
		out, err := e.work(n)
		p.local.outcome, p.local.fault, p.local.token = out, "", ""
		if err != nil {
			p.local.fault = err.Error()
		}
		if p.do(op{kind: opEnd, n: n}).how == killed {
			return
		}
		p.local.outcome = working
	}
}

// env is an actor at work.
type env struct {
	*actor
	port     *port
	files    *files
	clock    *clock
	dice     *dice
	seams    *seam.Set
	sweeping bool // for a planted bug: the last listing was a sweep's
}

func (e *env) newSeams() *seam.Set {
	s := &seam.Set{
		FS: e.files, Clock: e.clock, Rand: e.dice, Judge: e.port.judge, Process: e.newProcess(),
		OnStep: func(step seam.Step) { e.port.local.step = step },
	}
	if f := e.fault; f != nil {
		if f.fs != nil {
			s.FS = f.fs(s.FS, e)
		}
		if f.judge != nil {
			s.Judge = f.judge(s.Judge, e)
		}
		if f.rand != nil {
			s.Rand = f.rand(s.Rand, e)
		}
	}
	return s
}

func (e *env) newProcess() *seam.Process {
	self := func() proc.Holder {
		return proc.Holder{PID: e.pid, Host: hostName, Proc: &proc.ID{PidNS: e.ns, StartTime: e.born}}
	}
	return seam.NewProcess(self, func() string { return e.tag }, true)
}

func (e *env) work(n int) (outcome, error) {
	if e.job != writes {
		_, err := lockfile.Unlock(context.Background(), logPath, lockfile.UnlockOptions{
			Force: e.job == forces, Seams: e.seams,
		})
		if errors.Is(err, lockfile.ErrChanged) {
			return done, nil // nothing was removed, and the operator was told so
		}
		return verdict(err), err
	}
	// After an opEnd: the same process writes again.
	id := e.name
	for ; n > 1; n-- {
		id += e.name
	}
	err := e.write(id)
	return verdict(err), err
}

func verdict(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, lockfile.ErrHeld):
		return blocked
	case again(err):
		return lost
	}
	return failed
}

// again tells whether a commit was refused because of what others did meanwhile.
func again(err error) bool {
	return errors.Is(err, lockfile.ErrLost) || errors.Is(err, lockfile.ErrStale)
}

// write is the whole read-modify-write, begun again when the lock was lost before the commit.
func (e *env) write(id string) error {
	for try := 0; ; try++ {
		if e.fault != nil && e.fault.forgets {
			e.seams.Process = e.newProcess()
		}
		hold, err := lockfile.Acquire(context.Background(), logPath, lockfile.Options{
			Timeout: patience*tick - time.Millisecond, Seams: e.seams,
		})
		if err != nil {
			return err
		}
		e.port.local.token = hold.Token()
		err = e.add(hold, id)
		rerr := hold.Release()
		e.port.local.token = ""
		e.port.local.ended += hold.Token()
		switch {
		case again(err) && try < retries:
			continue
		case err != nil:
			return err
		case errors.Is(rerr, lockfile.ErrLost):
			return nil // forced away after the commit, which stands
		}
		return rerr
	}
}

func (e *env) add(hold *lockfile.Hold, id string) error {
	old, err := hold.Read()
	if err != nil {
		return err
	}
	return hold.Commit(append(old, id+"\n"...))
}

// fault is a bug that is planted in one actor or in all. It wraps the seams, so that the code under
// test stays the code that ships.
type fault struct {
	name  string
	fs    func(vfs.FS, *env) vfs.FS
	judge func(judgeFunc, *env) judgeFunc
	rand  func(io.Reader, *env) io.Reader
	// forgets: a process does not know its ended holds again.
	forgets bool
	// oneTag: processes in different pid namespaces mark their names alike.
	oneTag bool
}

type judgeFunc = func(h proc.Holder, near string) proc.Judgement

// tags are the host parts of names in the first and second pid namespace.
var tags = [...]string{"aaaaaaaa", "bbbbbbbb"}
