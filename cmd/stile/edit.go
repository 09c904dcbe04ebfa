package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/record"
)

func editVerb() verb {
	return verb{
		name:  "edit",
		brief: "change a file through a command, one writer at a time",
		synopsis: "[flags] FILE -- COMMAND [ARG…]\n" +
			"[flags] FILE COMMAND [ARG…]\n" +
			"[flags] FILE -c 'SHELL LINE'",
		detail: `Replaces FILE's content with what COMMAND makes of it: COMMAND reads the old
content on its standard input and writes the new to its standard output, while
the lock of FILE is held. The new content replaces the old in one step, so
readers see the one or the other, whole. A COMMAND that ends with another code
than 0 changes nothing.

The lock is that of 'stile run FILE' and of flock(1) on FILE.lock. It is checked
once more just before the new content lands: should it have been lost, nothing
lands, and COMMAND runs again on what is there then. So COMMAND must do nothing
else that counts. It does not inherit the lock.

The new content is on disk when edit ends, unless --no-sync is given. FILE keeps
its permissions. A symbolic link stays one: the file it leads to is changed.

Exit code: COMMAND's own, or 128+n when signal n ended it; else 64 usage, 65 not
a plain file or not a usable lock file, 66 no such file or folder, 69 no locks
here or no such command, 71 out of descriptors or locks, 73 no space, 74 other
errors, 75 held or timed out, 76 lock lost, 77 permission.`,
		examples: `stile edit settings.json -- jq '.theme = "dark"'
stile edit todo.txt -c 'sort -u'
stile edit --create counter -c 'read n || n=0; echo $((n + 1))'`,
		options:  func() []option { return new(editPlan).options() },
		operands: "FILE",
		run:      cmdEdit,
	}
}

// editPlan is what a command line of "stile edit" asks for.
type editPlan struct {
	file string
	argv []string

	lock                      kernlock.Options
	create, noSync, ifChanged bool
	json                      bool
	line                      *string
}

func (plan *editPlan) options() []option {
	return append([]option{
		boolOption("create", "a missing FILE is an empty one, and is made", &plan.create),
		boolOption("if-changed", "leave FILE alone when the new content is the old", &plan.ifChanged),
		boolOption("no-sync", "do not wait for the disk", &plan.noSync),
		{names: "c,command", arg: "LINE", help: "run LINE with $SHELL -c (or /bin/sh -c)",
			set: func(v string) error { plan.line = &v; return nil }},
	}, lockOptions(&plan.lock, &plan.json, "stderr")...)
}

// lockOptions are the flags of every verb that changes a file under its kernel lock.
func lockOptions(o *kernlock.Options, asJSON *bool, stream string) []option {
	return []option{
		{names: "w,wait,timeout", arg: "SECS", help: "wait at most SECS for the lock (fractions allowed, 0 tries once) instead of 5",
			set: func(v string) error {
				d, err := parseWait(v)
				if err == nil {
					o.Timeout = *d
				}
				return err
			}},
		stringOption("agent", "NAME", "who holds, in the holder record; else $STILE_AGENT", &o.Agent),
		stringOption("operation", "NAME", "what for, in the holder record", &o.Operation),
		boolOption("json", "report errors as one JSON object on "+stream, asJSON),
	}
}

func parseEdit(args []string) (*editPlan, error) {
	plan := new(editPlan)
	p, err := parse(args, plan.options(), true)
	plan.json = plan.json || err != nil && wantsJSON(args)
	if err != nil {
		return plan, err
	}
	const form = "stile edit FILE -- COMMAND"
	operands := p.operands
	switch {
	case len(operands) == 0 || operands[0] == "--":
		return plan, usageHint(form, "no FILE was given")
	case operands[0] == "":
		return plan, usagef("FILE is empty")
	}
	plan.file, plan.argv = operands[0], operands[1:]
	switch at := slices.Index(plan.argv, "--"); {
	case at == 0:
		plan.argv = plan.argv[1:]
	case len(plan.argv) > 0 && (plan.argv[0] == "-c" || plan.argv[0] == "--command"):
		if plan.line != nil || len(plan.argv) != 2 {
			return plan, usageHint("stile edit FILE -c 'one shell line'", "%s needs exactly one shell line", plan.argv[0])
		}
		plan.line, plan.argv = &plan.argv[1], nil
	}
	switch {
	case plan.line != nil && len(plan.argv) > 0:
		return plan, usagef("give either -c or a command, not both")
	case plan.line != nil:
		plan.argv = shellCommand(*plan.line)
	case len(plan.argv) == 0:
		return plan, usageHint(form, "no command was given")
	case plan.argv[0] == "":
		return plan, usagef("the command's name is empty")
	}
	if plan.lock.Operation == "" {
		plan.lock.Operation = "edit-" + filepath.Base(plan.argv[0])
	}
	return plan, nil
}

func cmdEdit(args []string) int {
	plan, err := parseEdit(args)
	code, err := carryOut(err, plan.run)
	if err == nil {
		return code
	}
	f := classify(err)
	if !errors.Is(err, record.ErrCommitted) {
		switch f.code {
		case "no_such_file":
			f.hint = "with --create a missing file is made"
		case "no_space", "quota_exceeded":
			f.hint = "free some space; " + plan.file + " is as it was"
		case "lock_lost":
			f.hint = "something removed or replaced the lock file; " + plan.file + " is as it was, and lock files are never deleted by hand"
		}
	}
	report(os.Stderr, f, plan.json)
	return f.exit
}

