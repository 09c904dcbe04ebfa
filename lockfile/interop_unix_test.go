//go:build unix

package lockfile

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
)

// Four writers in Python, made from the specification alone, and four of ours, at once, over the lock of
// a dead holder: nothing is lost and nothing left.
func TestInterop(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	w := newWorld(t, classes[0])
	plantDead(w)
	const each = 25
	var want []string
	var children []*child
	var peers []chan error
	for i := range 4 {
		ours, theirs := fmt.Sprintf("go%d", i), fmt.Sprintf("py%d", i)
		for n := range each {
			want = append(want, fmt.Sprintf("%s.%d", ours, n), fmt.Sprintf("%s.%d", theirs, n))
		}
		children = append(children, start(t, order{Path: w.path, Class: w.class, Do: "update", ID: ours, Times: each}))
		peers = append(peers, in(func() error {
			out, err := exec.CommandContext(t.Context(), python, "testdata/peer.py", w.path, theirs, strconv.Itoa(each)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}))
	}
	for _, c := range children {
		c.succeeds()
	}
	for _, done := range peers {
		w.nil(<-done)
	}
	w.records(want...)
	w.only("log")
}
