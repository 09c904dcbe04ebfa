package main

import (
	"math"
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
	b.add("contend", eightHeld, "kernlock+record", "Jain", "", 0.98)
	b.add("contend", eightHeld, "kernlock", "p99", "ms", 12)
	b.add("file-contend", "8 processes, "+journaled, "lockfile", "of alone", "", 0.9)
	for i, id := range []string{"kernlock", "kernlock+record", "lockfile"} {
		b.add("recover", "", id, "trials", "", 1000)
		b.add("recover", "", id, "double holders", "", float64(i))
	}
	b.judge()
	met := map[string]string{}
	for _, g := range b.Goals {
		met[g.Goal] = g.Met
	}
	for goal, want := range map[string]string{
		"kernel lock cycle, no record, against gofrs/flock":                               "no",
		"8 contenders, hold 1 ms: Jain, the lesser of with and without record":            "no",
		"8 contenders, hold 1 ms: p99 wait, the greater (2 × workers × hold)":             "not measured", // one of the two is missing
		"lock file, 8 processes, " + journaled + ": rate against its own alone":           "yes",
		"lock file, 8 processes, " + inMemory + ": rate against its own alone":            "", // nobody was there
		"double holders after SIGKILL, in 1,000 trials each of kernel lock and lock file": "no",
		"resident memory of a waiting stile run":                                          "not measured",
	} {
		if met[goal] != want {
			t.Errorf("%s: %q, want %q", goal, met[goal], want)
		}
	}
}

func TestAgainstTheBestPeer(t *testing.T) {
	b := &book{}
	b.add("w", "", "ours", "time", "µs", 2)
	b.add("w", "", "slow", "time", "µs", 8)
	b.add("w", "", "fast", "time", "µs", 4)
	b.add("w", "", "ours", "rate", "/s", 20)
	b.add("w", "", "slow", "rate", "/s", 5)
	b.add("w", "", "fast", "rate", "/s", 10)
	peers := []string{"slow", "fast", "absent"}
	for name, got := range map[string]float64{
		"our time over the best":  1 / timeOfBest("w", "", "ours", "time", peers)(b),
		"the best's time over it": rateOfBest("w", "", "ours", "time", peers)(b),
		"our rate over the best":  rateOfBest("w", "", "ours", "rate", peers)(b),
	} {
		if got != 2 {
			t.Errorf("%s: %v, want 2", name, got)
		}
	}
}

func TestDoublesInFewTrialsAreNotNone(t *testing.T) {
	b := &book{}
	b.add("recover", "", "kernlock", "trials", "", 40)
	b.add("recover", "", "kernlock", "double holders", "", 0)
	if got := doubles("kernlock")(b); !math.IsNaN(got) {
		t.Errorf("%v double holders in 40 trials of 1,000", got)
	}
}

func TestAmount(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.0312: "0.031", 0.85: "0.85", 12.34: "12.3", 512.3: "512", 271828: "272k"} {
		if got := amount(v); got != want {
			t.Errorf("amount(%v) = %q, want %q", v, got, want)
		}
	}
}
