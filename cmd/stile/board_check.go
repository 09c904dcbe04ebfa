package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
)

type boardCheckFlags struct {
	estateFlags
	envelope bool
	event    string
}

func (f *boardCheckFlags) options() []option {
	f.event = hookEvents[0]
	return append(f.estateFlags.options(),
		boolOption("hook-envelope", "print the JSON that a coding agent's hook reads, or nothing; exit 0 whatever comes", &f.envelope),
		option{names: "event", arg: "NAME", help: "the hook's event: SessionStart (the default) or UserPromptSubmit", words: strings.Join(hookEvents, " "), set: func(v string) error {
			if !slices.Contains(hookEvents, v) {
				return usagef("--event needs %s, not %q", strings.Join(hookEvents, " or "), v)
			}
			f.event = v
			return nil
		}},
	)
}

// hookEvents are those whose hooks may add to what an agent reads.
var hookEvents = []string{"SessionStart", "UserPromptSubmit"}

func boardCheckVerb() verb {
	return verb{
		name:     "board check",
		brief:    "compare boards with logs, and look at the locks",
		synopsis: "[--agent NAME] [--json]\n[--agent NAME] --hook-envelope [--event NAME]",
		detail: `Says where an agent's board and log differ, which of them cannot be read, and which
lock is held for more than a minute. Nothing is locked or changed, so it works where
one may only read. What dead writers left is told, and is no problem.

With --hook-envelope the problems are printed as the JSON that the hooks of coding
agents read, cut off after 360 characters, a held lock first; nothing is printed when
there are none, and the exit code is 0 whatever comes.

Exit code: 0 no problem; 1 usage, or it could not be done; 2 a problem was found.`,
		examples: `stile board check
stile board check --json | jq -r '.problems[].kind'
stile board check --hook-envelope --event UserPromptSubmit`,
		options: func() []option { return new(boardCheckFlags).options() },
		run:     cmdBoardCheck,
	}
}

// checkOut is the JSON of a check.
type checkOut struct {
	Estate    string         `json:"estate"`
	Problems  []checkProblem `json:"problems"`
	Leftovers []leftoverOut  `json:"leftovers"`
}

type checkProblem struct {
	Kind     string          `json:"kind"`
	Agent    string          `json:"agent"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint"` // the command that mends it, or ""
	Dispatch *string         `json:"dispatch"`
	LockPath *string         `json:"lock_path"`
	Holder   *lockFileHolder `json:"holder"`
}

type leftoverOut struct {
	Agent string `json:"agent"`
	Path  string `json:"path"`
}

func cmdBoardCheck(args []string) int {
	var f boardCheckFlags
	p, err := parse(args, f.options(), false)
	err = noOperands(p, err, "stile board check")
	if f.envelope || slices.Contains(args, "--hook-envelope") {
		if err != nil {
			fail(err, false)
			return 0
		}
		f.hook()
		return 0
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		found, err := f.check(e)
		if err != nil {
			return err
		}
		if f.json {
			printJSON(stdout, checkJSON(e, found))
		} else if err := printFindings(found); err != nil {
			return err
		}
		if len(found.Problems) > 0 {
			return &exitCode{exitProblem}
		}
		return nil
	})
}

func (f *boardCheckFlags) check(e *dispatch.Estate) (dispatch.Findings, error) {
	if f.agent != "" {
		return e.Check(f.agent)
	}
	return e.Check()
}

func checkJSON(e *dispatch.Estate, found dispatch.Findings) *checkOut {
	out := &checkOut{Estate: e.Path(), Problems: []checkProblem{}, Leftovers: []leftoverOut{}}
	for _, p := range found.Problems {
		q := checkProblem{Kind: string(p.Kind), Agent: p.Agent, Message: display.Text(p.String()), Hint: p.Hint}
		if p.Dispatch != "" {
			q.Dispatch = &p.Dispatch
		}
		if p.Lock != nil {
			st := lockFileStatusOf(*p.Lock)
			q.LockPath, q.Holder = &st.LockPath, st.Holder
		}
		out.Problems = append(out.Problems, q)
	}
	for _, l := range found.Leftovers {
		out.Leftovers = append(out.Leftovers, leftoverOut(l))
	}
	return out
}

func printFindings(found dispatch.Findings) error {
	w := bufio.NewWriter(stdout)
	for _, p := range found.Problems {
		fmt.Fprintln(w, display.Text(p.String()))
	}
	for _, l := range found.Leftovers {
		fmt.Fprintf(w, "left over: %s (its writer is dead; the next one removes it)\n", display.Text(l.Path))
	}
	if len(found.Problems) == 0 {
		fmt.Fprintln(w, "boards and logs agree")
	}
	return w.Flush()
}

// hookText is what a coding agent is told at most, in characters.
const hookText = 360

type hookEnvelope struct {
	Output hookOutput `json:"hookSpecificOutput"`
}

type hookOutput struct {
	Event   string `json:"hookEventName"`
	Context string `json:"additionalContext"`
}

// hook prints what there is to say to a coding agent. Nothing here may stop its work.
func (f *boardCheckFlags) hook() {
	var lines []string
	e, err := f.open()
	if err == nil {
		var found dispatch.Findings
		found, err = f.check(e)
		err = errors.Join(err, e.Close())
		for _, p := range found.Problems {
			lines = append(lines, p.String())
		}
	}
	if err != nil && !errors.Is(err, estate.ErrNone) {
		lines = append(lines, "stile: "+err.Error())
	}
	if len(lines) == 0 {
		return
	}
	for i, line := range lines {
		lines[i] = display.Text(line)
	}
	text := []rune(strings.Join(lines, "\n"))
	if len(text) > hookText {
		text = text[:hookText]
	}
	_ = writeJSON(os.Stdout, &hookEnvelope{hookOutput{f.event, string(text)}}) // not stdout: it exits 0 whatever comes
}