// editing is one edit under way. It is the record.Lock of its own file.
type editing struct {
	*editPlan
	command string // its path
	signals *signalSet

	path   string // of the file, resolved
	lockID string
	runs   int
	code   int
}

// errCommandFailed: the command has ended with a code of its own.
var errCommandFailed = errors.New("the command failed")

func (plan *editPlan) run() (int, error) {
	e := &editing{editPlan: plan, signals: catchSignals()}
	var err error
	if e.command, err = findCommand(plan.argv[0]); err != nil {
		return 0, err
	}
	err = record.Rewrite(context.Background(), plan.file, e.change, record.UpdateOptions{
		Lock: e, Create: plan.create, IfChanged: plan.ifChanged, NoSync: plan.noSync,
	})
	if errors.Is(err, errCommandFailed) {
		return e.code, nil
	}
	if n := e.signals.pending(); n != 0 && err == nil {
		// It came when the new content was landing already.
		err = &endedBySignal{n}
	}
	return 0, err
}

func (e *editing) Timeout() time.Duration {
	if e.lock.Timeout > 0 {
		return e.lock.Timeout
	}
	return e.lock.Policy.Timeout()
}

func (e *editing) Resolve(path string) (string, error) {
	h, err := openTarget(path, e.lock)
	if err != nil {
		return "", err
	}
	e.path, e.lockID = h.Target(), h.LockID()
	return e.path, h.Close()
}

func (e *editing) Acquire(_ context.Context, path string, wait time.Duration) (record.Hold, error) {
	l, err := acquireKernel(path, e.lock, wait, e.signals, e.json)
	if err != nil {
		return nil, err
	}
	return &editHold{l, e.signals}, nil
}

// acquireKernel takes the kernel lock of a file, showing whom we wait for. A signal ends the wait.
func acquireKernel(path string, o kernlock.Options, wait time.Duration, signals *signalSet, quiet bool) (*kernlock.Lock, error) {
	o.Timeout = max(wait, kernlock.TryOnce)
	h, err := kernlock.Open(path, o)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	deadline := time.Now().Add(wait)
	ctx := newWaitContext(signals, func() *waitLine {
		return startWaitLine(target{handle: h}, &runPlan{json: quiet}, deadline)
	})
	l, err := h.Acquire(ctx)
	n := ctx.end()
	switch {
	case err != nil && n == 0:
		return nil, err
	case n != 0:
		if l != nil {
			_ = l.Release()
		}
		return nil, &endedBySignal{n}
	case h.Target() != path:
		return nil, errors.Join(fmt.Errorf("lock %s: it has moved to %s meanwhile", path, h.Target()), l.Release())
	}
	return l, nil
}

// editHold refuses to land anything once a signal has come.
type editHold struct {
	*kernlock.Lock
	signals *signalSet
}

func (h *editHold) Fence() error {
	h.signals.ready()
	if n := h.signals.pending(); n != 0 {
		return &endedBySignal{n}
	}
	return h.Lock.Fence()
}

// change runs the command once, with the old content as its input; its output goes to w.
func (e *editing) change(_ io.Reader, w io.Writer) error {
	e.runs++
	if e.runs > 1 && !e.json {
		printFailure(os.Stderr, "the lock was lost before the new content landed: the command runs again", "")
	}
	// The file itself, not a pipe: a command that does not read cannot hold us up, and one that wants
	// to seek can.
	input, err := os.Open(e.path)
	if errors.Is(err, os.ErrNotExist) {
		input, err = os.Open(os.DevNull)
	}
	if err != nil {
		return err
	}
	defer input.Close()
	// A pipe, not the new file itself: what the command leaves behind must not be able to write into
	// the file when it has landed.
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer out.Close()
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(w, out)
		if err != nil {
			// The command then meets a broken pipe, and ends.
			_ = out.Close()
		}
		copied <- err
	}()
	e.code, err = e.runCommand(input, in)
	_ = in.Close()
	if cerr := e.awaitOutput(copied, out); cerr != nil {
		return cerr // also when the command failed: it may have failed for this
	}
	if err != nil {
		return err
	}
	if e.code != 0 {
		return errCommandFailed
	}
	return nil
}

// runCommand lets the command have the signals that come while it runs. Those after that are ours.
func (e *editing) runCommand(input, output *os.File) (int, error) {
	e.signals.ready()
	if n := e.signals.pending(); n != 0 {
		return 0, &endedBySignal{n}
	}
	held := strings.TrimPrefix(os.Getenv(heldVariable)+":"+e.lockID, ":")
	env := append(os.Environ(), heldVariable+"="+held)
	return runCommand(e.command, e.argv, dropEarlier(env, heldVariable), e.signals, input, output, os.Stderr)
}

// awaitOutput waits for the end of the output. That can be after the command's: a filter behind it may
// have work left, and half its output is not the new content.
func (e *editing) awaitOutput(copied <-chan error, out *os.File) error {
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	for {
		select {
		case err := <-copied:
			return err
		case sig := <-e.signals.arrived:
			if !slices.Contains(endingSignals, sig) {
				continue
			}
			_ = out.Close()
			<-copied //nolint:errcheck // that it has ended is what counts
			return &endedBySignal{signalNumber(sig)}
		case <-patience.C:
			if !e.json {
				printFailure(os.Stderr, display.Text(e.argv[0])+" has ended, and something that it left behind keeps its output open: waiting for it",
					"^C ends the wait and changes nothing")
			}
		}
	}
}
