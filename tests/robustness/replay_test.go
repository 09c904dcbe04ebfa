//go:build linux

package robustness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// testEvent is one line of test2json's output.
type testEvent struct{ Action, Test, Output string }

func decodeEvents(out []byte) (events []testEvent, rest string) {
	lines := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := lines.ReadBytes('\n')
		var ev testEvent
		switch {
		case json.Unmarshal(line, &ev) != nil:
			rest += string(line)
		case ev.Test == "":
			rest += ev.Output
		default:
			events = append(events, ev)
		}
		if err != nil {
			return events, rest
		}
	}
}

// testResult is one test of another binary; its subtests hang below it.
type testResult struct {
	name   string
	result string // pass, fail, skip; empty when it did not finish
	output string
	sub    []*testResult
}

// results builds the tree of tests that the events tell of.
func results(events []testEvent) *testResult {
	top := &testResult{result: "pass"}
	for _, ev := range events {
		at := top
		for _, part := range strings.Split(ev.Test, "/") {
			at = at.child(part)
		}
		switch ev.Action {
		case "output":
			at.output += ev.Output
		case "pass", "fail", "skip":
			at.result = ev.Action
		}
	}
	return top
}

func (r *testResult) child(name string) *testResult {
	for _, s := range r.sub {
		if s.name == name {
			return s
		}
	}
	s := &testResult{name: name}
	r.sub = append(r.sub, s)
	return s
}

// verdict is what a replayed test must say: a name with a slash in it makes inner levels that are no
// tests and have no result of their own, so they are as good as their parts.
func (r *testResult) verdict() string {
	if r.result == "" && len(r.sub) > 0 && r.output == "" {
		return "pass"
	}
	if r.result == "" {
		return "unfinished"
	}
	return r.result
}

// replay says as subtests of t what tests said elsewhere: under Wine, on another volume.
func replay(t *testing.T, where string, events []testEvent) {
	top := results(events)
	if len(top.sub) == 0 {
		t.Errorf("no test ran %s", where)
	}
	for _, r := range top.sub {
		r.replay(t, where)
	}
}

func (r *testResult) replay(t *testing.T, where string) {
	t.Run(r.name, func(t *testing.T) {
		for _, s := range r.sub {
			s.replay(t, where)
		}
		switch r.verdict() {
		case "pass":
		case "skip":
			t.Skip(where + ": " + skipWords(r.output))
		case "unfinished":
			t.Errorf("did not finish %s:\n%s", where, r.output)
		default:
			t.Errorf("failed %s:\n%s", where, r.output)
		}
	})
}

// skipWords is a skipped test's output without the marks around it.
func skipWords(output string) string {
	var words []string
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}
