package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

func unlockVerb() verb {
	return verb{
		name:     "unlock",
		brief:    "remove a lock file whose holder is dead, or by force",
		synopsis: "[--force] [--json] FILE",
		detail: `Shows who holds the lock file of FILE, and removes it if that process is provably
dead. Any other lock is left as it is; --force removes it all the same. Use
--force only once the holder's process is gone or stuck, never while it is still
running: it could then overwrite what the next holder writes. What is removed is
the lock that was shown: if it has changed since, nothing is.

Only lock files are removed. The kernel locks of 'stile run', 'edit' and 'append'
are free as soon as their holder has ended; for one that is held, unlock says by
whom and what to do.

Exit code: 0 removed, or nothing to remove; 1 usage, or it could not be done;
2 the lock is left as it was.`,
		examples: `stile unlock agents/ada/spawn-log.json
stile unlock --force agents/ada/spawn-log.json   # the process is stuck, and was looked at`,
		options:  func() []option { return new(unlockFlags).options() },
		operands: "FILE",
		run:      cmdUnlock,
	}
}

type unlockFlags struct{ force, json bool }

func (f *unlockFlags) options() []option {
	return []option{
		boolOption("force", "remove the lock whatever its holder", &f.force),
		jsonOption(&f.json),
	}
}

// unlockResult is the JSON of an unlock that was not refused.
type unlockResult struct {
	lockFileStatus
	Removed bool `json:"removed"`
}

func cmdUnlock(args []string) int {
	var f unlockFlags
	p, err := parse(args, f.options(), false)
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	if len(p.operands) != 1 || p.operands[0] == "" {
		return fail(usageHint("stile unlock FILE", "one FILE is to be named"), f.json)
	}
	path := p.operands[0]
	if report, err := kernlock.Status(path, kernlock.Options{}); err == nil && kernelRules(report) {
		return kernelUnlock(report, f.json)
	}
	return removeLock(path, &f, func(show func(lockfile.State)) (lockfile.Unlocked, error) {
		return lockfile.Unlock(context.Background(), path, lockfile.UnlockOptions{Force: f.force, Show: show})
	})
}

// removeLock unlocks the file at path, and says what came of it.
func removeLock(path string, f *unlockFlags, unlock func(show func(lockfile.State)) (lockfile.Unlocked, error)) int {
	// The holder is shown before anything is removed. What is left for a program on stdout is one object.
	out := io.Writer(stdout)
	if f.json {
		out = os.Stderr
	}
	done, err := unlock(func(s lockfile.State) {
		fmt.Fprintf(out, "%s: held by %s\n", display.Text(s.LockPath), s.Holder)
	})
	if err == nil && !done.State.Locked {
		// A folder that is not there has no locks, but is a slip rather than an answer.
		_, err = os.Stat(filepath.Dir(done.State.Path))
	}
	if err != nil {
		return failUnlock(path, err, done, f)
	}
	if f.json {
		printJSON(stdout, &unlockResult{lockFileStatusOf(done.State), done.Removed})
		return 0
	}
	switch {
	case done.Removed:
		fmt.Fprintln(stdout, "removed")
	case done.State.Locked:
		fmt.Fprintln(stdout, "its holder let go meanwhile")
	default:
		fmt.Fprintf(stdout, "there is no lock file %s\n", display.Text(done.State.LockPath))
	}
	return 0
}

// kernelRules says whether the lock is one of the kernel family: its file says so, or the kernel holds
// it and no lock file could be under it.
func kernelRules(r *kernlock.Report) bool {
	switch r.Content {
	case kernlock.ContentRecord, kernlock.ContentDamaged:
		return true
	case kernlock.ContentEmpty, kernlock.ContentForeign:
		return r.Kernel == kernlock.KernelHeld
	}
	return false
}

// kernelUnlock says what to do about a kernel lock: its file is never removed.
func kernelUnlock(r *kernlock.Report, asJSON bool) int {
	f := &failure{exit: exitBadFile, code: "kernel_lock", err: fmt.Errorf("%s is a kernel lock's file, which is never removed; the lock is %s", r.LockPath, heldText(r)),
		hint: "it is free when its holder ends: let it finish, or stop it"}
	if r.Kernel == kernlock.KernelFree {
		f.hint = "nobody is in the way; 'stile incidents' shows who was"
	} else if len(r.Holders) > 0 {
		f.hint = fmt.Sprintf("it is free when its holder ends: let it finish, or stop it (kill %d)", r.Holders[0].PID)
	}
	if r.Kernel == kernlock.KernelFree && !asJSON {
		fmt.Fprintf(stdout, "%s: %s\n", display.Text(r.LockPath), "a kernel lock, and free: nothing to remove")
		return 0
	}
	if r.Kernel == kernlock.KernelFree {
		printJSON(stdout, &unlockResult{lockFileStatus: lockFileStatus{Path: r.Target, LockPath: r.LockPath}})
		return 0
	}
	return fail(f, asJSON)
}

func heldText(r *kernlock.Report) string {
	switch {
	case r.Kernel == kernlock.KernelFree:
		return "free"
	case r.Holder != nil && r.HolderState == kernlock.Current:
		return "held by " + holderText(r.Holder)
	case len(r.Holders) > 0:
		return "held by " + processes(r.Holders)
	case r.Kernel == kernlock.KernelHeld:
		return "held"
	}
	return "perhaps held: the system does not show it from here"
}

// failUnlock reports an unlock that was refused or not possible.
func failUnlock(path string, err error, found lockfile.Unlocked, f *unlockFlags) int {
	fl := classify(err)
	if errors.Is(err, lockfile.ErrKernelLock) {
		if r, serr := kernlock.Status(path, kernlock.Options{}); serr == nil {
			return kernelUnlock(r, f.json)
		}
	}
	var held *lockfile.HeldError
	if errors.As(err, &held) && !errors.Is(err, lockfile.ErrBusy) {
		fl = &failure{exit: fl.exit, code: fl.code, err: errors.New("the lock is left as it was"),
			hint: held.Hint + " (only once the holder's process is gone or stuck, never while it is still running)"}
	}
	if !f.json {
		return fail(fl, false)
	}
	o := newErrorObject(fl)
	if found.State.Locked {
		h := lockFileStatusOf(found.State).Holder
		o.LockFileHolder = h
	}
	printJSON(stdout, o)
	return exitOfOthers(fl)
}
