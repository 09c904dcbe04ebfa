package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// killable are the commands that are killed at each of their calls, and what is there before: what a dead
// writer left, and how the calls show which step of the lock file's page was reached.
var killable = map[string]func(c *world) (args []string){
	"open": func(c *world) []string { return []string{"dispatch", "open", "--agent", "ada", "--task", "killed"} },
	"open after a death": func(c *world) []string {
		c.plant(deadPID(c.T), thisHost(c.T))
		writeFile(c.T, c.path(fmt.Sprintf("spawn-log.json.tmp-%d-0a1b2c", deadPID(c.T))), "x")
		writeFile(c.T, c.path("board", fmt.Sprintf("board.json.tmp-%d-0a1b2c", deadPID(c.T))), "x")
		return []string{"dispatch", "open", "--agent", "ada", "--task", "killed"}
	},
	"close": func(c *world) []string {
		return []string{"dispatch", "close", c.open("to be closed"), "--status", "done", "--result", "killed"}
	},
	"repair": func(c *world) []string {
		writeFile(c.T, c.path("board", "board.json"), `{"items":[]}`)
		return []string{"board", "repair", "--agent", "ada"}
	},
	"unlock": func(c *world) []string {
		c.plant(deadPID(c.T), thisHost(c.T))
		return []string{"dispatch", "unlock", "--agent", "ada"}
	},
	"unlock by force": func(c *world) []string {
		c.plant(1, thisHost(c.T))
		return []string{"dispatch", "unlock", "--force"}
	},
}

// killableNames are the commands, or in short tests those with the most calls.
func killableNames() []string {
	if testing.Short() {
		return []string{"close", "open after a death"}
	}
	return slices.Sorted(maps.Keys(killable))
}

// Whichever of its calls the tool is killed at: the next writer goes on at once and leaves nothing beside the
// log, every acknowledged dispatch is there once, and where the board is behind check says so and repair
// mends it. Without hard links a lock that was made and not written blocks until it is forced away.
func TestDispatchKilledAtEveryCall(t *testing.T) {
	for _, class := range cellClasses {
		t.Run(class, func(t *testing.T) {
			for _, name := range killableNames() {
				t.Run(name, func(t *testing.T) {
					c := newWorld(t, class)
					var steps []string
					for n := 0; ; n++ {
						step, killed := c.killedAt(n, name)
						if !killed {
							break
						}
						steps = append(steps, step)
					}
					t.Logf("killed at %d calls: %s", len(steps), strings.Join(steps, ", "))
					if len(steps) < 3 {
						t.Error("too few to be all")
					}
				})
			}
		})
	}
}

// killedAt kills the command at its nth call, unless it makes fewer, and looks at what is left.
func (c *world) killedAt(n int, name string) (step string, killed bool) {
	c.Helper()
	args := killable[name](c)
	before := c.logged()
	made := 0
	g := c.gated(func(_ *gated, k call) answer {
		if made++; made <= n {
			return pass
		}
		step = k.String()
		return kill
	}, args...)
	code := g.wait()
	<-g.done
	if killed = code == -1; !killed && code != 0 {
		c.Fatalf("exit code %d: %s", code, g.stderr())
	}
	empty := !c.links && exists(c.lock()) && c.read(c.lock()) == ""
	if empty {
		c.run(2, "dispatch", "open", "--agent", "ada", "--task", "blocked", "-w", "0")
		c.run(0, "dispatch", "unlock", "--force", "--agent", "ada")
	}
	if name == "unlock by force" && exists(c.lock()) {
		c.run(0, "dispatch", "unlock", "--force", "--agent", "ada") // as the operator had in mind
	}
	next, _ := c.run(0, "dispatch", "open", "--agent", "ada", "--task", "next", "-w", "0")
	after := c.logged()
	if len(after) < len(before)+1 || !slices.Equal(after[:len(before)], before) || after[len(after)-1] != strings.TrimSpace(next) ||
		len(after) > len(before)+2 || len(after) == len(before)+2 && args[1] != "open" {
		c.Errorf("killed at call %d, %s: before there was %v, then %v", n, step, before, after)
	}
	onlyFiles(c.T, c.path(), "board", "spawn-log.json")
	onlyFiles(c.T, c.path("board"), "board.json")
	r := c.start("board", "check")
	if code := r.wait(); code == 2 {
		c.run(0, "board", "repair", "--agent", "ada")
	} else if code != 0 {
		c.Errorf("check ends with %d: %s", code, r.stderr())
	}
	c.run(0, "board", "check")
	onBoard := c.onBoard()
	slices.Sort(onBoard)
	slices.Sort(after)
	if !slices.Equal(onBoard, after) {
		c.Errorf("killed at call %d, %s: the board has %v, the log %v", n, step, onBoard, after)
	}
	return step, killed
}
