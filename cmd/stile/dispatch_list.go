package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
)

type listFlags struct {
	estateFlags
	status string
	last   int
	follow bool
}

func (f *listFlags) options() []option {
	return append(f.estateFlags.options(),
		option{names: "status", arg: "STATUS", help: "only those: open, done, failed or cancelled", words: "open done failed cancelled", set: func(v string) error {
			switch dispatch.Status(v) {
			case dispatch.Open, dispatch.Done, dispatch.Failed, dispatch.Cancelled:
				f.status = v
				return nil
			}
			return usagef("--status needs open, done, failed or cancelled, not %q", v)
		}},
		lastOption(&f.last),
		boolOption("f,follow", "go on: show what is opened and closed from now on, until interrupted", &f.follow),
	)
}

// lastOption is "-n N"; -1 is all.
func lastOption(last *int) option {
	*last = -1
	return option{names: "n,lines", arg: "N", help: "only the last N", set: func(v string) error {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return usagef("-n needs a whole number, not %q", v)
		}
		*last = int(n)
		return nil
	}}
}

func listVerb() verb {
	return verb{
		name:     "dispatch list",
		brief:    "list dispatches, and follow them",
		synopsis: "[--agent NAME] [--status STATUS] [-n N] [--follow] [--json]",
		detail: `Lists the dispatches of one agent, or of every agent of the estate, each log in its
own order. Nothing is locked or changed, so it works where one may only read.

With --follow it goes on and shows each dispatch that is opened or closed from then
on; it ends when it is interrupted or nobody reads on. Under --json it then prints
one object a line.

Exit code: 0; 1 usage, or it could not be done; 2 a log is not what it should be:
what comes before the damage, and the other logs, are listed.`,
		examples: `stile dispatch list
stile dispatch list --agent ada --status open
stile dispatch list --follow -n 10
stile dispatch list --json | jq -r '.dispatches[] | select(.status == "failed") | .id'`,
		options: func() []option { return new(listFlags).options() },
		run:     cmdList,
	}
}

func cmdList(args []string) int {
	var f listFlags
	p, err := parse(args, f.options(), false)
	if err == nil && len(p.operands) > 0 {
		err = usageHint("stile dispatch list --agent "+display.ShellWord(p.operands[0]), "there is an operand too many: %q", p.operands[0])
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		l := &lister{listFlags: &f, e: e, w: bufio.NewWriterSize(stdout, 64<<10)}
		if f.follow {
			return l.followed()
		}
		return l.listed()
	})
}

// lister writes dispatches as they are read, so that a long log needs no more memory than a short one.
type lister struct {
	*listFlags
	e *dispatch.Estate
	w *bufio.Writer

	shown  int
	held   []*dispatchRow // with -n, the last that were read
	errors []pathError
}

func (l *lister) agents() ([]string, error) {
	if l.agent != "" {
		return []string{l.agent}, nil
	}
	return l.e.Agents()
}

func (l *lister) listed() error {
	agents, err := l.agents()
	if err != nil {
		return err
	}
	if l.json {
		path, err := json.Marshal(l.e.Path())
		if err != nil {
			return err
		}
		fmt.Fprintf(l.w, `{"estate":%s,"dispatches":[`, path)
	}
	for _, name := range agents {
		err := l.e.Records(name, func(r dispatch.Record) error { return l.take(name, &r) })
		switch {
		case err == nil:
		case len(agents) == 1 && l.agent != "" && errors.Is(err, dispatch.ErrNoAgent), errors.Is(err, dispatch.ErrName):
			return err // nothing was shown yet, but perhaps the opening of the JSON, which is not flushed
		default:
			f := classify(err)
			l.errors = append(l.errors, pathError{Path: l.e.LogPath(name), Code: f.code, Message: display.Text(f.Error())})
			if !l.json {
				_ = l.w.Flush()
				printFailure(os.Stderr, f.Error(), f.hint)
			}
		}
	}
	for _, row := range l.held {
		if err := l.print(row); err != nil {
			return err
		}
	}
	if l.json {
		text := []byte("[]")
		if len(l.errors) > 0 {
			if text, err = json.Marshal(l.errors); err != nil {
				return err
			}
		}
		fmt.Fprintf(l.w, `],"errors":%s}`+"\n", text)
	} else if l.shown == 0 && len(l.errors) == 0 {
		fmt.Fprintf(l.w, "no dispatches in %s\n", display.Text(l.e.Path()))
	}
	if err := l.w.Flush(); err != nil {
		return err
	}
	if len(l.errors) > 0 {
		return &exitCode{exitProblem}
	}
	return nil
}

// take shows a dispatch, or keeps it while it may be among the last.
func (l *lister) take(agent string, r *dispatch.Record) error {
	if l.status != "" && string(dispatchStatus(r)) != l.status {
		return nil
	}
	row := dispatchOf(agent, r)
	if l.last < 0 {
		return l.print(row)
	}
	if l.held = append(l.held, row); len(l.held) > l.last {
		l.held = append(l.held[:0], l.held[1:]...)
	}
	return nil
}

const listForm = "%-26s  %-9s  %-20s  %-24s  %-12s  %s\n"

func (l *lister) print(row *dispatchRow) error {
	l.shown++
	if l.json {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		switch {
		case l.follow:
			text = append(text, '\n')
		case l.shown > 1:
			text = append([]byte(",\n"), text...)
		}
		_, err = l.w.Write(text)
		return err
	}
	if l.shown == 1 {
		fmt.Fprintf(l.w, listForm, "DISPATCH", "STATUS", "AGENT", "OPENED", "WORKER", "TASK")
	}
	worker := "-"
	if row.Worker != nil {
		worker = *row.Worker
	}
	_, err := fmt.Fprintf(l.w, listForm, cell(row.ID, 64), cell(string(row.Status), 9), cell(row.Agent, 64), cell(row.OpenedAt, 24),
		cell(worker, 32), cell(firstLine(row.Task), 72))
	return err
}

// cell is a text of unknown origin in a table: escaped, and cut off after limit characters.
func cell(s string, limit int) string {
	if len(s) > 8*limit {
		s = s[:8*limit] // no character has more bytes, and none is shown shorter
	}
	s = display.Text(s)
	if s == "" {
		return "-"
	}
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

func firstLine(s string) string {
	s = strings.TrimLeft(s, " \t\r\n")
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimRight(line, "\r")
}
