package main

import (
	"fmt"
	"slices"
	"time"
)

func (b *bench) contend() {
	who := []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "c-flock"}
	long := time.Duration(b.pick(1200, 250)) * time.Millisecond
	short := time.Duration(b.pick(400, 200)) * time.Millisecond
	for _, hold := range []time.Duration{0, time.Millisecond} {
		b.rounds(b.pick(3, 1), who, func(id string) error {
			// Alone before and after, so that a machine that gets busier or
			// quieter meanwhile bears on both sides.
			before, err := b.crowd(id, 1, hold, short)
			if err != nil {
				return err
			}
			sizes := []int{2, 8, 32}
			crowds := make([]crowdResult, len(sizes))
			for i, n := range sizes {
				if crowds[i], err = b.crowd(id, n, hold, long); err != nil {
					return err
				}
			}
			after, err := b.crowd(id, 1, hold, short)
			if err != nil {
				return err
			}
			alone := (before.rate + after.rate) / 2
			for i, got := range crowds {
				n := sizes[i]
				kase := fmt.Sprintf("%d processes, hold %v", n, hold)
				b.book.add("contend", kase, id, "rate", "/s", got.rate)
				b.book.add("contend", kase, id, "of alone", "", got.rate/alone)
				b.book.add("contend", kase, id, "slowest/fastest", "", got.evenness)
				b.book.add("contend", kase, id, "Jain", "", got.jain)
				b.book.add("contend", kase, id, "wait p50", "ms", got.p50)
				b.book.add("contend", kase, id, "p99", "ms", got.p99)
				b.book.add("contend", kase, id, "max", "ms", got.max)
				b.book.add("contend", kase, id, "cpu a cycle", "µs", got.cpu)
				b.book.add("contend", kase, id, "lost or overlapped", "", float64(got.lost+got.overlaps))
				if got.lost+got.overlaps > 0 {
					b.book.broken("contend: %s: %s: %d steps lost, %d holds overlapped", id, kase, got.lost, got.overlaps)
				}
			}
			return nil
		})
	}
}

// crowdResult is what n processes did with one lock. Waits are in ms, cpu in
// µs a passage.
type crowdResult struct {
	rate, evenness, jain float64
	p50, p99, max, cpu   float64
	lost, overlaps       int
}

func (b *bench) crowd(id string, n int, hold_, long time.Duration) (crowdResult, error) {
	var r crowdResult
	j, err := b.fresh("contend", id)
	if err != nil {
		return r, err
	}
	defer b.discard(j)
	j.hold = int64(hold_)
	// No contestant passes more than once in a fifth of a microsecond; the
	// file has holes where nothing was written.
	j.room = int(long / 200)
	if hold_ > 0 {
		j.room = int(2*long/hold_) + 1000
	}
	page, err := openPage(j.page)
	if err != nil {
		return r, err
	}
	defer page.close()
	var ws []*worker
	var logs []string
	for i := range n {
		j.log = fmt.Sprintf("%s.%d", j.page, i)
		w, err := b.startReady(j)
		if err != nil {
			for _, w := range ws {
				w.kill()
			}
			return r, err
		}
		ws, logs = append(ws, w), append(logs, j.log)
	}
	gate := mono() + int64(20*time.Millisecond)
	stop := gate + int64(long)
	from := gate + int64(long)/10 // the first tenth warms up
	page.store(wordStop, stop)
	page.store(wordGate, gate)
	var spent float64
	for _, w := range ws {
		got, werr := w.finish()
		if werr != nil {
			err = werr
		}
		spent += got["cpu"]
	}
	if err != nil {
		return r, err
	}
	var all []hold
	var shares, waits []float64
	for _, path := range logs {
		log, err := openLog(path, j.room)
		if err != nil {
			return r, err
		}
		hs, err := log.read()
		log.close()
		if err != nil {
			return r, err
		}
		mine := 0
		for _, h := range hs {
			if h.leave >= from && h.leave < stop {
				mine++
			}
			if h.enter >= from {
				waits = append(waits, float64(h.enter-h.ask)/1e6)
			}
		}
		shares = append(shares, float64(mine))
		all = append(all, hs...)
	}
	var sum float64
	for _, s := range shares {
		sum += s
	}
	r.rate = sum / (float64(stop-from) / 1e9)
	r.evenness, r.jain = evenness(shares), jain(shares)
	slices.Sort(waits)
	r.p50, r.p99, r.max = percentile(waits, 50), percentile(waits, 99), percentile(waits, 100)
	r.cpu = spent / us / float64(len(all))
	r.lost = len(all) - int(*page.word(wordCounter))
	r.overlaps = overlaps(all)
	return r, nil
}
