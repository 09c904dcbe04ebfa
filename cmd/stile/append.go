package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stile-lock/stile/record"
)

func appendVerb() verb {
	return verb{
		name:     "append",
		brief:    "add whole lines to a file, from any number of writers",
		synopsis: "[flags] FILE LINE\n[flags] FILE < LINES",
		detail: `Adds LINE, or every line of the standard input, to the end of FILE under its
lock. Lines of several writers never run into each other and none is lost. A
missing FILE is made; its folder must exist. The lock is that of 'stile run' and
'stile edit', and of flock(1) on FILE.lock.

Lines that come together are added together, in one write; for a line that is
still being typed the lock is not held. A last line that comes without its
newline gets one. So does a last line in FILE that was left without one.

Exit code: 0; 1 usage, or it could not be done; 2 the lock is held, FILE is not a
plain file, or a line is not what it should be. The message then says how many
lines were added before.`,
		examples: `stile append notes.md '- water the plants'
./watch | stile append events.jsonl --check-json --sync
stile append -- list '--a line that begins with a dash'`,
		options:  func() []option { return new(appendPlan).options() },
		operands: "FILE",
		run:      cmdAppend,
	}
}

type appendPlan struct {
	lines record.LineOptions
	json  bool
}

func (plan *appendPlan) options() []option {
	return append([]option{
		boolOption("sync", "wait until the lines are on disk", &plan.lines.Sync),
		boolOption("check-json", "refuse a line that is not one JSON value", &plan.lines.CheckJSON),
	}, lockOptions(&plan.lines.Lock, &plan.json, "stdout")...)
}

func cmdAppend(args []string) int {
	var plan appendPlan
	p, err := parse(args, plan.options(), false)
	if err != nil {
		return fail(err, plan.json || wantsJSON(args))
	}
	a := &appending{appendPlan: plan}
	err = a.run(p.operands)
	var quiet *endedBySignal
	switch {
	case errors.As(err, &quiet):
		return 128 + quiet.number
	case err != nil:
		return a.fail(err)
	}
	return 0
}

// appending is one append under way.
type appending struct {
	appendPlan
	to      *record.Lines
	signals *signalSet
	added   int
}

func (a *appending) run(operands []string) (err error) {
	switch {
	case len(operands) == 0 || operands[0] == "":
		return usageHint("stile append FILE 'one line'", "no FILE was given")
	case len(operands) > 2:
		return usageHint("put the line into quotes", "one LINE at a time, not %d", len(operands)-1)
	}
	if a.lines.Lock.Operation == "" {
		a.lines.Lock.Operation = "append"
	}
	a.signals = catchSignals()
	h, err := openTarget(operands[0], a.lines.Lock)
	if err != nil {
		return err
	}
	if err := h.Close(); err != nil {
		return err
	}
	if a.to, err = record.OpenLines(h.Target(), a.lines); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.to.Close()) }()
	if len(operands) == 2 {
		return a.add([][]byte{[]byte(operands[1])})
	}
	return a.addInput(os.Stdin)
}

// addInput adds lines as they come. The reading is done aside, so that a signal ends it.
func (a *appending) addInput(r io.Reader) error {
	batches := make(chan batch)
	quit := make(chan struct{})
	defer close(quit)
	go readBatches(r, batches, quit)
	a.signals.ready()
	for {
		select {
		case b := <-batches:
			if len(b.lines) > 0 {
				if err := a.add(b.lines); err != nil {
					return err
				}
			}
			if errors.Is(b.err, io.EOF) {
				return nil
			}
			if b.err != nil {
				return b.err
			}
		case sig := <-a.signals.arrived:
			return &endedBySignal{signalNumber(sig)}
		}
	}
}

func (a *appending) add(lines [][]byte) error {
	ctx := newWaitContext(a.signals, func() *waitLine { return nil })
	err := a.to.Append(ctx, lines...)
	if n := ctx.end(); n != 0 {
		return &endedBySignal{n} // before the lines or behind them, never among them
	}
	if err == nil || errors.Is(err, record.ErrCommitted) {
		a.added += len(lines)
	}
	return err
}

// fail reports an error, and how far it came.
func (a *appending) fail(err error) int {
	var place *record.FormatError
	if errors.As(err, &place) && errors.Is(err, record.ErrRecord) {
		// Its lines are counted from those added together.
		err = &failure{exit: exitBadFile, code: "bad_record", hint: "mend the line at the place named",
			err: fmt.Errorf("line %d, column %d: %s", place.Line+a.added, place.Column, place.Reason)}
	}
	f := classify(err)
	if f.code == "no_space" || f.code == "quota_exceeded" {
		f.hint = "free some space; nothing of the line is left in the file"
	}
	if a.added > 0 {
		f = &failure{exit: f.exit, code: f.code, hint: f.hint,
			err: fmt.Errorf("%w (%s added before)", f.err, plural(a.added, "line was", "lines were"))}
	}
	return fail(f, a.json)
}

// batch is the lines that one read has completed.
type batch struct {
	lines [][]byte
	err   error // behind the lines; io.EOF at the end
}

const (
	batchSize = 1 << 20
	// longestLine keeps an endless line from filling the memory.
	longestLine = 256 << 20
)

// readBatches sends the lines of r as they come.
func readBatches(r io.Reader, to chan<- batch, quit <-chan struct{}) {
	var rest []byte
	buf := make([]byte, batchSize)
	for {
		n, err := r.Read(buf)
		var b batch
		old := len(rest)
		rest = append(rest, buf[:n]...)
		if end := bytes.LastIndexByte(rest[old:], '\n'); end >= 0 {
			end += old
			b.lines = bytes.SplitAfter(rest[:end+1:end+1], []byte("\n"))
			b.lines = b.lines[:len(b.lines)-1] // what is behind the last newline: nothing
			rest = bytes.Clone(rest[end+1:])
		}
		switch {
		case err != nil:
			if len(rest) > 0 && errors.Is(err, io.EOF) {
				b.lines = append(b.lines, rest)
			}
			b.err = err
		case len(rest) > longestLine:
			b.err = &failure{exit: exitBadFile, code: "bad_record", err: fmt.Errorf("a line is longer than %d MiB", longestLine>>20)}
		case len(b.lines) == 0:
			continue
		}
		select {
		case to <- b:
		case <-quit:
			return
		}
		if b.err != nil {
			return
		}
	}
}
