package main

import (
	"fmt"
	"slices"
	"time"
)

// recoverers are killed while eight others wait. Whoever finds a death by a clock needs seconds for each, so it gets few
// trials: full and quick.
var recoverers = []struct {
	id          string
	full, quick int
}{
	{"kernlock", 1000, 20},
	{"kernlock+record", 1000, 20},
	{"lockfile", 1000, 20},
	{"gofrs", 1000, 20},
	{"gofrs-ctx", 300, 20},
	{"lockedfile", 300, 20},
	{"flock-go", 300, 20},
	{"c-flock", 300, 20},
	{"filelock", 100, 5},
	{"proper-lockfile", 8, 1},
	{"etcd", 8, 1},
}

func (b *bench) recovery() {
	b.withEtcd(func(b *bench) {
		for _, r := range recoverers {
			if !b.can(r.id) {
				continue
			}
			got, err := b.recoverTrials(r.id, b.pick(r.full, r.quick))
			if err != nil {
				b.book.broken("recover: %s: %v", r.id, err)
			}
			if len(got.took) == 0 {
				continue
			}
			slices.Sort(got.took)
			b.book.add("recover", "", r.id, "p50", "µs", percentile(got.took, 50)/us)
			b.book.add("recover", "", r.id, "p99", "µs", percentile(got.took, 99)/us)
			b.book.add("recover", "", r.id, "max", "µs", percentile(got.took, 100)/us)
			b.book.add("recover", "", r.id, "trials", "", float64(len(got.took)))
			b.book.add("recover", "", r.id, "double holders", "", float64(got.doubles))
			if got.doubles > 0 {
				b.book.broken("recover: %s: %d times a second process held besides, in %d trials", r.id, got.doubles, len(got.took))
			}
		}
	})
}

type recovered struct {
	took    []float64 // from the kill to the next hold, ns
	doubles int
}

const recoverPool = 9 // one holds, eight wait

// recoverTrials keeps nine processes. Whoever holds stays until it is killed; then a new one comes, which waits behind the
// others. So a trial costs one process.
func (b *bench) recoverTrials(id string, trials int) (got recovered, err error) {
	j, err := b.fresh("enter", id)
	if err != nil {
		return got, err
	}
	defer b.discard(j)
	page, err := openPage(j.page)
	if err != nil {
		return got, err
	}
	defer page.close()
	pool := map[int]*worker{}
	defer func() {
		for _, w := range pool {
			w.kill()
		}
	}()
	next := 0
	fill := func() error {
		for len(pool) < recoverPool {
			j.id = next % slots
			next++
			page.clear(j.id)
			w, err := b.startReady(j)
			if err != nil {
				return err
			}
			pool[j.id] = w
		}
		return nil
	}
	// holders are those of the pool that hold.
	holders := func() (in []int) {
		for k := range pool {
			if page.entered(k) != 0 {
				in = append(in, k)
			}
		}
		return in
	}
	await := func(what string, ok func() bool) error {
		for until := mono() + int64(30*time.Second); !ok(); nap(20_000) {
			if mono() > until {
				return fmt.Errorf("30 s without %s, after %d trials", what, len(got.took))
			}
		}
		return nil
	}
	for trial := range trials + 1 {
		if err := fill(); err != nil {
			return got, err
		}
		err := await("a holder and eight waiters", func() bool {
			for k := range pool {
				if page.asked(k) == 0 {
					return false
				}
			}
			return len(holders()) > 0
		})
		if err != nil {
			return got, err
		}
		nap(int64(time.Millisecond) + int64(trial)*7919%100*10_000)
		in := holders()
		got.doubles += len(in) - 1
		if trial == trials {
			break
		}
		// Those that should not hold go first: what is timed begins with the last.
		var t0 int64
		for _, k := range in {
			t0 = mono()
			pool[k].kill()
			delete(pool, k)
		}
		if len(pool) == 0 {
			continue // all of them held: nobody is left to be next
		}
		if err := await("a next holder", func() bool { return len(holders()) > 0 }); err != nil {
			return got, err
		}
		first := int64(0)
		for _, k := range holders() {
			if at := page.entered(k); first == 0 || at < first {
				first = at
			}
		}
		got.took = append(got.took, float64(first-t0))
	}
	return got, nil
}
