package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
)

func boardVerb() verb {
	v := verb{
		name:     "board",
		brief:    "show, check and repair the boards of agents",
		synopsis: "show|check|repair [flags] …",
		detail: `An agent's board has an item for each of its dispatches, under todo, doing or done.
'stile dispatch' keeps it; people and agents read it, and may put items on it.`,
		examples: `stile board show --agent ada
stile board check
stile board repair --agent ada`,
		subs: func() []verb { return []verb{boardShowVerb(), boardCheckVerb(), boardRepairVerb()} },
	}
	v.options = func() []option { return groupFlags(v.subs()) }
	v.operands = "show check repair"
	return v
}

type boardShowFlags struct {
	estateFlags
	markdown bool
}

func (f *boardShowFlags) options() []option {
	return append(f.estateFlags.options(), boolOption("markdown", "print Markdown", &f.markdown))
}

func boardShowVerb() verb {
	return verb{
		name:     "board show",
		brief:    "show an agent's board, or all boards",
		synopsis: "[--agent NAME] [--markdown|--json]",
		detail: `Shows the board of one agent, or of every agent of the estate. Nothing is locked or
changed, so it works where one may only read.

Exit code: 0; 1 usage, or no such agent; 2 a board is not what it should be.`,
		examples: `stile board show --agent ada
stile board show --markdown > BOARD.md`,
		options: func() []option { return new(boardShowFlags).options() },
		run:     cmdBoardShow,
	}
}

// boardOut is the JSON of a board.
type boardOut struct {
	Agent string          `json:"agent"`
	Items []dispatch.Item `json:"items"`
}

// noOperands refuses what stands behind the flags of a verb that takes none.
func noOperands(p parsed, err error, form string) error {
	if err == nil && len(p.operands) > 0 {
		return usageHint(form+" --agent "+display.ShellWord(p.operands[0]), "there is an operand too many: %q", p.operands[0])
	}
	return err
}

func cmdBoardShow(args []string) int {
	var f boardShowFlags
	p, err := parse(args, f.options(), false)
	if err = noOperands(p, err, "stile board show"); err == nil && f.markdown && f.json {
		err = usagef("--markdown and --json exclude each other")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		agents := []string{f.agent}
		if f.agent == "" {
			if agents, err = e.Agents(); err != nil {
				return err
			}
		}
		boards := []boardOut{}
		for _, name := range agents {
			items, err := e.Board(name)
			if err != nil {
				return err
			}
			if items == nil {
				items = []dispatch.Item{}
			}
			boards = append(boards, boardOut{name, items})
		}
		w := bufio.NewWriter(stdout)
		switch {
		case f.json:
			printJSON(w, map[string]any{"estate": e.Path(), "boards": boards})
		case f.markdown:
			printMarkdown(w, boards)
		default:
			printBoards(w, e, boards)
		}
		return w.Flush()
	})
}

var columns = []dispatch.Column{dispatch.Todo, dispatch.Doing, dispatch.Closed}

// inColumns gives the items in the order of the columns; those of other columns, put there by hand, last.
func inColumns(items []dispatch.Item) (sorted []dispatch.Item) {
	for _, c := range columns {
		for _, it := range items {
			if it.Column == c {
				sorted = append(sorted, it)
			}
		}
	}
	for _, it := range items {
		if it.Column != dispatch.Todo && it.Column != dispatch.Doing && it.Column != dispatch.Closed {
			sorted = append(sorted, it)
		}
	}
	return sorted
}

func printBoards(w io.Writer, e *dispatch.Estate, boards []boardOut) {
	rows := [][]string{{"AGENT", "COLUMN", "DISPATCH", "UPDATED", "TITLE"}}
	for _, b := range boards {
		for _, it := range inColumns(b.Items) {
			rows = append(rows, []string{cell(b.Agent, 64), cell(string(it.Column), 16), cell(it.Dispatch, 64), cell(it.UpdatedAt, 24), cell(it.Title, 100)})
		}
	}
	if len(rows) == 1 {
		fmt.Fprintf(w, "no items on the boards of %s\n", display.Text(e.Path()))
		return
	}
	printTable(w, rows)
}

func printMarkdown(w io.Writer, boards []boardOut) {
	for i, b := range boards {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s\n", markdownText(b.Agent))
		last, first := dispatch.Column(""), true
		for _, it := range inColumns(b.Items) {
			if first || it.Column != last {
				fmt.Fprintf(w, "\n## %s\n\n", markdownText(cell(string(it.Column), 32)))
				last, first = it.Column, false
			}
			line := markdownText(cell(it.Title, 100))
			if it.Dispatch != "" {
				line += " (" + markdownText(cell(it.Dispatch, 64)) + ")"
			}
			fmt.Fprintf(w, "- %s\n", line)
		}
	}
}

// markdownText keeps a text from being read as anything but text.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range display.Text(s) {
		if strings.ContainsRune("\\`*_{}[]<>()#+!|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func boardRepairVerb() verb {
	return verb{
		name:     "board repair",
		brief:    "put on a board what is missing",
		synopsis: "--agent NAME [-w SECS] [--json]",
		detail: `Adds an item for each dispatch in the log that has none, and moves the items of
closed dispatches under done. It is done under the lock of the log. Nothing is taken
off a board: an item whose dispatch is not in the log stays.

Exit code: 0; 1 usage, or it could not be done; 2 the lock is held, or log or board
is not what it should be: nothing was changed.`,
		examples: `stile board repair --agent ada`,
		options: func() []option {
			f := new(estateFlags)
			return append(f.options(), f.waitOption())
		},
		run: cmdBoardRepair,
	}
}

func cmdBoardRepair(args []string) int {
	var f estateFlags
	p, err := parse(args, append(f.options(), f.waitOption()), false)
	if err = noOperands(p, err, "stile board repair"); err == nil && f.agent == "" {
		err = usageHint("stile board repair --agent NAME", "no agent was named")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		return waiting(func(ctx context.Context) error {
			done, err := e.Repair(ctx, f.agent)
			if err != nil {
				return err
			}
			if f.json {
				printJSON(stdout, map[string]any{"agent": f.agent, "added": orEmpty(done.Added), "moved": orEmpty(done.Moved)})
				return nil
			}
			w := bufio.NewWriter(stdout)
			for _, id := range done.Added {
				fmt.Fprintf(w, "added %s\n", cell(id, 64))
			}
			for _, id := range done.Moved {
				fmt.Fprintf(w, "moved %s to done\n", cell(id, 64))
			}
			if len(done.Added)+len(done.Moved) == 0 {
				fmt.Fprintln(w, "nothing to repair")
			}
			return w.Flush()
		})
	})
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
