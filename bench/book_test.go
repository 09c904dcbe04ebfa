package main

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	b := &book{}
	for r := range 3 {
		b.add("w", "", "ours", "time", "µs", float64(2+r))
		b.add("w", "", "theirs", "time", "µs", float64(2*(2+r)))
	}
	b.add("w", "", "ours", "allocations", "", 0)
	got := b.tables(workload{id: "w", bases: []string{"theirs", "absent"}})
	for _, want := range []string{
		"time, µs", "| 3.00 (2.00–4.00) |", "| 0.50×", "time / theirs", "| 1.00×",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "absent") {
		t.Errorf("a ratio to a contestant that did not run:\n%s", got)
	}
}

func TestJudge(t *testing.T) {
	b := &book{}
	b.add("cycle", "", "kernlock", "time", "µs", 5)
	b.add("cycle", "", "gofrs", "time", "µs", 4)
	b.add("contend", eightHeld, "kernlock", "Jain", "", 0.995)
	b.judge()
	met := map[string]string{}
	for _, g := range b.Goals {
		met[g.Goal] = g.Met
	}
	for goal, want := range map[string]string{
		"cycle without a record, against gofrs":  "no",
		"8 contenders, hold 1 ms: Jain index":    "yes",
		"resident memory of a waiting stile run": "not measured",
	} {
		if met[goal] != want {
			t.Errorf("%s: %q, want %q", goal, met[goal], want)
		}
	}
}

func TestAmount(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.0312: "0.031", 0.85: "0.85", 12.34: "12.3", 512.3: "512", 271828: "272k"} {
		if got := amount(v); got != want {
			t.Errorf("amount(%v) = %q, want %q", v, got, want)
		}
	}
}
