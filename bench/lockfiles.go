package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// place is a folder to measure in, and what the tables call it.
type place struct {
	name string
	dir  string
}

// places are the bench's folder and, unless that is the same, memory.
func (b *bench) places() []place {
	all := []place{{"disk", b.dir}}
	if strings.HasPrefix(b.mem, "/dev/shm") {
		all = append(all, place{"tmpfs", b.mem})
	} else {
		b.book.missing("tmpfs: no /dev/shm")
	}
	return all
}

// crowded makes a folder with so many other files.
func crowded(parent string, others int) (string, error) {
	dir, err := os.MkdirTemp(parent, "folder-")
	for i := range others {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "other"+strconv.Itoa(i)+".json"), nil, 0o600)
		}
	}
	return dir, err
}

func (b *bench) fileCycle() {
	who := []string{"lockfile", "c-lockfile", "proper-lockfile", "gofrs"}
	for _, p := range b.places() {
		dirs := map[int]string{}
		for _, others := range []int{0, 1000} {
			dir, err := crowded(p.dir, others)
			if err != nil {
				b.book.broken("file-cycle: %v", err)
				return
			}
			defer os.RemoveAll(dir)
			dirs[others] = dir
		}
		// The folders take turns too: one is compared with the other.
		b.rounds(b.pick(5, 3), who, func(id string) error {
			for _, others := range []int{0, 1000} {
				n := b.pick(4000, 1000)
				if others > 0 {
					n /= 4
				}
				kase := fmt.Sprintf("%s, %d other files", p.name, others)
				if err := b.at(dirs[others]).cycleOnce("file-cycle", kase, id, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (b *bench) fileContend() {
	who := []string{"lockfile", "proper-lockfile", "gofrs"}
	long := time.Duration(b.pick(3000, 1500)) * time.Millisecond
	short := time.Duration(b.pick(1000, 300)) * time.Millisecond
	for _, p := range b.places() {
		there := b.at(p.dir)
		there.rounds(b.pick(3, 1), who, func(id string) error {
			before, err := there.crowd(id, 1, 0, short)
			if err != nil {
				return err
			}
			var crowds []crowdResult
			for _, n := range []int{2, 8} {
				got, err := there.crowd(id, n, 0, long)
				if err != nil {
					return err
				}
				crowds = append(crowds, got)
			}
			after, err := there.crowd(id, 1, 0, short)
			if err != nil {
				return err
			}
			for i, n := range []int{2, 8} {
				got, kase := crowds[i], fmt.Sprintf("%d processes, %s", n, p.name)
				b.book.add("file-contend", kase, id, "rate", "/s", got.rate)
				b.book.add("file-contend", kase, id, "of alone", "", got.rate/((before.rate+after.rate)/2))
				b.book.add("file-contend", kase, id, "slowest/fastest", "", got.evenness)
				b.book.add("file-contend", kase, id, "wait p50", "ms", got.p50)
				b.book.add("file-contend", kase, id, "p99", "ms", got.p99)
				b.book.add("file-contend", kase, id, "max", "ms", got.max)
				b.book.add("file-contend", kase, id, "cpu a cycle", "µs", got.cpu)
				if got.lost+got.overlaps > 0 {
					b.book.broken("file-contend: %s: %s: %d steps lost, %d holds overlapped", id, kase, got.lost, got.overlaps)
				}
			}
			return nil
		})
	}
}

func (b *bench) fileHandoff() { b.handoffs("file-handoff", []string{"lockfile", "gofrs", "gofrs-ctx"}) }

func (b *bench) fileKill() { b.kills("file-kill", []string{"lockfile", "gofrs"}) }

// fileWaiters holds a lock for which 200 processes wait.
func (b *bench) fileWaiters() {
	const waiters, settle, long = 200, 2 * time.Second, 5 * time.Second
	for _, id := range []string{"lockfile", "kernlock"} {
		for range b.pick(2, 1) {
			if err := b.waitersOnce(id, waiters, settle, long); err != nil {
				b.book.broken("file-waiters: %s: %v", id, err)
				break
			}
		}
	}
}

func (b *bench) waitersOnce(id string, n int, settle, long time.Duration) error {
	j, err := b.fresh("hold", id)
	if err != nil {
		return err
	}
	defer b.discard(j)
	page, err := openPage(j.page)
	if err != nil {
		return err
	}
	defer page.close()
	holder, err := b.startReady(j)
	if err != nil {
		return err
	}
	j.name = "wait"
	var ws []*worker
	for range n {
		w, err := b.startReady(j)
		if err != nil {
			holder.kill()
			for _, w := range ws {
				w.kill()
			}
			return err
		}
		ws = append(ws, w)
	}
	page.store(wordGate, 1)
	nap(int64(settle))
	spent := func() (sum float64) {
		for _, w := range ws {
			sum += scheduled(w.cmd.Process.Pid)
		}
		return sum
	}
	t0, c0 := mono(), spent()
	nap(int64(long))
	t1, c1 := mono(), spent()
	if page.load(wordGot) != 0 {
		err = fmt.Errorf("a waiter held while the holder lived")
	}
	holder.kill()
	for _, w := range ws {
		if _, werr := w.finish(); err == nil {
			err = werr
		}
	}
	if err == nil {
		b.book.add("file-waiters", "", id, "cores", "", (c1-c0)/float64(t1-t0))
		b.book.add("file-waiters", "", id, "all through after", "ms", float64(mono()-t1)/1e6)
	}
	return err
}

var documents = []string{
	"record.Append+lockfile", "record.Append", "lockfile+json", "gofrs+json", "lockedfile.Transform",
	"proper-lockfile+write-file-atomic", "filelock+json",
}

func (b *bench) document() {
	const workers = 8
	n := b.pick(2000, 500)
	for _, p := range b.places() {
		there := b.at(p.dir)
		there.rounds(b.pick(3, 1), documents, func(id string) error {
			j, err := there.fresh("doc", id)
			if err != nil {
				return err
			}
			defer there.discard(j)
			page, err := openPage(j.page)
			if err != nil {
				return err
			}
			defer page.close()
			j.n = n
			var ws []*worker
			for j.id = range workers {
				w, err := there.startReady(j)
				if err != nil {
					for _, w := range ws {
						w.kill()
					}
					return err
				}
				ws = append(ws, w)
			}
			gate := mono() + int64(20*time.Millisecond)
			page.store(wordGate, gate)
			var done []int
			end := 0.0
			for _, w := range ws {
				got, werr := w.finish()
				if werr != nil {
					err = werr
				}
				done, end = append(done, int(got["done"])), max(end, got["ended"])
			}
			if err != nil {
				return err
			}
			have, err := checkDocument(j.path, done, n)
			if err != nil {
				b.book.broken("document: %s: %s: %v", id, p.name, err)
			}
			b.book.add("document", p.name, id, "rate", "/s", float64(have)/(end-float64(gate))*1e9)
			shares := make([]float64, len(done))
			for i, d := range done {
				shares[i] = float64(d)
			}
			b.book.add("document", p.name, id, "slowest/fastest", "", evenness(shares))
			return nil
		})
	}
}

// checkDocument looks for every row that the workers say they have added.
func checkDocument(path string, done []int, n int) (have int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var rows []row
	if err := json.Unmarshal(data, &rows); err != nil {
		return 0, err
	}
	want := 0
	seen := map[row]int{}
	for _, r := range rows {
		seen[r]++
	}
	for id, k := range done {
		want += k
		for seq := range k {
			if c := seen[newRow(id, seq)]; c != 1 {
				return len(rows), fmt.Errorf("record %d of worker %d is there %d times", seq, id, c)
			}
		}
	}
	if want != len(rows) || want < n {
		return len(rows), fmt.Errorf("%d records in the document, %d added, %d wanted", len(rows), want, n)
	}
	return len(rows), nil
}

func (b *bench) appendOnce() {
	who := append(slices.Clone(documents), "record.Append+sync", "c-copy", "c-copy+sync")
	for _, p := range b.places() {
		for _, size := range []int{10_000, 100_000} {
			rows := make([]string, size)
			for i := range rows {
				text, _ := json.Marshal(newRow(-1, i)) // plain data
				rows[i] = "  " + string(text)
			}
			text := []byte("[\n" + strings.Join(rows, ",\n") + "\n]\n")
			there := b.at(p.dir)
			there.rounds(b.pick(5, 2), who, func(id string) error {
				j, err := there.fresh("doc-once", id)
				if err != nil {
					return err
				}
				defer there.discard(j)
				if err := os.WriteFile(j.path, text, 0o600); err != nil {
					return err
				}
				j.n = 10
				if c, _ := findContestant(id); c.in == "c" || strings.HasPrefix(id, "record.") {
					j.n = 40
				} else if size > 50_000 {
					j.n = 3
				}
				w, err := there.startReady(j)
				if err != nil {
					return err
				}
				got, err := w.finish()
				if err != nil {
					return err
				}
				if c, _ := findContestant(id); c.in != "c" { // the floor only copies
					if _, err := countDocument(j.path, size+j.n); err != nil {
						b.book.broken("append: %s: %v", id, err)
					}
				}
				b.book.add("append", fmt.Sprintf("%d records, %s", size, p.name), id, "time", "ms", got["ns"]/float64(j.n)/1e6)
				return nil
			})
		}
	}
}

// countDocument looks only for the number of records.
func countDocument(path string, want int) (have int, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var rows []row
	if err := json.Unmarshal(data, &rows); err != nil {
		return 0, err
	}
	if len(rows) != want {
		err = fmt.Errorf("%d records in the document, %d wanted", len(rows), want)
	}
	return len(rows), err
}
