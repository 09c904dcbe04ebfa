package main

import (
	"context"
	"fmt"

	"github.com/stile-lock/stile/record"
)

// linesOpener gives the function that adds a line to the file at path.
type linesOpener func(path string) (func(line []byte) error, error)

func openLines(o record.LineOptions) linesOpener {
	return func(path string) (func([]byte) error, error) {
		l, err := record.OpenLines(path, o)
		if err != nil {
			return nil, err
		}
		return func(line []byte) error { return l.Append(context.Background(), line) }, nil
	}
}

// workLines adds lines from the gate's opening to the stop, and counts those
// of the window that is common to all: its last nine tenths.
func workLines(j job, open linesOpener, page *sharedPage, ready func(), say func(string, int64)) error {
	add, err := open(j.path)
	if err != nil {
		return err
	}
	ready()
	for page.load(wordGate) == 0 {
		nap(100_000)
	}
	gate, stop := page.load(wordGate), page.load(wordStop)
	for mono() < gate {
	}
	done, in := 0, 0
	for from := gate + (stop-gate)/10; ; done++ {
		now := mono()
		if now >= stop {
			break
		}
		if err := add(fmt.Appendf(nil, `{"worker":%d,"seq":%d,"text":"%*s"}`, j.id, done, linePad(j.id, done), "")); err != nil {
			return err
		}
		if end := mono(); end >= from && end < stop {
			in++
		}
	}
	say("done", int64(done))
	say("in", int64(in))
	return nil
}

// linePad brings every line to 199 bytes and its newline.
func linePad(id, seq int) int {
	return 199 - len(fmt.Sprintf(`{"worker":%d,"seq":%d,"text":""}`, id, seq))
}
