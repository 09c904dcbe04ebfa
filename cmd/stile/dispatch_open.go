package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/stile-lock/stile/dispatch"
)

type openFlags struct {
	estateFlags
	task   textFlag
	worker string
	labels map[string]string
}

func (f *openFlags) options() []option {
	all := append(f.estateFlags.options(), f.task.options("task", "what is to be done")...)
	return append(all,
		stringOption("worker", "NAME", "who works on it", &f.worker),
		option{names: "label", arg: "KEY=VALUE", help: "a label; may be repeated", set: func(v string) error {
			key, value, ok := strings.Cut(v, "=")
			if !ok || key == "" {
				return usagef("--label needs KEY=VALUE, not %q", v)
			}
			if f.labels == nil {
				f.labels = map[string]string{}
			}
			f.labels[key] = value
			return nil
		}},
		f.waitOption(),
	)
}

func openVerb() verb {
	return verb{
		name:     "dispatch open",
		brief:    "record that work is given to an agent",
		synopsis: "--agent NAME --task TEXT [flags]",
		detail: `Adds a dispatch to the agent's log and an item to its board, and prints its id. The
agent's folder is made when it is missing. A TEXT has at most 64 KiB.

When the lock is lost between log and board the dispatch stays, and the exit code
is 2: do not open it again, 'stile board repair' adds its item.

Exit code: 0; 1 usage, or it could not be done; 2 the lock is held, or the log or
board is not what it should be: nothing was changed, unless the message says so.`,
		examples: `stile dispatch open --agent ada --task 'water the plants'
stile dispatch open --agent ada --worker bob --label room=kitchen --task-file task.md
id=$(./plan | stile dispatch open --agent ada --task-file -)`,
		options: func() []option { return new(openFlags).options() },
		run:     cmdOpen,
	}
}

func cmdOpen(args []string) int {
	var f openFlags
	p, err := parse(args, f.options(), false)
	switch {
	case err != nil:
	case len(p.operands) > 0:
		err = usageHint("put the task into quotes, behind --task", "there is an operand too many: %q", p.operands[0])
	case f.agent == "":
		err = usageHint("stile dispatch open --agent NAME --task TEXT", "no agent was named")
	case !f.task.given:
		err = usageHint("stile dispatch open --agent NAME --task TEXT", "no task was given")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		return waiting(func(ctx context.Context) error {
			r, err := e.OpenDispatch(ctx, f.agent, dispatch.Task{Text: f.task.text, Worker: f.worker, Labels: f.labels})
			if err != nil {
				return err
			}
			if f.json {
				return recorded(r.ID, writeJSON(stdout, dispatchOf(f.agent, &r)))
			}
			_, err = fmt.Fprintln(stdout, r.ID)
			return recorded(r.ID, err)
		})
	})
}
