// Package explore runs the shipped lock-file code under every schedule of a small world: a few
// processes, one file, every file operation a point at which any other process may go first, or this
// one may die. Tests only.
//
// It is a depth-first search by replay. A run starts the processes anew and passes their operations one
// at a time; at each point it may pass one operation of any process that stands at one, or kill a
// process there. States are hashed, and a run ends at the first one seen before. A state is the content
// of every name, which processes are dead, and for each process a hash of every result that it has
// seen: the code is deterministic (its clock stands still, its random source is its own), so equal
// results mean an equal inner state.
//
// Two things keep the space small and lose nothing:
//
//   - Operations whose result no other process can change, and whose effect none can see, pass without
//     stopping: reading, writing and closing files under names of one attempt's own, closing anything,
//     asking what the guarded file is (always a regular file here). A process that dies at such an
//     operation leaves what it leaves when it dies at the next one that stops, except for the content of
//     files that nobody reads.
//   - A waiting process may go on only when something that it waits for has changed since it looked: the
//     lock's bytes, the claims, or who is dead. After Waits such waits its time is up.
package explore

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/stile-lock/stile/lockfile"
)

// World is what to explore.
type World struct {
	// NoLinks: a file system without hard links.
	NoLinks bool
	// DeadLock: at the start the lock of a dead process is there.
	DeadLock bool
	Actors   []Actor
	// Deaths is how many processes may die, anywhere.
	Deaths int
	// Preemptions bounds how often a schedule leaves a process that could go on; negative: any number.
	Preemptions int
	// Waits is how often a process may be woken before its time is up.
	Waits int
	// MaxStates ends the search; 0: never.
	MaxStates int
}

// Actor is a process: its pid is 1 + its index, its letter in schedules 'a' + its index.
type Actor struct {
	// Do is what it does: Update, Unlock or ForceUnlock.
	Do func(ctx context.Context, p *Proc) error
}

// Proc is an actor at work.
type Proc struct {
	w      *run
	letter byte
	opts   lockfile.Options
	record string // what it adds to the file
	said   bool   // an update has reported success
}

// Result is what a search has found.
type Result struct {
	States, Runs int
	Complete     bool // false when MaxStates or Preemptions cut the search
	TimedOut     int  // final states in which a process's time was up
	Blocked      int  // final states with an empty or unreadable lock, which a forced unlock clears
	// Faults are broken guarantees: the first of each kind with its schedule, and how many final states
	// or moves showed it.
	Faults map[string]*Fault
}

// Fault is one kind of broken guarantee.
type Fault struct {
	Count    int
	Schedule string
}

// The kinds of faults.
const (
	LostRecord = "a record that was reported committed is lost" // G1
	// The same, after a commit that landed although its lock was taken away between its fence and its
	// rename: the residual of a forced unlock.
	LostInWindow = "a record is lost to a commit inside its own fence-to-rename window"
	MovedLive    = "a live holder's lock was moved by another"   // G2
	Unfenced     = "a commit landed without a fence that passed" // G1
	SweptLive    = "a live process's name was removed by another"
	Overwrote    = "a lock was overwritten"
	Stuck        = "processes wait for ever, though the lock is readable"
	CameBack     = "an old lock of a live process came back, and stays until that process writes again" // a block
	NextWrite    = "the next write fails, or leaves something"
)

func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d states, %d runs, %d timed out, %d blocked", r.States, r.Runs, r.TimedOut, r.Blocked)
	for kind, f := range r.Faults {
		fmt.Fprintf(&b, "; %d times %s: %s", f.Count, kind, f.Schedule)
	}
	return b.String()
}

// choice is one thing that a scheduler may do: pass the operation of an actor, or kill it there.
type choice struct {
	actor int
	kill  bool
}

func (c choice) String() string {
	s := string(rune('a' + c.actor))
	if c.kill {
		s += "!"
	}
	return s
}

// search is the state of one depth-first search.
type search struct {
	w       World
	seed    maphash.Seed
	visited map[uint64]int8 // by state: the most preemptions that were left there
	stack   []branch        // of the present schedule
	res     *Result
}

// branch is a point on the present schedule and the choices there that are still to be tried.
type branch struct {
	taken choice
	left  []choice
}

