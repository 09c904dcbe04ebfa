package main

import (
	"fmt"
	"math"
	"strings"
)

// goal is a figure that the project set itself. limit is a ceiling, or a floor when atLeast.
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

	aloneLines, eightLines = "1 writing, 0 lines before, ", "8 writing, 0 lines before, "
	thousand               = "1000 waiters"
)

// The peers: what others use in stile's place. flock(2) itself and what is written in C are floors.
var (
	documentPeers = []string{"gofrs+json", "lockedfile.Transform", "proper-lockfile+write-file-atomic", "filelock+json"}
	killPeers     = []string{"gofrs", "gofrs-ctx", "lockedfile", "filelock", "proper-lockfile", "etcd"}
	normalPeers   = []string{"sqlite-normal", "sqlite-normal-modernc"}
	fullPeers     = []string{"sqlite-full", "sqlite-full-modernc"}
)

// timeOfBest is our time over that of the best peer that was measured.
func timeOfBest(workload, kase, who, metric string, peers []string) func(*book) float64 {
	return func(b *book) float64 {
		most := math.NaN()
		for _, p := range peers {
			if r := b.ratio(workload, kase, who, p, metric); math.IsNaN(most) || r > most {
				most = r
			}
		}
		return most
	}
}

// rateOfBest is our rate over that of the best peer that was measured, or the least of the peers' times over ours.
func rateOfBest(workload, kase, who, metric string, peers []string) func(*book) float64 {
	return func(b *book) float64 {
		least := math.NaN()
		for _, p := range peers {
			r := b.ratio(workload, kase, who, p, metric)
			if metric == "time" {
				r = b.ratio(workload, kase, p, who, metric)
			}
			if math.IsNaN(least) || r < least {
				least = r
			}
		}
		return least
	}
}

// largest is the largest of the figures, NaN when one of them is missing: a goal for all is not met by some.
func largest(values ...func(*book) float64) func(*book) float64 {
	return func(b *book) float64 {
		most := math.Inf(-1)
		for _, v := range values {
			most = math.Max(most, v(b)) // NaN stays NaN
		}
		return most
	}
}

// doubles is how many double holders there were, in as many trials as the goal asks for.
func doubles(ids ...string) func(*book) float64 {
	return func(b *book) float64 {
		sum := 0.0
		for _, id := range ids {
			n := b.value("recover", "", id, "double holders")
			if b.value("recover", "", id, "trials") < 1000 && n == 0 {
				return math.NaN() // too few to say none
			}
			sum += n
		}
		return sum
	}
}

// places are those that the run measured in.
func (b *book) places() []string {
	all := []string{onDisk}
	for _, p := range []string{journaled, journalless, inMemory} {
		for _, f := range b.Figures {
			if strings.HasSuffix(f.Case, ", "+p) || f.Case == p || strings.HasPrefix(f.Case, p+", ") {
				all = append(all, p)
				break
			}
		}
	}
	return all
}

