//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// endingSignals end a wait. While the command runs they go to it.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP}

// shellCommand is the command that runs a shell line: $SHELL, as flock(1) has
// it, else /bin/sh.
func shellCommand(line string) []string {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	return []string{shell, "-c", line}
}

// command is the one process that runs under the lock.
type command struct {
	pid     int
	signals *signalSet
	stopped bool
	rests   int  // how often we stopped with it
	resumes bool // SIGCONT is received, to be handed on
}

// runCommand starts the command and lives with it until it ends: it shares
// our process group, and so the terminal, and every open descriptor that our
// caller meant for it. All waiting and signalling is done in one goroutine,
// so that no signal can go to a process number that was already given back.
//
// os.StartProcess is not used: it would number the descriptors itself, and
// it tries out pidfds first, which costs more than all our own work.
func runCommand(path string, argv, env []string, signals *signalSet) (int, error) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGCHLD)
	signal.Notify(signals.arrived, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP)
	pid, err := spawn(path, argv, env)
	if err != nil {
		return 0, commandFailure(argv[0], err)
	}
	c := &command{pid: pid, signals: signals}
	for {
		select {
		case <-changed:
			if code, ended, err := c.reap(); ended || err != nil {
				return code, err
			}
		case sig := <-signals.arrived:
			if sig == unix.SIGCONT {
				// First see whether it has gone on already, or has even been
				// stopped by another ^Z that this SIGCONT must not undo.
				before := c.rests
				code, ended, err := c.reap()
				if ended || err != nil {
					return code, err
				}
				if c.rests != before {
					continue
				}
			}
			c.pass(sig.(unix.Signal))
		}
	}
}

// spawn is execvp in a child: a file without "#!" is given to /bin/sh.
func spawn(path string, argv, env []string) (int, error) {
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}}
	pid, err := syscall.ForkExec(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		pid, err = syscall.ForkExec("/bin/sh", scriptArgs(path, argv), attr)
	}
	return pid, err
}

func scriptArgs(path string, argv []string) []string {
	return append([]string{"/bin/sh", path}, argv[1:]...)
}

// execInPlace becomes the command. It returns only when that is not possible.
func execInPlace(path string, argv, env []string) error {
	err := syscall.Exec(path, argv, env)
	if errors.Is(err, syscall.ENOEXEC) {
		err = syscall.Exec("/bin/sh", scriptArgs(path, argv), env)
	}
	return commandFailure(argv[0], err)
}

// reap takes in what happened to the command since the last time.
func (c *command) reap() (code int, ended bool, err error) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(c.pid, &status, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, false, fmt.Errorf("wait for the command: %w", err)
		case pid == 0:
			return 0, false, nil
		case status.Exited():
			return status.ExitStatus(), true, nil
		case status.Signaled():
			return 128 + int(status.Signal()), true, nil
		case status.Stopped():
			c.stopped = true
			if !c.resumes {
				// Not before: each signal received costs a start-up its share.
				c.resumes = true
				signal.Notify(c.signals.arrived, unix.SIGCONT)
			}
			if inForeground() {
				// ^Z: stop as the command did, so that the shell gets its
				// terminal back. Not before the command has stopped: it may
				// be an editor that tidies the screen first. Elsewhere a
				// stopped command is somebody's experiment, and whoever
				// continues it knows nothing of us.
				c.rests++
				stopSelf()
			}
		case status.Continued():
			c.stopped = false
		}
	}
}

// pass hands on a signal that came to us, unless the command got it as well.
func (c *command) pass(sig unix.Signal) {
	switch sig {
	case unix.SIGINT, unix.SIGQUIT:
		if inForeground() {
			// The terminal sends these to its whole foreground group, and
			// the command is in it.
			return
		}
	case unix.SIGTSTP:
		// Caught so that we stop after the command does, or not at all when
		// it does not want to stop. Never handed on: it may be the one of a
		// ^Z that has been answered since.
		return
	case unix.SIGCONT:
		if !c.stopped {
			return
		}
	}
	_ = unix.Kill(c.pid, sig)
}

// inForeground says whether we have a terminal and are, with our command, in
// the group that its keys reach.
func inForeground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