// Explore searches the world.
func Explore(w World) *Result {
	s := &search{
		w: w, seed: maphash.MakeSeed(), visited: map[uint64]int8{},
		res: &Result{Complete: w.Preemptions < 0, Faults: map[string]*Fault{}},
	}
	for {
		s.once()
		s.res.Runs++
		for len(s.stack) > 0 && len(s.stack[len(s.stack)-1].left) == 0 {
			s.stack = s.stack[:len(s.stack)-1]
		}
		if len(s.stack) == 0 {
			return s.res
		}
		if w.MaxStates > 0 && len(s.visited) >= w.MaxStates {
			s.res.Complete = false
			return s.res
		}
		top := &s.stack[len(s.stack)-1]
		top.taken, top.left = top.left[0], top.left[1:]
	}
}

// once makes one run: along the stack, then on to a state seen before or to an end.
func (s *search) once() {
	r := newRun(s.w, s.seed)
	defer r.stop()
	last, left := -1, s.w.Preemptions
	step := func(c choice) {
		if last >= 0 && last != c.actor && r.canGo(last) {
			left--
		}
		last = c.actor
		r.take(c)
	}
	for _, b := range s.stack {
		step(b.taken)
	}
	for {
		state := r.hash()
		if s.w.Preemptions >= 0 {
			// Who ran last matters to what is left.
			state = state*31 + uint64(last+2)
		}
		if best, seen := s.visited[state]; seen && (s.w.Preemptions < 0 || int(best) >= left) {
			return
		} else if !seen {
			s.res.States++
		}
		s.visited[state] = int8(max(left, 0))
		choices := r.choices()
		if s.w.Preemptions >= 0 && left <= 0 && last >= 0 && r.canGo(last) {
			kept := choices[:0]
			for _, c := range choices {
				if c.actor == last {
					kept = append(kept, c)
				}
			}
			choices = kept
		}
		if len(choices) == 0 {
			s.end(r)
			return
		}
		// Staying with one process first keeps the first schedules short of surprises.
		s.stack = append(s.stack, branch{taken: choices[0], left: choices[1:]})
		step(choices[0])
		s.note(r)
	}
}

// note books the faults that showed during the last step.
func (s *search) note(r *run) {
	for _, kind := range r.faults {
		s.fault(kind)
	}
	r.faults = nil
}

func (s *search) fault(kind string) {
	f := s.res.Faults[kind]
	if f == nil {
		f = &Fault{Schedule: s.schedule()}
		s.res.Faults[kind] = f
	}
	f.Count++
}

func (s *search) schedule() string {
	var b strings.Builder
	for _, br := range s.stack {
		b.WriteString(br.taken.String())
	}
	return b.String()
}

// end checks a state in which nobody can go on.
func (s *search) end(r *run) {
	if r.timedOut() {
		s.res.TimedOut++
	}
	if r.blocked() {
		s.res.Blocked++
	}
	for _, kind := range r.final() {
		s.fault(kind)
	}
}

// Replay runs one schedule and returns the faults that it shows, those of its end included. Trace, when
// not nil, is told each operation.
func Replay(w World, schedule string, trace func(string)) ([]string, error) {
	r := newRun(w, maphash.MakeSeed())
	defer r.stop()
	for i := 0; i < len(schedule); i++ {
		c := choice{actor: int(schedule[i] - 'a')}
		if i+1 < len(schedule) && schedule[i+1] == '!' {
			c.kill = true
			i++
		}
		if c.actor < 0 || c.actor >= len(w.Actors) || !c.kill && !r.canGo(c.actor) || r.procs[c.actor].done {
			return nil, fmt.Errorf("the schedule %s cannot go on at %d", schedule, i)
		}
		if trace != nil {
			trace(c.String() + " " + r.procs[c.actor].here)
		}
		r.take(c)
	}
	faults := r.faults
	for {
		// What is left runs to its end, one process after the other.
		choices := r.choices()
		var c *choice
		for i := range choices {
			if !choices[i].kill {
				c = &choices[i]
				break
			}
		}
		if c == nil {
			break
		}
		if trace != nil {
			trace(c.String() + " " + r.procs[c.actor].here)
		}
		r.take(*c)
	}
	if trace != nil {
		trace("at the end: " + r.lockNow())
	}
	return append(faults, r.final()...), nil
}
