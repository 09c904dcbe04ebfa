package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func (b *bench) runCommand() {
	if b.spawn == "" {
		b.book.missing("run: needs the C spawn loop")
		return
	}
	j, err := b.fresh("run", "")
	if err != nil {
		b.book.broken("run: %v", err)
		return
	}
	defer b.discard(j)
	ids := []string{"no lock"}
	args := []string{strconv.Itoa(b.pick(200, 60)), "--next", "/bin/true"}
	if b.flock != "" {
		ids = append(ids, "flock(1)")
		args = append(args, "--next", b.flock, j.path+".lock", "/bin/true")
	}
	if b.bare != "" {
		ids = append(ids, "bare Go run")
		args = append(args, "--next", b.bare, j.path+".lock", "/bin/true")
	}
	if b.stile != "" {
		ids = append(ids, "stile run")
		args = append(args, "--next", b.stile, "run", j.path, "/bin/true")
	}
	for range b.pick(5, 2) {
		took, err := b.spawned(len(ids), args)
		if err != nil {
			b.book.broken("run: %v", err)
			return
		}
		for i, id := range ids {
			slices.Sort(took[i])
			b.book.add("run", "", id, "median", "ms", percentile(took[i], 50)/1e6)
			b.book.add("run", "", id, "p10", "ms", percentile(took[i], 10)/1e6)
			b.book.add("run", "", id, "p90", "ms", percentile(took[i], 90)/1e6)
		}
	}
}

// spawned runs the spawn loop, and gives the times of each of its n commands, in ns.
func (b *bench) spawned(n int, args []string) ([][]float64, error) {
	var errs bytes.Buffer
	cmd := exec.Command(b.spawn, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	took := make([][]float64, n)
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		for i, f := range strings.Fields(sc.Text()) {
			ns, _ := strconv.ParseFloat(f, 64)
			took[i] = append(took[i], ns)
		}
	}
	return took, nil
}
