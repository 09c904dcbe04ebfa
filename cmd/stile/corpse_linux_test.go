package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A breaker that was killed with its claim made, and that nobody has waited for, keeps nobody waiting: its
// corpse answers a signal, and can do nothing more. So it is where the first process of a container reaps none.
func TestCorpseOfABreaker(t *testing.T) {
	for _, class := range cellClasses {
		t.Run(class, func(t *testing.T) {
			c := newWorld(t, class)
			for _, args := range [][]string{{"dispatch", "open", "--agent", "ada", "--task", "next", "-w", "0"}, {"dispatch", "unlock", "--agent", "ada"}} {
				c.plant(deadPID(t), thisHost(t))
				breaker := c.gated(func(_ *gated, k call) answer {
					if k.nr == unix.SYS_RENAMEAT {
						return kill
					}
					return pass
				}, "dispatch", "open", "--agent", "ada", "--task", "killed")
				<-breaker.done
				pid := breaker.cmd.Process.Pid
				ended(t, pid)
				until(t, "all of its threads have ended", func() bool {
					tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
					return err == nil && len(tasks) == 1
				})
				c.run(0, args...)
				breaker.exits(-1)
			}
			c.open("x")
			c.clean()
		})
	}
}
