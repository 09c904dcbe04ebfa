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

	diskEmpty, diskFull = "disk, 0 other files", "disk, 1000 other files"
	memEmpty, memFull   = "tmpfs, 0 other files", "tmpfs, 1000 other files"

	aloneLines, eightLines = "1 writing, 0 lines before", "8 writing, 0 lines before"
)

// peers are those who keep a document without stile.
var peers = []string{"gofrs+json", "lockedfile.Transform", "proper-lockfile+write-file-atomic", "filelock+json"}

// amongOthers compares lockfile with itself in two folders.
func amongOthers(empty, full string) func(*book) float64 {
	return func(b *book) float64 {
		f, e := b.find("file-cycle", full, "lockfile", "time"), b.find("file-cycle", empty, "lockfile", "time")
		if f == nil || e == nil {
			return math.NaN()
		}
		return median(ratios(f.Rounds, e.Rounds))
	}
}

// againstBest is our rate over that of the best peer that was measured.
func againstBest(kase, who string) func(*book) float64 {
	return func(b *book) float64 {
		worst := math.NaN()
		for _, p := range peers {
			if r := b.ratio("document", kase, who, p, "rate"); math.IsNaN(worst) || r < worst {
				worst = r
			}
		}
		return worst
	}
}

// appendAgainstBest is the least of the peers' times over ours.
func appendAgainstBest(kase string) func(*book) float64 {
	return func(b *book) float64 {
		least := math.NaN()
		for _, p := range peers {
			if r := b.ratio("append", kase, p, "record.Append", "time"); math.IsNaN(least) || r < least {
				least = r
			}
		}
		return least
	}
}

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
	{"lock file: cycle on disk, against C", 1.3, "×", false, ratioOf("file-cycle", diskEmpty, "lockfile", "c-lockfile", "time")},
	{"lock file: cycle on tmpfs, against C", 1.3, "×", false, ratioOf("file-cycle", memEmpty, "lockfile", "c-lockfile", "time")},
	{"lock file: proper-lockfile's cycle on disk, against ours", 4, "×", true, ratioOf("file-cycle", diskEmpty, "proper-lockfile", "lockfile", "time")},
	{"lock file: proper-lockfile's cycle on tmpfs, against ours", 4, "×", true, ratioOf("file-cycle", memEmpty, "proper-lockfile", "lockfile", "time")},
	{"lock file: cycle among 1,000 files on disk, against an empty folder", 2, "×", false, amongOthers(diskEmpty, diskFull)},
	{"lock file: cycle among 1,000 files on tmpfs, against an empty folder", 2, "×", false, amongOthers(memEmpty, memFull)},
	{"lock file: 8 processes on tmpfs: rate against one alone", 0.7, "", true, valueOf("file-contend", "8 processes, tmpfs", "lockfile", "of alone")},
	{"lock file: 8 processes on disk: rate against one alone", 0.6, "", true, valueOf("file-contend", "8 processes, disk", "lockfile", "of alone")},
	{"lock file: 8 processes on tmpfs: slowest against fastest", 0.8, "", true, valueOf("file-contend", "8 processes, tmpfs", "lockfile", "slowest/fastest")},
	{"lock file: 8 processes on disk: slowest against fastest", 0.8, "", true, valueOf("file-contend", "8 processes, disk", "lockfile", "slowest/fastest")},
	{"lock file: handoff median", 150, " µs", false, valueOf("file-handoff", "", "lockfile", "p50")},
	{"lock file: next holder after SIGKILL, median", 5000, " µs", false, valueOf("file-kill", "", "lockfile", "p50")},
	{"lock file: 200 waiting processes", 0.5, " cores", false, valueOf("file-waiters", "", "lockfile", "cores")},
	{"document of 8 writers on disk: rate against the best peer", 8, "×", true, againstBest("disk", "record.Append")},
	{"document of 8 writers on tmpfs: rate against the best peer", 8, "×", true, againstBest("tmpfs", "record.Append")},
	{"the same under a lock file, on disk", 8, "×", true, againstBest("disk", "record.Append+lockfile")},
	{"the same under a lock file, on tmpfs", 8, "×", true, againstBest("tmpfs", "record.Append+lockfile")},
	{"append to 10,000 records on disk, against the best peer", 10, "×", true, appendAgainstBest("10000 records, disk")},
	{"append to 100,000 records on disk, against the best peer", 10, "×", true, appendAgainstBest("100000 records, disk")},
	{"append to 10,000 records on tmpfs, against the best peer", 20, "×", true, appendAgainstBest("10000 records, tmpfs")},
	{"append to 100,000 records on tmpfs, against the best peer", 20, "×", true, appendAgainstBest("100000 records, tmpfs")},
	{"append to 100,000 records on disk, against C", 1.3, "×", false, ratioOf("append", "100000 records, disk", "record.Append", "c-copy", "time")},
	{"append to 100,000 records on tmpfs, against C", 1.3, "×", false, ratioOf("append", "100000 records, tmpfs", "record.Append", "c-copy", "time")},
	{"append with Sync to 100,000 records on disk, against C with fsync", 1.3, "×", false, ratioOf("append", "100000 records, disk", "record.Append+sync", "c-copy+sync", "time")},
	{"a line, one process, against SQLite NORMAL", 1, "×", false, ratioOf("lines", aloneLines, "record.Lines", "sqlite-normal", "time a line")},
	{"a line behind 1,000,000, against the first", 1.1, "×", false, func(b *book) float64 {
		return b.value("lines", "1 writing, 1000000 lines before", "record.Lines", "time a line") / b.value("lines", aloneLines, "record.Lines", "time a line")
	}},
	{"lines of 8 processes, against SQLite NORMAL", 1.5, "×", true, ratioOf("lines", eightLines, "record.Lines", "sqlite-normal", "rate")},
	{"a line with Sync, one process, against SQLite FULL", 1.1, "×", false, ratioOf("lines", aloneLines, "record.Lines+sync", "sqlite-full", "time a line")},
	{"lines with Sync of 8 processes, against SQLite FULL", 2, "×", true, ratioOf("lines", eightLines, "record.Lines+sync", "sqlite-full", "rate")},
	{"one command on a grant, synced, at p99", 10, " ms", false, valueOf("grant-command", "disk", "grant", "p99")},
	{"grants of 8 processes on disk", 5 * etcdMutex, "/s", true, valueOf("grant-contend", "8 processes, disk", "grant", "rate")},
	{"status of 1,000 containers of 1,000 revisions on disk", 200, " ms", false,
		valueOf("grant-status", "1000 containers of 1000 revisions, disk", "grant", "time")},
	{"dispatch open at 10,000 records on disk, against stile run and C together", 1.5, "×", false, ratioOf("dispatch", onDisk, "stile dispatch open", "stile run + c-dispatch", "median")},
	{"dispatch open at 10,000 records on tmpfs, against stile run and C together", 1.5, "×", false, ratioOf("dispatch", inMemory, "stile dispatch open", "stile run + c-dispatch", "median")},
	{"landing of 1 KiB on disk, against a heartbeat", 1.5, "×", false, func(b *book) float64 {
		return b.value("register-land", "1 KiB, disk", "grant", "p50") / b.value("register-land", "a heartbeat, disk", "grant", "p50")
	}},
	{"landing of 1 GiB on disk, against sha256sum, cp and sync", 2, "×", false,
		ratioOf("register-large", "1024 MiB, disk", "grant", "sha256sum, cp, sync", "time")},
	{"log of 10,000 landings", 300, " ms", false, valueOf("register-log", "10000 landings, tmpfs", "grant", "time")},
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
