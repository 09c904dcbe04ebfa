package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

func (b *bench) lines() {
	var who []string
	for _, c := range contestants {
		if c.line != nil {
			who = append(who, c.id)
		}
	}
	long := time.Duration(b.pick(500, 200)) * time.Millisecond
	for _, p := range b.places() {
		there := b.at(p.dir)
		for _, c := range []struct {
			workers, before int
		}{{1, 0}, {1, 1_000_000}, {8, 0}} {
			if c.before > 0 && p.name != onDisk {
				continue
			}
			kase := fmt.Sprintf("%d writing, %d lines before, %s", c.workers, c.before, p.name)
			there.rounds(b.pick(3, 1), who, func(id string) error {
				if c.before > 0 && id != "record.Lines" || c.workers > 1 && strings.HasPrefix(id, "bbolt-kept") {
					return nil
				}
				in, err := there.linesOnce(id, c.workers, c.before, long)
				if err != nil {
					return err
				}
				if in > 0 {
					b.book.add("lines", kase, id, "time a line", "µs", float64(long)*0.9/in/us)
				}
				b.book.add("lines", kase, id, "rate", "/s", in/(0.9*long.Seconds()))
				return nil
			})
		}
	}
}

func (b *bench) linesOnce(id string, workers, before int, long time.Duration) (in float64, err error) {
	j, err := b.fresh("lines", id)
	if err != nil {
		return 0, err
	}
	defer b.discard(j)
	line := append(bytes.Repeat([]byte("-"), 199), '\n')
	if err := os.WriteFile(j.path, bytes.Repeat(line, before), 0o600); err != nil {
		return 0, err
	}
	page, err := openPage(j.page)
	if err != nil {
		return 0, err
	}
	defer page.close()
	var ws []*worker
	for j.id = range workers {
		w, err := b.startReady(j)
		if err != nil {
			for _, w := range ws {
				w.kill()
			}
			return 0, err
		}
		ws = append(ws, w)
	}
	gate := mono() + int64(20*time.Millisecond)
	page.store(wordStop, gate+int64(long))
	page.store(wordGate, gate)
	want := before
	for _, w := range ws {
		got, werr := w.finish()
		if werr != nil {
			err = werr
		}
		in += got["in"]
		want += int(got["done"])
	}
	if err != nil {
		return 0, err
	}
	have, err := countLines(id, j.path)
	if err == nil && have != want {
		err = fmt.Errorf("%d lines are there, %d were added", have, want)
	}
	return in, err
}
