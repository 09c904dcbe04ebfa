package lockfile

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
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

// The peer reads our locks: alive it waits, dead it breaks. We do the same with its four members.
func TestInteropLocks(t *testing.T) {
	w := newWorld(t, classes[0])
	h, err := Acquire(t.Context(), w.path, w.real())
	w.nil(err)
	l, err := format.ParseLock([]byte(w.read("log.lock")))
	w.nil(err)
	if l.Host != proc.Self().Host || l.Proc == nil {
		t.Errorf("our lock is %+v", l)
	}
	for _, member := range []string{`"pid":`, `"hostname":`, `"token":`, `"acquiredAt":`} {
		if strings.Count(w.read("log.lock"), member) != 1 {
			t.Errorf("%s is not there once", member)
		}
	}
	w.nil(h.Release())
}
