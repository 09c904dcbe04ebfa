//go:build unix && !linux

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process.
func stopSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

func (c *command) prepareWait() {
	c.changed = make(chan os.Signal, 1)
	signal.Notify(c.changed, unix.SIGCHLD)
}

// waitChange returns when something may have happened to the command.
func (c *command) waitChange() { <-c.changed }
