//go:build !unix

package main

import (
	"os"
	"sync"
)

// command is the one process that runs under a grant. Here there are no process groups: what it has started
// ends, on Windows, with this process's job.
type command struct {
	signals *signalSet

	mu     sync.Mutex
	proc   *os.Process
	ending bool
}

func newGroupCommand(signals *signalSet) *command { return &command{signals: signals} }

func (c *command) run(path string, argv, env []string) (int, error) {
	return runStarted(path, argv, env, c.signals, func(p *os.Process) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.proc = p
		if c.ending {
			_ = p.Kill()
		}
	})
}

// terminate ends it: there is no asking here.
func (c *command) terminate() { c.kill() }

func (c *command) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.proc != nil {
		_ = c.proc.Kill()
	}
}

// left: nothing is known of what it has started.
func (c *command) left() bool { return false }
