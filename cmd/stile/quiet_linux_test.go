package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Reading asks the kernel for nothing that changes a file, also where it could: with a dead holder's lock,
// leftovers, a dispatch that is not on the board, and none of that.
func TestReadingWritesNothing(t *testing.T) {
	c := newWorld(t, cellClasses[0])
	reading := []string{
		"dispatch list", "dispatch list --json", "dispatch list -n 1", "dispatch show ID", "dispatch show ID --json", "board show",
		"board show --json", "board show --markdown", "board check", "board check --json", "board check --hook-envelope",
		"status", "status --json", "status .stile/agents/ada/spawn-log.json", "incidents",
	}
	for _, messy := range []bool{false, true} {
		if messy {
			c.plant(deadPID(t), thisHost(t))
			c.leave(deadPID(t), thisHost(t))
			writeFile(t, c.path("board", "board.json"), `{"items":[]}`)
		}
		for _, args := range reading {
			var calls []call
			g := c.gated(func(_ *gated, k call) answer { calls = append(calls, k); return pass }, strings.Fields(strings.ReplaceAll(args, "ID", c.first))...)
			if _, err := io.Copy(io.Discard, g.out); err != nil {
				t.Fatal(err)
			}
			want := 0
			if messy && strings.HasPrefix(args, "board check") && !strings.Contains(args, "envelope") {
				want = 2
			}
			g.exits(want)
			<-g.done
			if len(calls) > 0 {
				t.Errorf("%s: %v", args, calls)
			}
		}
	}
}

// Whichever call an interrupt comes at: the change is done or not, and is reported so; nothing is left beside
// the log, where the tool has the time to see to it; the next writer goes on.
func TestDispatchInterruptedAtEveryCall(t *testing.T) {
	for _, name := range killableNames() {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t, cellClasses[0])
			for n := 0; c.interruptedAt(n, name); n++ {
				continue
			}
		})
	}
}

func (c *world) interruptedAt(n int, name string) (interrupted bool) {
	c.Helper()
	args := killable[name](c)
	before := c.logged()
	made, step := 0, ""
	g := c.gated(func(g *gated, k call) answer {
		if made++; made == n+1 {
			step = k.String()
			_ = g.cmd.Process.Signal(unix.SIGINT)
		}
		return pass
	}, args...)
	out, err := io.ReadAll(g.out)
	if err != nil {
		c.Fatal(err)
	}
	code := g.wait()
	<-g.done
	at := fmt.Sprintf("at call %d, %s: exit code %d, it says %s%s", n, step, code, out, g.stderr())
	after := c.logged()
	opened := len(after) - len(before)
	switch unlock := strings.HasPrefix(name, "unlock"); {
	case unlock && code == -1: // it dies at once, as it changes one thing, by steps that any writer completes
	case code == 128+int(unix.SIGINT) && opened == 0:
		c.clean()
	case code == 0 && opened == map[bool]int{true: 1}[args[1] == "open"]:
		c.clean()
	default:
		c.Errorf("%s: %d opened", at, opened)
	}
	if exists(c.lock()) {
		c.run(0, "dispatch", "unlock", "--force", "--agent", "ada")
	}
	c.run(0, "dispatch", "open", "--agent", "ada", "--task", "next", "-w", "0")
	c.clean()
	if name != "repair" {
		c.run(0, "board", "check")
	}
	return step != ""
}
