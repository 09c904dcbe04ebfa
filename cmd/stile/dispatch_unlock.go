package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/lockfile"
)

type dispatchUnlockFlags struct {
	estateFlags
	force bool
}

func (f *dispatchUnlockFlags) options() []option {
	return append(f.estateFlags.options(), boolOption("force", "remove the lock whatever its holder", &f.force))
}

func dispatchUnlockVerb() verb {
	return verb{
		name:     "dispatch unlock",
		brief:    "remove the lock of a log whose holder is dead, or by force",
		synopsis: "[--force] [--agent NAME] [--json]",
		detail: `Shows who holds the lock of an agent's log, and removes it if that process is
provably dead. Any other lock is left as it is; --force removes it all the same.
Use --force only once the holder's process is gone or stuck, never while it is
still running. Without --agent the one log of the estate that is locked is meant.

A dead holder's lock need not be removed: the next writer does so by itself.

Exit code: 0 removed, or nothing to remove; 1 usage, or it could not be done; 2 the
lock is left as it was.`,
		examples: `stile dispatch unlock --agent ada
stile dispatch unlock --force --agent ada   # the process is stuck, and was looked at`,
		options: func() []option { return new(dispatchUnlockFlags).options() },
		run:     cmdDispatchUnlock,
	}
}

func cmdDispatchUnlock(args []string) int {
	var f dispatchUnlockFlags
	p, err := parse(args, f.options(), false)
	if err == nil && len(p.operands) > 0 {
		err = usageHint("stile dispatch unlock --agent "+display.ShellWord(p.operands[0]), "there is an operand too many: %q", p.operands[0])
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		agent := f.agent
		if agent == "" {
			if agent, err = lockedAgent(e); err != nil {
				return err
			}
		}
		if agent == "" {
			if f.json {
				printJSON(stdout, &unlockResult{})
				return nil
			}
			_, err := fmt.Fprintf(stdout, "no log in %s is locked\n", display.Text(e.Path()))
			return err
		}
		code := removeLock(e.LogPath(agent), &unlockFlags{force: f.force, json: f.json}, func(show func(lockfile.State)) (lockfile.Unlocked, error) {
			return e.Unlock(context.Background(), agent, f.force, show)
		})
		if code != 0 {
			return &exitCode{code}
		}
		return nil
	})
}

// lockedAgent is the one agent whose log is locked, or whose lock cannot be read; "" when there is none.
func lockedAgent(e *dispatch.Estate) (string, error) {
	agents, err := e.Agents()
	if err != nil {
		return "", err
	}
	var locked []string
	for _, name := range agents {
		if st, err := e.Lock(name); err != nil || st.Locked {
			locked = append(locked, name)
		}
	}
	switch len(locked) {
	case 0:
		return "", nil
	case 1:
		return locked[0], nil
	}
	quoted := make([]string, len(locked))
	for i, name := range locked {
		quoted[i] = display.ShellWord(name)
	}
	return "", usageHint(e.Command("dispatch unlock", locked[0]), "several logs are locked, so the agent must be named: %s", strings.Join(quoted, ", "))
}
