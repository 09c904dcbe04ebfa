package main

import (
	"fmt"
	"math"
)

// goal is a figure that the project set itself. limit is a ceiling, or a
// floor when atLeast.
type goal struct {
	text    string
	limit   float64
	unit    string
	atLeast bool
	value   func(*book) float64
}

type verdict struct {
	Goal   string `json:"goal"`
	Limit  string `json:"limit"`
	Figure string `json:"figure"`
	Met    string `json:"met"` // yes, no, or not measured
}

func ratioOf(workload, kase, who, peer, metric string) func(*book) float64 {
	return func(b *book) float64 { return b.ratio(workload, kase, who, peer, metric) }
}

func valueOf(workload, kase, who, metric string) func(*book) float64 {
	return func(b *book) float64 { return b.value(workload, kase, who, metric) }
}

const (
	eightBusy = "8 processes, hold 0s"
	eightHeld = "8 processes, hold 1ms"
)

var goals = []goal{
	{"cycle without a record, against gofrs", 1.0, "×", false, ratioOf("cycle", "", "kernlock", "gofrs", "time")},
	{"cycle with a record, against gofrs", 2.0, "×", false, ratioOf("cycle", "", "kernlock+record", "gofrs", "time")},
	{"handoff median, against blocking flock(2)", 1.3, "×", false, ratioOf("handoff", "", "kernlock", "flock-go", "p50")},
	{"handoff median with records, against blocking flock(2)", 1.3, "×", false, ratioOf("handoff", "", "kernlock+record", "flock-go", "p50")},
	{"processor time of a 5 s wait", 2, " ms", false, valueOf("wait", "", "kernlock+record", "cpu")},
	{"8 contenders, hold 0: rate against one alone", 0.9, "", true, valueOf("contend", eightBusy, "kernlock", "of alone")},
	{"8 contenders, hold 1 ms: rate against one alone", 0.9, "", true, valueOf("contend", eightHeld, "kernlock", "of alone")},
	{"8 contenders, hold 0: slowest against fastest", 0.85, "", true, valueOf("contend", eightBusy, "kernlock", "slowest/fastest")},
	{"8 contenders, hold 1 ms: slowest against fastest", 0.85, "", true, valueOf("contend", eightHeld, "kernlock", "slowest/fastest")},
	{"8 contenders, hold 1 ms: Jain index", 0.99, "", true, valueOf("contend", eightHeld, "kernlock", "Jain")},
	{"8 contenders, hold 1 ms: wait at p99 (2 x workers x hold)", 16, " ms", false, valueOf("contend", eightHeld, "kernlock", "p99")},
	{"8 contenders with records, hold 0: rate against one alone", 0.9, "", true, valueOf("contend", eightBusy, "kernlock+record", "of alone")},
	{"8 contenders with records, hold 1 ms: slowest against fastest", 0.85, "", true, valueOf("contend", eightHeld, "kernlock+record", "slowest/fastest")},
	{"stile run, whole process, against flock(1)", 1.5, "×", false, ratioOf("run", "", "stile run", "flock(1)", "median")},
	{"next holder after SIGKILL, median", 1000, " µs", false, valueOf("kill", "", "kernlock+record", "p50")},
	{"resident memory of a waiting stile run", 12, " MB", false, valueOf("wait", "", "stile run", "resident")},
}

func (b *book) judge() {
	b.Goals = nil
	for _, g := range goals {
		sign, v := "at most", g.value(b)
		if g.atLeast {
			sign = "at least"
		}
		met := "no"
		switch {
		case math.IsNaN(v):
			met = "not measured"
		case g.atLeast && v >= g.limit, !g.atLeast && v <= g.limit:
			met = "yes"
		}
		b.Goals = append(b.Goals, verdict{
			Goal: g.text, Limit: fmt.Sprintf("%s %v%s", sign, g.limit, g.unit), Figure: amount(v) + g.unit, Met: met,
		})
	}
}
