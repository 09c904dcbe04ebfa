package main

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

// runPlan is what a command line of "stile run" asks for.
type runPlan struct {
	targets []string
	argv    []string

	lock     kernlock.Options
	conflict int
	close    bool // the command does not inherit the lock
	noFork   bool
	verbose  bool
	json     bool
}

type runFlags struct {
	shared, exclusive, nonblock bool
	close, noFork               bool
	verbose, exact, json        bool
	unlock                      bool
	wait                        *time.Duration
	conflict                    int
	command                     *string
	policy                      kernlock.Policy
	agent, operation            string
}

func (f *runFlags) options() []option {
	return []option{
		boolOption("s,shared", "take a shared lock: other shared holders may enter too", &f.shared),
		boolOption("x,e,exclusive", "take an exclusive lock (this is the default)", &f.exclusive),
		boolOption("n,nb,nonblock", "do not wait: exit 75 if the lock is held (policy single_flight)", &f.nonblock),
		{names: "w,wait,timeout", arg: "SECS", help: "wait at most SECS (fractions allowed, 0 tries once) instead of the policy's time",
			set: func(v string) (err error) { f.wait, err = parseWait(v); return err }},
		{names: "E,conflict-exit-code", arg: "N", help: "exit N instead of 75 when the lock is held or the wait runs out",
			set: func(v string) error {
				n, err := strconv.ParseUint(v, 10, 8)
				if err != nil {
					return usagef("-E needs a number from 0 to 255, not %q", v)
				}
				f.conflict = int(n)
				return nil
			}},
		boolOption("o,close", "the command does not inherit the lock: what it leaves behind does not hold it", &f.close),
		{names: "c,command", arg: "LINE", help: "run LINE with $SHELL -c (or /bin/sh -c)",
			set: func(v string) error { f.command = &v; return nil }},
		boolOption("F,no-fork", "become the command instead of starting it; not with -o", &f.noFork),
		boolOption("verbose", "say how long the lock took and what is run", &f.verbose),
		{names: "policy", arg: "NAME", help: "mutation (5 s, the default), monitor (1 s) or single_flight (no wait)",
			words: "mutation monitor single_flight",
			set:   func(v string) (err error) { f.policy, err = kernlock.ParsePolicy(v); return err }},
		stringOption("agent", "NAME", "who holds, in the holder record; else $STILE_AGENT", &f.agent),
		stringOption("operation", "NAME", "what for, in the holder record; else the command's name", &f.operation),
		boolOption("exact", "TARGET itself is the lock file, as flock(1) has it", &f.exact),
		boolOption("json", "report errors as one JSON object on stderr", &f.json),
		// Not in the help: caught to say why there is none.
		{names: "u,unlock", set: func(string) error { f.unlock = true; return nil }},
	}
}

// shownRunOptions leaves out what is only caught.
func shownRunOptions() []option {
	options := new(runFlags).options()
	return options[:len(options)-1]
}

// parseWait reads a number of seconds. 0 is one try, then a timeout.
func parseWait(v string) (*time.Duration, error) {
	s, err := strconv.ParseFloat(v, 64)
	limit := kernlock.MaxTimeout.Seconds()
	if err != nil || math.IsNaN(s) || s < 0 || s > limit {
		return nil, usageHint("'-w 2.5' waits two and a half seconds; no wait is longer than a day",
			"-w needs a number of seconds from 0 to %.0f, not %q", limit, v)
	}
	d := time.Duration(s * float64(time.Second))
	if d < kernlock.TryOnce {
		d = kernlock.TryOnce
	}
	return &d, nil
}

func parseRun(args []string) (*runPlan, error) {
	f := &runFlags{conflict: exitHeld}
	p, err := parse(args, f.options(), true)
	plan := &runPlan{json: f.json || err != nil && wantsJSON(args)}
	if err != nil {
		return plan, err
	}
	if f.unlock {
		return plan, usageHint("a lock taken by 'stile run' is let go when its command ends", "there is no -u")
	}
	if err := plan.split(p, f); err != nil {
		return plan, err
	}
	return plan, plan.settle(f)
}

