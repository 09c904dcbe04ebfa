package main

import (
	"context"
	"fmt"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
)

type closeFlags struct {
	estateFlags
	status string
	result textFlag
}

func (f *closeFlags) options() []option {
	all := append(f.estateFlags.options(),
		option{names: "status", arg: "STATUS", help: "done, failed or cancelled", words: "done failed cancelled", set: func(v string) error {
			switch dispatch.Status(v) {
			case dispatch.Done, dispatch.Failed, dispatch.Cancelled:
				f.status = v
				return nil
			}
			return usagef("--status needs done, failed or cancelled, not %q", v)
		}})
	return append(append(all, f.result.options("result", "what came of it")...), f.waitOption())
}

func closeVerb() verb {
	return verb{
		name:     "dispatch close",
		brief:    "record the end of a dispatch",
		synopsis: "ID --status done|failed|cancelled [flags]",
		detail: `Sets the status of a dispatch, its time and its result in the log, and moves its
item to "done" on the board. Every other byte of the log stays. Without --agent
the dispatch is looked for in all logs of the estate.

Exit code: 0; 1 usage, no such dispatch, or it could not be done; 2 the dispatch is
closed already or there twice, the lock is held, or log or board is not what it
should be: nothing was changed, unless the message says so.`,
		examples: `stile dispatch close 01JDXYZ… --status done --result 'they were thirsty'
./report | stile dispatch close 01JDXYZ… --status failed --result-file -`,
		options: func() []option { return new(closeFlags).options() },
		run:     cmdClose,
	}
}

func cmdClose(args []string) int {
	var f closeFlags
	p, err := parse(args, f.options(), false)
	switch {
	case err != nil:
	case len(p.operands) != 1 || p.operands[0] == "":
		err = usageHint("stile dispatch close ID --status done", "one ID is to be named")
	case f.status == "":
		err = usageHint("stile dispatch close "+display.ShellWord(p.operands[0])+" --status done", "no status was given: done, failed or cancelled")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		return waiting(func(ctx context.Context) error {
			o := dispatch.Outcome{Status: dispatch.Status(f.status), Result: f.result.text}
			agent, err := agentOf(e, f.agent, p.operands[0])
			if err != nil {
				return err
			}
			r, err := e.CloseDispatch(ctx, agent, p.operands[0], o)
			if err != nil {
				return err
			}
			if f.json {
				return recorded(r.ID, writeJSON(stdout, dispatchOf(agent, &r)))
			}
			_, err = fmt.Fprintf(stdout, "%s of %s: %s\n", display.Text(r.ID), display.Text(agent), r.Status)
			return recorded(r.ID, err)
		})
	})
}

// agentOf is the agent that a dispatch is of, when none was named.
func agentOf(e *dispatch.Estate, named, id string) (string, error) {
	if named != "" {
		return named, nil
	}
	name, _, err := e.Find("", id)
	return name, err
}
