package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/kernlock"
)

func runVerb() verb {
	return verb{
		name:  "run",
		brief: "run a command while holding the lock of a file",
		synopsis: "[flags] TARGET COMMAND [ARG…]\n" +
			"[flags] TARGET… -- COMMAND [ARG…]\n" +
			"[flags] TARGET -c 'SHELL LINE'",
		detail: `Runs COMMAND while holding the lock of TARGET, and lets go when it ends. Locks
are the kernel's: whatever dies, no lock stays behind. The lock of TARGET lives
in the file TARGET.lock beside it, which is never deleted: 'stile run /x'
excludes 'flock /x.lock', not 'flock /x'. With --exact the named file is itself
the lock.

The wait is 5 seconds unless -w or --policy says otherwise, never for ever. A
wait that runs out says who is in the way, and is kept for 'stile incidents'.

COMMAND inherits the lock, so that it stays held while COMMAND runs even if
stile is killed, and while anything runs that COMMAND left behind; -o gives
that up. Several targets are taken in one fixed order, so that two such
commands never wait for each other; -w bounds the whole wait.

Exit code: COMMAND's own, or 128+n when signal n ended it; else 64 usage,
65 not a usable lock file, 66 no such folder, 69 no locks here or no such
command, 71 out of descriptors or locks, 73 no space, 74 other errors,
75 held or timed out, 76 lock lost, 77 permission.`,
		examples: `stile run notes.json -- ./add-note.sh 'water the plants'
stile run -n nightly -- ./nightly.sh     # skip when it still runs: exit 75
stile run -w 30 a.json b.json -- ./move-between.sh
stile run notes.json -c 'jq .next notes.json > n && mv n notes.json'`,
		options:  shownRunOptions,
		operands: "FILE",
		run:      cmdRun,
	}
}

func cmdRun(args []string) int {
	signals := catchSignals() // it takes longest, and goes on beside the rest
	plan, err := parseRun(args)
	code, err := carryOut(err, func() (int, error) { return plan.run(signals) })
	if err == nil {
		return code
	}
	f := classify(err)
	report(os.Stderr, f, plan.json)
	if f.exit == exitHeld {
		return plan.conflict
	}
	return f.exit
}

// carryOut does what was parsed, if that went well. Without an error it gives
// the exit code: the command's, or that of a wait which a signal ended.
func carryOut(parsed error, do func() (int, error)) (int, error) {
	if parsed != nil {
		return 0, parsed
	}
	code, err := do()
	var quiet *endedBySignal
	if errors.As(err, &quiet) {
		return 128 + quiet.number, nil
	}
	return code, err
}

// endedBySignal is the end of a wait by a signal: the user knows, so nothing
// is said.
type endedBySignal struct{ number int }

func (e *endedBySignal) Error() string { return fmt.Sprintf("ended by signal %d", e.number) }

func (plan *runPlan) run(signals *signalSet) (int, error) {
	path, err := findCommand(plan.argv[0])
	if err != nil {
		return 0, err
	}
	targets, err := plan.resolve()
	if err != nil {
		return 0, err
	}
	started := time.Now()
	locks, err := plan.acquireAll(targets, signals)
	if err != nil {
		return 0, err
	}
	if plan.verbose {
		fmt.Fprintf(os.Stderr, "stile: getting the lock took %.6f seconds\n", time.Since(started).Seconds())
		fmt.Fprintf(os.Stderr, "stile: executing %s\n", display.Text(plan.argv[0]))
	}
	code, err := plan.hold(path, locks, signals)
	for i := len(locks) - 1; i >= 0; i-- {
		plan.release(locks[i])
	}
	return code, err
}

// hold runs the command under locks that are held.
func (plan *runPlan) hold(path string, locks []*kernlock.Lock, signals *signalSet) (int, error) {
	held := os.Getenv(heldVariable)
	for _, l := range locks {
		if !plan.close {
			if err := l.Inherit(); err != nil && !errors.Is(err, kernlock.ErrUnsupported) {
				return 0, fmt.Errorf("let the command inherit the lock: %w", err)
			}
		}
		if w := l.Warning(); w != nil && plan.verbose {
			printFailure(os.Stderr, "the holder record was not written: "+w.Error(), "")
		}
		held = strings.TrimPrefix(held+":"+l.LockID(), ":")
	}
	env := append(os.Environ(), heldVariable+"="+held)
	if plan.noFork {
		return 0, execInPlace(path, plan.argv, dropEarlier(env, heldVariable))
	}
	signals.ready()
	if n := signals.pending(); n != 0 {
		return 0, &endedBySignal{n}
	}
	code, err := runCommand(path, plan.argv, dropEarlier(env, heldVariable), signals)
	if err != nil || code != 0 {
		// The command's own failure says more than a lost lock would.
		return code, err
	}
	for _, l := range locks {
		if err := l.Fence(); err != nil {
			return 0, fmt.Errorf("the command has ended, but: %w", err)
		}
	}
	return 0, nil
}

