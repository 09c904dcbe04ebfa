package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
)

func dispatchVerb() verb {
	v := verb{
		name:     "dispatch",
		brief:    "keep the record of the work that was given to agents",
		synopsis: "open|close|list|show|unlock [flags] …",
		detail: `Each agent of an estate has a log of the work that it was given, and a board. Both
are changed under the lock file beside the log: no dispatch is lost, whoever else
writes or dies. 'stile init' makes an estate; 'stile board' shows the boards.`,
		examples: `stile dispatch open --agent ada --task 'water the plants'
stile dispatch list --agent ada
stile dispatch close 01JDXYZ… --status done --result 'they were thirsty'`,
		subs: func() []verb {
			return []verb{openVerb(), closeVerb(), listVerb(), showVerb(), dispatchUnlockVerb()}
		},
	}
	v.options = func() []option { return groupFlags(v.subs()) }
	v.operands = "open close list show unlock"
	return v
}

// estateFlags are the flags of every verb that works in an estate.
type estateFlags struct {
	estate string
	agent  string
	json   bool
	wait   time.Duration // 0: as the lock file has it
}

func (f *estateFlags) options() []option {
	return []option{
		estateOption(&f.estate),
		{names: "agent", arg: "NAME", help: "the agent whose log or board is meant", set: func(v string) error {
			if v == "" {
				return usagef("--agent needs a name")
			}
			f.agent = v
			return nil
		}},
		jsonOption(&f.json),
	}
}

// waitOption is for the verbs that change something.
func (f *estateFlags) waitOption() option {
	return option{names: "w,wait,timeout", arg: "SECS", help: "wait at most SECS for the lock, 10 by default; 0 tries once", set: func(v string) error {
		d, err := parseWait(v)
		if err == nil {
			f.wait = *d
		}
		return err
	}}
}

// open finds and opens the estate.
func (f *estateFlags) open() (*dispatch.Estate, error) {
	e, err := dispatch.OpenEstate(estateOptions(f.estate, ""))
	if err != nil {
		return nil, err
	}
	e.Timeout = f.wait
	return e, nil
}

// in runs work in the estate, and reports what goes wrong.
func (f *estateFlags) in(work func(*dispatch.Estate) error) int {
	e, err := f.open()
	if err == nil {
		err = errors.Join(work(e), e.Close())
	}
	var code *exitCode
	switch {
	case errors.As(err, &code):
		return code.n
	case err != nil:
		return failDispatch(err, f.json)
	}
	return 0
}

// exitCode is how work ends without an error to report.
type exitCode struct{ n int }

func (e *exitCode) Error() string { return fmt.Sprintf("exit code %d", e.n) }

// failDispatch is fail, with what is known of a change that is in the log already.
func failDispatch(err error, asJSON bool) int {
	f := classify(err)
	var landed *dispatch.LandedError
	if !errors.As(err, &landed) {
		if f.hint == hintNoSpace {
			f.hint = "free some space; nothing was changed"
		}
		return fail(f, asJSON)
	}
	f.hint = hintRecorded
	if landed.Board {
		f.hint += "; this brings the board up to date: " + landed.Hint
	}
	if !asJSON {
		return fail(f, false)
	}
	o := newErrorObject(f)
	o.Dispatch = display.Text(landed.ID)
	printJSON(stdout, o)
	return exitOfOthers(f)
}

// recorded is the end of a change that is in the log: it stands, though nobody may have been told of it.
func recorded(id string, printing error) error {
	if printing == nil {
		return nil
	}
	return &failure{exit: exitIO, code: "io_error", hint: hintRecorded, err: fmt.Errorf("dispatch %s is recorded, but that could not be printed: %w", display.Text(id), printing)}
}

const hintRecorded = "it is recorded: do not repeat it"

// waiting runs a change that may wait for a lock. A signal ends the wait; one that comes when the change is
// under way does not tear it.
func waiting(change func(ctx context.Context) error) error {
	signals := catchSignals()
	signals.ready() // from its first moment a change has files beside the log
	ctx := newWaitContext(signals, func() *waitLine { return nil })
	err := change(ctx)
	if n := ctx.end(); n != 0 && errors.Is(err, context.Canceled) {
		return &exitCode{128 + n}
	}
	return err
}

// textFlag is a text that comes from a flag, a file or the standard input.
type textFlag struct {
	text  string
	given bool
}

func (t *textFlag) options(name, help string) []option {
	return []option{
		{names: name, arg: "TEXT", help: help, set: func(v string) error {
			return t.put(name, v)
		}},
		{names: name + "-file", arg: "FILE", help: "read it from FILE, or from the standard input for '-'", words: "FILE", set: func(v string) error {
			text, err := readText(v)
			if err != nil {
				return err
			}
			return t.put(name, text)
		}},
	}
}

func (t *textFlag) put(name, text string) error {
	if t.given {
		return usagef("--%s was given twice", name)
	}
	t.text, t.given = text, true
	return nil
}

// readText reads a text that somebody wrote into a file, less the newline that ends it.
func readText(name string) (string, error) {
	var r io.Reader = os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", &failure{exit: exitUsage, code: "usage", hint: "check the name", err: err}
		}
		defer f.Close() // a failed close of what was only read loses nothing
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, dispatch.MaxText+2)) // enough to tell that it is too long
	if err != nil {
		return "", &failure{exit: exitUsage, code: "usage", hint: "it must be a file that can be read", err: err}
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}