// mustReach are the goals that the project promises itself, for each place that was measured in.
func mustReach(b *book) []goal {
	contend := func(metric string) func(*book) float64 { return valueOf("contend", eightHeld, "kernlock", metric) }
	recorded := func(metric string) func(*book) float64 {
		return valueOf("contend", eightHeld, "kernlock+record", metric)
	}
	negative := func(v func(*book) float64) func(*book) float64 { return func(b *book) float64 { return -v(b) } }
	all := []goal{
		{"kernel lock cycle, no record, against gofrs/flock", 1.0, "×", false, ratioOf("cycle", "", "kernlock", "gofrs", "time")},
		{"kernel lock cycle, with record, against gofrs/flock", 1.6, "×", false, ratioOf("cycle", "", "kernlock+record", "gofrs", "time")},
		{"8 contenders, hold 1 ms: Jain, the lesser of with and without record", 0.99, "", true, negative(largest(negative(contend("Jain")), negative(recorded("Jain"))))},
		{"8 contenders, hold 1 ms: p99 wait, the greater (2 × workers × hold)", 16, " ms", false, largest(contend("p99"), recorded("p99"))},
		{"handoff, kernel lock, against blocking flock(2)", 1.2, "×", false, ratioOf("handoff", "", "kernlock", "flock-go", "p50")},
		{"handoff, lock file: median", 100, " µs", false, valueOf("file-handoff", "", "lockfile", "p50")},
	}
	for _, p := range b.places() {
		eight := "8 processes, " + p
		all = append(all,
			goal{"lock file cycle, " + p + ", against C with the same calls", 1.1, "×", false, ratioOf("file-cycle", p+", 10 other files", "lockfile", "c-lockfile", "time")},
			goal{"lock file, 8 processes, " + p + ": rate against its own alone", 0.8, "", true, valueOf("file-contend", eight, "lockfile", "of alone")},
			goal{"lock file, 8 processes, " + p + ": slowest against fastest", 0.85, "", true, valueOf("file-contend", eight, "lockfile", "slowest/fastest")},
		)
		least := 10.0
		if p == inMemory {
			least = 20
		}
		for _, n := range []string{"10000", "100000"} {
			all = append(all, goal{"document append, n = " + n + ", " + p + ", against the best JSON peer", least, "×", true,
				rateOfBest("append", n+" records, "+p, "record.Append", "time", documentPeers)})
		}
		all = append(all,
			goal{"line append, one process, " + p + ", against the better SQLite WAL NORMAL", 0.7, "×", false, timeOfBest("lines", aloneLines+p, "record.Lines", "time a line", normalPeers)},
			goal{"line append, 8 processes, " + p + ", rate against the better SQLite WAL NORMAL", 1.5, "×", true, rateOfBest("lines", eightLines+p, "record.Lines", "rate", normalPeers)},
			goal{"line append, synced, one process, " + p + ", against the better SQLite WAL FULL", 1.0, "×", false, timeOfBest("lines", aloneLines+p, "record.Lines+sync", "time a line", fullPeers)},
			goal{"line append, synced, 8 processes, " + p + ", rate against the better SQLite WAL FULL", 2, "×", true, rateOfBest("lines", eightLines+p, "record.Lines+sync", "rate", fullPeers)},
		)
	}
	all = append(all,
		goal{"stile run F true, against flock(1)", 1.3, "×", false, ratioOf("run", "", "stile run", "flock(1)", "median")},
		goal{"next holder after SIGKILL, 8 waiters: median against the fastest peer", 1, "×", false, timeOfBest("recover", "", "kernlock", "p50", killPeers)},
		goal{"the same with a record", 1, "×", false, timeOfBest("recover", "", "kernlock+record", "p50", killPeers)},
		goal{"double holders after SIGKILL, in 1,000 trials each of kernel lock and lock file", 0, "", false, doubles("kernlock", "kernlock+record", "lockfile")},
	)
	for _, p := range b.places() {
		all = append(all, goal{"8 processes on one grant page, " + p + ", against etcd's Mutex", 5, "×", true, ratioOf("grant-contend", "8 processes, "+p, "grant", "etcd", "rate")})
	}
	ours := func(metric string) func(*book) float64 {
		return largest(valueOf("waiters", thousand, "kernlock+record", metric), valueOf("waiters", thousand, "lockfile", metric),
			valueOf("waiters", thousand, "stile run", metric))
	}
	return append(all,
		goal{"1,000 waiters on one lock: out of order of arrival by, the worst of kernel lock, lock file, stile run", 10, " %", false, ours("out of order by")},
		goal{"1,000 waiters: while waiting, the worst of them", 0.2, " cores", false, ours("cores")},
		goal{"1,000 waiters: resident memory of the largest stile run", 12, " MB", false, valueOf("waiters", thousand, "stile run", "resident, largest")},
	)
}

func (b *book) judge() {
	b.Goals = nil
	for _, g := range append(mustReach(b), furtherGoals(b)...) {
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
