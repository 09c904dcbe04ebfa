//go:build unix && !linux

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process.
func stopSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// prepareWait gives what waits for news of the command. It must be called
// before the start, so that no news can be missed.
func (c *command) prepareWait() func() {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGCHLD)
	return func() { <-changed }
}
