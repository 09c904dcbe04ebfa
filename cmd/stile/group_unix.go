//go:build unix

package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// A command in a process group of its own can be stopped with all that it has started. On a terminal it is
// then what a job is to a shell: the terminal is handed to its group, and back when it stops or ends.

// newGroupCommand is a command that runs in a group of its own.
func newGroupCommand(signals *signalSet) *command { return &command{signals: signals, group: true} }

// terminate asks the whole group to end.
func (c *command) terminate() { c.tell(unix.SIGTERM) }

// kill ends it.
func (c *command) kill() { c.tell(unix.SIGKILL) }

func (c *command) tell(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.pid == 0 {
		return
	}
	_ = unix.Kill(-c.pid, sig)
	_ = unix.Kill(-c.pid, unix.SIGCONT) // one that is stopped would not hear of it
}

// left tells whether a command that was told to end has left anything in its group. While it has, the group's
// number is nobody else's.
func (c *command) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending && c.pid != 0 && unix.Kill(-c.pid, 0) != unix.ESRCH
}

// passGroup hands a signal on to the group, which gets none but from us, or from the terminal while it has it.
func (c *command) passGroup(sig unix.Signal) {
	switch sig {
	case unix.SIGTSTP:
		c.resting = true
	case unix.SIGCONT:
		before := c.rests
		c.reap()
		if !c.stopped || c.rests != before {
			return
		}
		c.giveTerminal()
	}
	if !c.ended {
		_ = unix.Kill(-c.pid, sig)
	}
}

// groupStopped stops us as the command did, so that the shell gets its terminal back.
func (c *command) groupStopped(by unix.Signal) {
	switch {
	case c.resting, c.terminal && foreground() == c.pid:
		c.resting = false
		c.takeTerminal()
		c.rests++
		stopSelf()
	case by == unix.SIGTTIN || by == unix.SIGTTOU:
		// It was begun in the background and wants the terminal, which may be ours by now.
		if c.giveTerminal() {
			_ = unix.Kill(-c.pid, unix.SIGCONT)
		}
	}
}

// openTerminal gives a descriptor of the terminal, or -1.
func openTerminal() int {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// mayHaveTerminal gives a descriptor of the terminal if the command may have it, else -1: it is ours to give,
// and no other command of a pipeline shares it with us.
func (c *command) mayHaveTerminal() int {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		if _, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil {
			return -1
		}
	}
	if !inForeground() {
		return -1
	}
	return openTerminal()
}

// giveTerminal puts the command's group into the terminal's foreground.
func (c *command) giveTerminal() bool {
	tty := c.mayHaveTerminal()
	if tty < 0 {
		return false
	}
	defer unix.Close(tty)
	c.terminal = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, c.pid) == nil
	return c.terminal
}

// takeTerminal puts us there again, if the command's group is there.
func (c *command) takeTerminal() {
	if !c.terminal {
		return
	}
	c.terminal = false
	tty := openTerminal()
	if tty < 0 {
		return
	}
	defer unix.Close(tty)
	if group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP); err != nil || c.pid != 0 && group != c.pid {
		return
	}
	// We are not in the foreground while we do this, and would be stopped for it.
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, unix.Getpgrp())
}

// foreground is the process group that has the terminal, or 0.
func foreground() int {
	tty := openTerminal()
	if tty < 0 {
		return 0
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}