// split finds the targets and the command among the operands. "--" before
// the first operand only ends the flags, as flock(1) has it; a later one
// stands between several targets and the command.
func (plan *runPlan) split(p parsed, f *runFlags) error {
	operands := p.operands
	sep := slices.Index(operands, "--")
	switch {
	case len(operands) == 0:
		return usageHint("stile run FILE -- COMMAND", "no TARGET was given")
	case sep == 0:
		return usageHint("stile run FILE -- COMMAND", "no TARGET was given before --")
	case sep > 0:
		plan.targets, plan.argv = operands[:sep], operands[sep+1:]
		if err := looksLikeCommand(plan.targets); err != nil {
			return err
		}
	case f.command != nil:
		plan.targets = operands
		if err := looksLikeCommand(plan.targets); err != nil {
			return err
		}
	default:
		plan.targets, plan.argv = operands[:1], operands[1:]
	}
	if slices.Contains(plan.targets, "") {
		return usagef("a TARGET is empty")
	}
	line := f.command
	if len(plan.argv) > 0 && (plan.argv[0] == "-c" || plan.argv[0] == "--command") {
		if line != nil || len(plan.argv) != 2 {
			return usageHint("stile run FILE -c 'one shell line'", "%s needs exactly one shell line", plan.argv[0])
		}
		line, plan.argv = &plan.argv[1], nil
	}
	if line != nil {
		if len(plan.argv) > 0 {
			return usagef("give either -c or a command, not both")
		}
		plan.argv = shellCommand(*line)
		return nil
	}
	if len(plan.argv) == 0 {
		if _, err := strconv.ParseUint(plan.targets[0], 10, 31); err == nil && len(plan.targets) == 1 {
			return usageHint("name a file and a command: stile run FILE -- COMMAND",
				"%s is a bare number: locking an open descriptor, as 'flock %[1]s' does, is not offered", plan.targets[0])
		}
		return usageHint("stile run FILE -- COMMAND", "no command was given")
	}
	if plan.argv[0] == "" {
		return usagef("the command's name is empty")
	}
	return nil
}

// looksLikeCommand refuses "run FILE git checkout -- x": a flock(1) user means
// the command by it, and would find "git" locked as a file.
func looksLikeCommand(targets []string) error {
	if len(targets) < 2 || filepath.Base(targets[1]) != targets[1] {
		return nil
	}
	if _, err := os.Lstat(targets[1]); err == nil {
		return nil
	}
	if _, err := exec.LookPath(targets[1]); err == nil {
		return usageHint("to run it, put -- before it; to lock a file of that name, write ./"+targets[1],
			"%q stands where a file to lock is named, but is the name of a command", targets[1])
	}
	return nil
}

// settle turns the flags into lock options and refuses what contradicts.
func (plan *runPlan) settle(f *runFlags) error {
	plan.lock = kernlock.Options{Policy: f.policy, Shared: f.shared, Exact: f.exact, Agent: f.agent, Operation: f.operation}
	plan.close, plan.noFork, plan.verbose, plan.conflict = f.close, f.noFork, f.verbose, f.conflict
	if f.shared && f.exclusive {
		return usagef("a lock is either shared (-s) or exclusive (-x)")
	}
	if f.noFork && f.close {
		return usageHint("without -F, the wrapper keeps the lock while the command runs",
			"-F and -o cannot be used together: nobody would hold the lock")
	}
	if f.nonblock {
		// As in flock(1), -n wins over -w.
		if plan.lock.Policy != "" && plan.lock.Policy != kernlock.SingleFlight {
			return usagef("-n is the policy single_flight, so it cannot be used with --policy %s", plan.lock.Policy)
		}
		plan.lock.Policy = kernlock.SingleFlight
		f.wait = nil
	}
	if f.wait != nil {
		if plan.lock.Policy == kernlock.SingleFlight {
			return usagef("single_flight never waits, so it takes no -w")
		}
		plan.lock.Timeout = *f.wait
	}
	if plan.lock.Operation == "" {
		plan.lock.Operation = filepath.Base(plan.argv[0])
	}
	return nil
}

// findCommand looks the command up before any lock is taken, so that a slip
// of the finger neither waits nor creates anything.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return path, nil
	}
	return "", commandFailure(name, err)
}

// commandFailure names why a command cannot be started: 69 when there is
// none, 77 when it may not be executed.
func commandFailure(name string, err error) error {
	var wrapped *exec.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	f := classifyExec(err)
	f.err = &startError{name: name, err: err}
	return f
}

type startError struct {
	name string
	err  error
}

func (e *startError) Error() string { return "run " + e.name + ": " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

func classifyExec(err error) *failure {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return &failure{exit: exitUnavailable, code: "command_not_found",
			hint: "no such command; if the file is there, the interpreter that its first line names is not"}
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EISDIR):
		return &failure{exit: exitPermission, code: "command_not_executable", hint: "it is a folder or lacks the execute permission (chmod +x)"}
	}
	f := classify(err)
	if f.code == "io_error" {
		return &failure{exit: exitUnavailable, code: "command_not_runnable", hint: "the system cannot execute it"}
	}
	return &failure{exit: f.exit, code: f.code, hint: f.hint}
}
