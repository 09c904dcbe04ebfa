package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// plotFile draws the plots of results that are there already.
func plotFile(file, folder string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b book
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("%s: %w; it is no JSON of a run: make bench writes one", file, err)
	}
	if len(b.Figures) == 0 {
		return fmt.Errorf("%s: there are no figures in it; make bench writes a file that has some", file)
	}
	if folder == "" {
		folder = filepath.Join(filepath.Dir(file), "plots")
	}
	return b.plotInto(folder)
}

// plotInto draws what was measured; a plot for which there are no figures is left as it is.
func (b *book) plotInto(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, c := range b.charts() {
		if len(c.bars) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, c.file+".svg"), []byte(c.svg()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bars are the figures of one metric of a case, a contestant a group. Of those that were not measured there are none.
func (b *book) bars(workload, kase, metric, series string, skip ...string) (all []bar) {
	for _, f := range b.Figures {
		if f.Workload == workload && f.Case == kase && f.Metric == metric && len(f.Rounds) > 0 && !slices.Contains(skip, f.Contestant) {
			all = append(all, bar{f.Contestant, series, median(f.Rounds), slices.Min(f.Rounds), slices.Max(f.Rounds)})
		}
	}
	return all
}

// ext4 is the place whose figures a plot shows: with a journal, where that was measured.
func (b *book) ext4() string {
	if slices.Contains(b.places(), journaled) {
		return journaled
	}
	return onDisk
}

func (b *book) charts() []chart {
	when := b.Started.Format("2006-01-02") + ", " + b.Machine.CPU + ", Linux " + b.Machine.Kernel
	disk := b.ext4()
	on := disk
	if disk == onDisk {
		on = b.Machine.Filesystem
	}
	median := "Bars are medians of the rounds, thin lines go from the least to the most. " + when + "."
	cycle := chart{file: "cycle", title: "A free lock taken and released", axis: "time, µs, logarithmic (shorter is better)", log: true,
		desc: "How long one process takes for a cycle of each lock; c-floor is the floor in C. " + median,
		bars: b.bars("cycle", "", "time", "")}
	handoff := chart{file: "handoff", title: "From a release to the next holder in another process", axis: "median time, µs, logarithmic (shorter is better)", log: true,
		desc: "Kernel locks, and the lock file at the end. " + median,
		bars: append(b.bars("handoff", "", "p50", ""), b.bars("file-handoff", "", "p50", "", "gofrs", "gofrs-ctx")...)}
	document := chart{file: "append", title: "A record added to a JSON document, on " + on, axis: "time, ms, logarithmic (shorter is better)", log: true,
		desc: "By how many records are there already. c-copy copies and renames, and knows no JSON. " + median}
	for _, n := range []string{"100", "1000", "10000", "100000"} {
		series := n + " records"
		document.series = append(document.series, series)
		document.bars = append(document.bars, b.bars("append", n+" records, "+disk, "time", series,
			"record.Append+sync", "gofrs+json+sync", "proper-lockfile+write-file-atomic+sync", "c-copy+sync", "record.Append+lockfile", "lockfile+json")...)
	}
	waits := chart{file: "waits", title: "Waits of 8 processes that hold for 1 ms", axis: "wait, ms, logarithmic (shorter is better)", log: true,
		series: []string{"median", "99th of 100", "longest"},
		desc:   "A fair lock keeps all three near 8 ms. " + median}
	for i, m := range []string{"wait p50", "p99", "max"} {
		waits.bars = append(waits.bars, b.bars("contend", eightHeld, m, waits.series[i])...)
	}
	grants := chart{file: "grant", title: "Grants and etcd's Mutex, lock and unlock, on " + on, axis: "passages a second (longer is better)",
		desc:   "A grant's passage is three synced revisions: acquire, landing, release. etcd's is lock and unlock. " + median,
		series: []string{"1 process", "8 processes"}}
	for i, n := range []string{"1", "8"} {
		grants.bars = append(grants.bars, b.bars("grant-contend", n+" processes, "+disk, "rate", grants.series[i], "lockfile")...)
	}
	waiters := chart{file: "waiters", title: "Processor time while 10, 100 and 1,000 processes wait for one lock", axis: "processors kept busy, logarithmic (shorter is better)", log: true,
		desc: "By all the waiters together, while nothing happens. " + median}
	for _, n := range []string{"10", "100", "1000"} {
		waiters.series = append(waiters.series, n+" waiters")
		waiters.bars = append(waiters.bars, b.bars("waiters", n+" waiters", "cores", n+" waiters")...)
	}
	return []chart{cycle, handoff, document, waits, grants, waiters}
}
