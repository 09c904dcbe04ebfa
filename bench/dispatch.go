package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	dispatches       = 10000
	onDisk, inMemory = "disk", "tmpfs"
)

func (b *bench) openDispatch() {
	if b.spawn == "" || b.dispatch == "" || b.stile == "" {
		b.book.missing("dispatch: needs a C compiler and cmd/stile")
		return
	}
	for _, place := range []struct{ kase, dir string }{{onDisk, b.dir}, {inMemory, b.mem}} {
		if err := b.openDispatchIn(place.kase, place.dir); err != nil {
			b.book.broken("dispatch, %s: %v", place.kase, err)
		}
	}
}

func (b *bench) openDispatchIn(kase, dir string) error {
	top, err := os.MkdirTemp(dir, "dispatch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	ours, theirs := filepath.Join(top, "ours"), filepath.Join(top, "theirs")
	for _, estate := range []string{ours, theirs} { // each has a log of its own, which grows alike
		if out, err := exec.Command(b.stile, "init", "--estate", estate).CombinedOutput(); err != nil {
			return fmt.Errorf("init: %w: %s", err, out)
		}
		if err := fillAgent(filepath.Join(estate, "agents", "ada")); err != nil {
			return err
		}
	}
	ids := []string{"stile dispatch open", "c-dispatch", "stile run"}
	n := b.pick(60, 20)
	args := []string{
		strconv.Itoa(n),
		"--next", b.stile, "dispatch", "open", "--agent", "ada", "--estate", ours, "--task", "water the plants",
		"--next", b.dispatch, filepath.Join(theirs, "agents", "ada"),
		"--next", b.stile, "run", filepath.Join(top, "target"), "/bin/true",
	}
	rounds := b.pick(5, 3)
	for range rounds {
		took, err := b.spawned(len(ids), args)
		if err != nil {
			return err
		}
		both := make([]float64, len(took[1]))
		for i := range both {
			both[i] = took[1][i] + took[2][i]
		}
		for i, id := range append(slices.Clone(ids), "stile run + c-dispatch") {
			t := both
			if i < len(took) {
				t = took[i]
			}
			slices.Sort(t)
			b.book.add("dispatch", kase, id, "median", "ms", percentile(t, 50)/1e6)
			b.book.add("dispatch", kase, id, "p90", "ms", percentile(t, 90)/1e6)
		}
	}
	// Both must have done it: the tool says whether log and board agree.
	for _, estate := range []string{ours, theirs} {
		out, err := exec.Command(b.stile, "dispatch", "list", "--estate", estate, "-n", "1000000").Output()
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if got, want := bytes.Count(out, []byte{'\n'})-1, dispatches+n*rounds; got != want {
			b.book.broken("dispatch, %s: %d dispatches in %s, of %d", kase, got, filepath.Base(estate), want)
		}
	}
	return nil
}

// fillAgent makes a log and a board as stile writes them.
func fillAgent(folder string) error {
	if err := os.MkdirAll(filepath.Join(folder, "board"), 0o755); err != nil {
		return err
	}
	write := func(name, head, between, tail string, row func(w *bufio.Writer, i int)) error {
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		w.WriteString(head)
		for i := range dispatches {
			if i > 0 {
				w.WriteString(between)
			}
			row(w, i)
		}
		w.WriteString(tail)
		if err := w.Flush(); err != nil {
			return err
		}
		return f.Close()
	}
	err := write("spawn-log.json", "[\n  ", ",\n  ", "\n]\n", func(w *bufio.Writer, i int) {
		fmt.Fprintf(w, `{"v":1,"id":"01JDXYZ%019d","agent":"ada","task":"water the plants","opened_at":"2026-11-30T17:43:32.815Z","opened_by":{"pid":4711,"host":"desk"},"status":"open"}`, i)
	})
	if err != nil {
		return err
	}
	return write(filepath.Join("board", "board.json"), "{\n  \"v\": 1,\n  \"items\": [\n    ", ",\n    ", "\n  ]\n}\n", func(w *bufio.Writer, i int) {
		fmt.Fprintf(w, `{"dispatch":"01JDXYZ%019d","title":"water the plants","column":"todo","updated_at":"2026-11-30T17:43:32.815Z"}`, i)
	})
}
