package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// openUntil starts an open that is stopped at a call.
func (c *world) openUntil(at string) (*gated, call) {
	c.Helper()
	stopped := false
	g := c.gated(func(_ *gated, k call) answer {
		if !stopped && k.String() == at {
			stopped = true
			return hold
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "stopped", "-w", "60")
	return g, g.stopped()
}

// A breaker that has its claim is stopped: others wait for it, unlock too, and it finishes alone.
func cellBreakerStalled(c *world) {
	pid := deadPID(c.T)
	lock := c.plant(pid, thisHost(c.T))
	breaker, at := c.openUntil("rename spawn-log.json.lock to spawn-log.json.lock.broken")
	out, stderr := c.run(2, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0.05")
	if out != "" || !strings.Contains(stderr, fmt.Sprintf("pid %d on ", pid)) {
		c.Errorf("open says %s", stderr)
	}
	_, stderr = c.run(2, "dispatch", "unlock", "--agent", "ada")
	if !strings.Contains(stderr, fmt.Sprintf("%d", breaker.cmd.Process.Pid)) {
		c.Errorf("unlock does not name the breaker, %d: %s", breaker.cmd.Process.Pid, stderr)
	}
	fileHolds(c.T, c.lock(), lock)
	breaker.let(at)
	c.whole(breaker.id())
}

// A releaser that has moved its lock is stopped: others acquire, commit and release, and it removes its own
// moved file alone.
func cellReleaserStalled(c *world) {
	releaser, at := c.openUntil("unlink spawn-log.json.lock.broken")
	ids := []string{c.open("x"), c.open("y")}
	releaser.let(at)
	c.whole(append(ids, releaser.id())...)
}

func cellReleaserInWindow(c *world) {
	releaser, at := c.openUntil("unlink spawn-log.json.lock.broken")
	holder, commit := c.openUntil("rename spawn-log.json.tmp to spawn-log.json")
	lock := c.read(c.lock())
	releaser.let(at)
	first := releaser.id()
	fileHolds(c.T, c.lock(), lock)
	holder.let(commit)
	c.whole(first, holder.id(), c.open("third"))
}

func cellSweeperStalled(c *world) {
	dead := fmt.Sprintf("spawn-log.json.tmp-%d-0a1b2c", deadPID(c.T))
	writeFile(c.T, c.path(dead), "x")
	sweeper, at := c.openUntil("unlink spawn-log.json.tmp")
	if at.name != dead {
		c.Fatalf("it is about to remove %s", at.name)
	}
	other := c.open("x")
	holder, commit := c.openUntil("rename spawn-log.json.tmp to spawn-log.json")
	lock := c.read(c.lock())
	sweeper.let(at)
	sweeper.waits()
	fileHolds(c.T, c.lock(), lock)
	holder.let(commit)
	c.whole(other, holder.id(), sweeper.id())
}

// The lock is lost when the record is in the log, and the board not written yet.
func cellBoardWrite(c *world) {
	holder := c.gated(func(_ *gated, k call) answer {
		if k.String() == "create board.json.tmp" {
			return hold
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "holder", "--json")
	at := holder.stopped()
	board := c.read(c.path("board", "board.json"))
	c.run(0, "dispatch", "unlock", "--force")
	holder.let(at)
	var e struct{ Code, Message, Hint, Dispatch string }
	text, _ := holder.out.ReadString('\n')
	holder.exits(2)
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Code != "lock_lost" || !strings.Contains(e.Message, e.Dispatch) ||
		!slices.Equal(c.logged(), []string{c.first, e.Dispatch}) || !strings.HasSuffix(e.Hint, "stile board repair --agent ada") {
		c.Errorf("%v: it says %s; the log has %v", err, text, c.logged())
	}
	fileHolds(c.T, c.path("board", "board.json"), board)
	if out, _ := c.run(2, "board", "check"); !strings.Contains(out, e.Dispatch+" of ada is not on the board") {
		c.Errorf("check says %s", out)
	}
	c.run(0, "board", "repair", "--agent", "ada")
	c.whole(e.Dispatch)
}

var cellLeftovers = []string{
	"spawn-log.json.lock.claim-1234", "spawn-log.json.lock.claim-h0123456789abcdef", "spawn-log.json.lock.broken-PID-0a1b2c",
	"spawn-log.json.tmp-PID-0a1b2c",
}

func (c *world) leave(pid int, host string) (names []string) {
	c.Helper()
	for _, name := range cellLeftovers {
		name = strings.ReplaceAll(name, "PID", fmt.Sprint(pid))
		text := fmt.Sprintf(`{"pid":%d}`, pid)
		if strings.Contains(name, "claim-h") {
			text = fmt.Sprintf(`{"pid":%d,"hostname":%q}`, pid, host)
		}
		writeFile(c.T, c.path(name), text)
		names = append(names, name)
	}
	return names
}

func cellEarlier(c *world) {
	c.leave(deadPID(c.T), thisHost(c.T))
	c.plant(deadPID(c.T), "")
	id, _ := c.run(0, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0")
	c.whole(strings.TrimSpace(id))
}

func cellLeftoversStay(c *world) {
	alive := exec.Command("sleep", "600")
	if err := alive.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _, _ = alive.Process.Kill(), alive.Wait() })
	names := append(c.leave(alive.Process.Pid, thisHost(c.T)), "board", "spawn-log.json")
	slices.Sort(names)
	c.open("x")
	onlyFiles(c.T, c.path(), names...)
	c.run(0, "board", "check")
}

// moveLock is the call with which a breaker, and a releaser, takes the lock's name away.
const moveLock = "rename spawn-log.json.lock to spawn-log.json.lock.broken"

// breakerUntil is openUntil that also tells, when it has ended, which locks it moved.
func (c *world) breakerUntil(at string) (g *gated, moved func() []string) {
	c.Helper()
	stopped := false
	var locks []string
	g = c.gated(func(_ *gated, k call) answer {
		if k.String() == moveLock {
			text, err := os.ReadFile(c.lock())
			if err != nil {
				text = []byte(err.Error())
			}
			locks = append(locks, string(text))
		}
		if !stopped && k.String() == at {
			stopped = true
			return hold
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "breaker", "-w", "60")
	return g, func() []string {
		<-g.done
		return locks
	}
}

// settles waits until the process waits for a lock, or has ended.
func (g *gated) settles() {
	g.t.Helper()
	until(g.t, "it waits for the lock or has ended", func() bool {
		select {
		case <-g.done:
			return true
		default:
			return g.watches()
		}
	})
}

// Two breakers meet at one dead lock. Whoever has the claim goes on alone, and the other one never moves that lock.
func cellTwoBreakers(c *world) {
	lock := c.plant(deadPID(c.T), thisHost(c.T))
	first, at := c.openUntil(moveLock)
	second, moved := c.breakerUntil("")
	second.settles()
	fileHolds(c.T, c.lock(), lock)
	first.let(at)
	c.whole(first.id(), second.id())
	if got := moved(); len(got) != 1 || got[0] == lock {
		c.Errorf("the second one moves %q", got)
	}
}

// A breaker has judged the lock, and is stopped; another breaks it meanwhile, and holds. The first one leaves that
// lock alone.
func cellJudgedReplaced(c *world) {
	c.plant(deadPID(c.T), thisHost(c.T))
	breaker, moved := c.breakerUntil("create spawn-log.json.lock.claim")
	at := breaker.stopped()
	holder, commit := c.openUntil("rename spawn-log.json.tmp to spawn-log.json")
	lock := c.read(c.lock())
	breaker.let(at)
	breaker.settles()
	fileHolds(c.T, c.lock(), lock)
	holder.let(commit)
	c.whole(holder.id(), breaker.id())
	if got := moved(); len(got) != 1 || got[0] == lock {
		c.Errorf("it moves %q", got)
	}
}

// A lock that cannot be written fails after the step that makes its name. Another's is there by then, and stays.
func cellPublishFails(c *world) {
	at := "write spawn-log.json.lock.pending"
	if !c.links {
		at = "write spawn-log.json.lock"
	}
	g, write := c.openUntil(at)
	if !c.links { // an operator has forced the half-made lock out
		if err := os.Remove(c.lock()); err != nil {
			c.Fatal(err)
		}
	}
	lock := c.plant(os.Getpid(), thisHost(c.T))
	g.respond(response{id: write.id, error: -int32(unix.EIO)})
	g.exits(1)
	if !strings.Contains(g.stderr(), "input/output error") {
		c.Errorf("it says %s", g.stderr())
	}
	fileHolds(c.T, c.lock(), lock)
	if err := os.Remove(c.lock()); err != nil {
		c.Fatal(err)
	}
	c.whole()
}
