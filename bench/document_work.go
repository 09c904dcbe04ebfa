package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

var documents = []string{
	"record.Append+lockfile", "record.Append", "lockfile+json", "gofrs+json", "lockedfile.Transform",
	"proper-lockfile+write-file-atomic", "filelock+json",
}

func (b *bench) document() {
	const workers = 8
	n := b.pick(2000, 500)
	for _, p := range b.places() {
		if p.name == b.other.name {
			continue // what is measured is the work on the document
		}
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

func readDocument(path string) (rows []row, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &rows)
	}
	return rows, err
}

// checkDocument looks for every row that the workers say they have added.
func checkDocument(path string, done []int, n int) (have int, err error) {
	rows, err := readDocument(path)
	if err != nil {
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
	who := append(slices.Clone(documents), "c-copy", "record.Append+sync", "gofrs+json+sync",
		"proper-lockfile+write-file-atomic+sync", "c-copy+sync")
	for _, p := range b.places() {
		for _, size := range []int{100, 1000, 10_000, 100_000} {
			if b.quick && (size == 1000 || size > 10_000) {
				continue
			}
			rows := make([]string, size)
			for i := range rows {
				text, _ := json.Marshal(newRow(-1, i)) // plain data
				rows[i] = "  " + string(text)
			}
			text := []byte("[\n" + strings.Join(rows, ",\n") + "\n]\n")
			there := b.at(p.dir)
			there.rounds(b.appendRounds(size), who, func(id string) error {
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
	rows, err := readDocument(path)
	if err != nil {
		return 0, err
	}
	if len(rows) != want {
		err = fmt.Errorf("%d records in the document, %d wanted", len(rows), want)
	}
	return len(rows), err
}

// appendRounds are few where a peer needs a second for each record.
func (b *bench) appendRounds(size int) int {
	if size > 50_000 {
		return b.pick(2, 1)
	}
	return b.pick(4, 1)
}