// dropEarlier keeps only the last setting of a variable.
func dropEarlier(env []string, name string) []string {
	last := len(env) - 1
	kept := env[:0]
	for i, e := range env {
		if i == last || !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// release lets one lock go and says what the command left holding it.
func (plan *runPlan) release(l *kernlock.Lock) {
	err := l.Release()
	if err == nil || errors.Is(err, kernlock.ErrLost) {
		return
	}
	hint := ""
	if errors.Is(err, kernlock.ErrStillHeld) {
		hint = "with -o a command does not hand the lock on to what it leaves behind"
	}
	if plan.json {
		printJSON(os.Stderr, &errorObject{Code: "still_held", Message: display.Text(err.Error()), Hint: hint})
		return
	}
	printFailure(os.Stderr, err.Error(), hint)
}

// target is one lock to be taken.
type target struct {
	name     string // as the user wrote it
	lockPath string
	handle   *kernlock.Handle
}

// resolve makes the targets canonical, refuses those that can never be
// locked, drops repetitions and puts them in the order in which every
// "stile run" takes them. The order is by lock file: two names of one lock
// then stand at one place whatever --exact says.
func (plan *runPlan) resolve() ([]target, error) {
	var targets []target
	seen := make(map[string]bool, len(plan.targets))
	for _, name := range plan.targets {
		h, err := openTarget(name, plan.lock)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, ".lock") && !plan.lock.Exact && !plan.json {
			fmt.Fprintf(os.Stderr, "stile: the lock of %s is %s; with --exact the named file itself is the lock\n",
				display.Text(name), display.Text(h.LockPath()))
		}
		if !seen[h.LockPath()] {
			seen[h.LockPath()] = true
			targets = append(targets, target{name: name, lockPath: h.LockPath(), handle: h})
		}
	}
	sort.Slice(targets, func(i, j int) bool { return targets[i].lockPath < targets[j].lockPath })
	return targets, nil
}

// openTarget opens the lock of a target, unless it can never be taken from here.
func openTarget(name string, o kernlock.Options) (*kernlock.Handle, error) {
	h, err := kernlock.Open(name, o)
	if err != nil {
		return nil, err
	}
	if in := estate.Of(h.Target()); in != "" {
		return nil, &failure{exit: exitBadFile, code: "under_agents",
			hint: "what lies under agents/ is changed by 'stile dispatch' and 'stile board', not under a kernel lock",
			err:  fmt.Errorf("lock %s: it belongs to the estate %s, whose agents are guarded by lock files", h.Target(), in)}
	}
	if err := refuseNested(h); err != nil {
		return nil, err
	}
	return h, nil
}

// acquireAll takes the locks in order. The wait that the user or the policy
// allows is for all of them together.
func (plan *runPlan) acquireAll(targets []target, signals *signalSet) (locks []*kernlock.Lock, err error) {
	defer func() {
		if err != nil {
			for i := len(locks) - 1; i >= 0; i-- {
				_ = locks[i].Release()
			}
			locks = nil
		}
	}()
	wait := plan.lock.Timeout
	if wait == 0 {
		wait = plan.lock.Policy.Timeout()
	}
	deadline := time.Now().Add(wait)
	for i, t := range targets {
		if i > 0 && wait > 0 {
			// A handle carries its wait, so what is left needs another one.
			again := plan.lock
			again.Timeout = max(time.Until(deadline), kernlock.TryOnce)
			if t.handle, err = kernlock.Open(t.name, again); err != nil {
				return locks, err
			}
		}
		l, err := plan.acquire(t, deadline, signals)
		if l != nil {
			locks = append(locks, l)
		}
		if err != nil {
			return locks, err
		}
	}
	return locks, nil
}

// acquire takes one lock. With an error, the lock is not nil when a signal
// came in the moment that it was granted.
func (plan *runPlan) acquire(t target, deadline time.Time, signals *signalSet) (*kernlock.Lock, error) {
	if plan.lock.Policy == kernlock.SingleFlight {
		l, duplicate, err := t.handle.TryAcquire()
		if duplicate != nil {
			return nil, &kernlock.HeldError{Duplicate: *duplicate}
		}
		return l, err
	}
	ctx := newWaitContext(signals, func() *waitLine { return startWaitLine(t, plan, deadline) })
	l, err := t.handle.Acquire(ctx)
	if n := ctx.end(); n != 0 {
		err = &endedBySignal{n}
	}
	return l, err
}
