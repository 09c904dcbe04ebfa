package main

import (
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The gate sees the calls of the tool in their order, and can refuse, kill and hold.
func TestGate(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	var calls []string
	g := startGated(t, dir, func(_ *gated, c call) answer { calls = append(calls, c.String()); return pass }, "dispatch", "open", "--agent", "ada", "--task", "x")
	g.exits(0)
	<-g.done
	want := []string{
		"create spawn-log.json.lock.pending", "write spawn-log.json.lock.pending", "fsync spawn-log.json.lock.pending",
		"link spawn-log.json.lock.pending to spawn-log.json.lock", "unlink spawn-log.json.lock.pending",
		"create spawn-log.json.tmp", "write spawn-log.json.tmp", "fsync spawn-log.json.tmp",
		"rename spawn-log.json.tmp to spawn-log.json", "fsync ada",
		"create board.json.tmp", "write board.json.tmp", "fsync board.json.tmp", "rename board.json.tmp to board.json", "fsync board",
		"rename spawn-log.json.lock to spawn-log.json.lock.broken", "unlink spawn-log.json.lock.broken",
	}
	if calls = slices.Compact(calls); !slices.Equal(calls, want) { // a copy of the log is several writes
		t.Errorf("the calls are %q", calls)
	}
	g = startGated(t, dir, func(g *gated, c call) answer {
		if c.nr == unix.SYS_FSYNC {
			g.errno = unix.EIO
			return refuse
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "x")
	g.exits(1)
	g = startGated(t, dir, func(_ *gated, c call) answer {
		if c.nr == unix.SYS_RENAMEAT {
			return kill
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "x")
	g.exits(-1)
	if !exists(filepath.Join(dir, ".stile", "agents", "ada", "spawn-log.json.lock")) {
		t.Error("the killed process left no lock")
	}
	g = startGated(t, dir, func(*gated, call) answer { return hold }, "dispatch", "open", "--agent", "ada", "--task", "x")
	if c := g.stopped(); c.String() != "unlink spawn-log.json.tmp" { // the dead one's, in its sweep
		t.Errorf("it stops at %s", c)
	}
}

// Every folder and file that is made is on disk, and its name too, when open has ended: a folder's own name
// first, since what is in it is lost with it.
func TestDispatchSyncsWhatItMakes(t *testing.T) {
	dir := t.TempDir()
	if code, s := stileExit(t, dir, "init"); code != 0 {
		t.Fatal(s)
	}
	var calls []call
	g := startGated(t, dir, func(_ *gated, c call) answer { calls = append(calls, c); return pass }, "dispatch", "open", "--agent", "ada", "--task", "x")
	g.exits(0)
	<-g.done
	in := map[string]string{"ada": "agents", "board": "ada", "spawn-log.json": "ada", "board.json": "board"}
	for i, c := range calls {
		made := c.name
		switch {
		case c.nr == unix.SYS_RENAMEAT && in[c.to] != "":
			made = c.to
			if !slices.ContainsFunc(calls[:i], func(o call) bool { return o.nr == unix.SYS_FSYNC && o.name == c.name }) {
				t.Errorf("%s comes before its bytes are on disk", c)
			}
		case c.nr != unix.SYS_MKDIRAT:
			continue
		}
		if !slices.ContainsFunc(calls[i:], func(o call) bool { return o.nr == unix.SYS_FSYNC && o.name == in[made] }) {
			t.Errorf("after %s nothing syncs %q", c, in[made])
		}
		delete(in, made)
	}
	if len(in) > 0 {
		t.Errorf("never made: %v; calls: %v", in, calls)
	}
}
