//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// endingSignals end a wait. While the command runs they go to it.
var endingSignals = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}

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

	// mu is held while the process is collected or signalled, so that no
	// signal goes to a number that was already given back.
	mu      sync.Mutex
	over    chan struct{} // closed when it has ended
	ended   bool
	code    int
	err     error
	stopped bool
	rests   int  // how often we stopped with it
	resumes bool // SIGCONT is received, to be handed on

	streams []*os.File // its standard streams; nil: ours

	// group: it has a process group of its own, so that all it starts can be stopped with it.
	group    bool
	terminal bool // its group was given the terminal
	resting  bool // we were asked to stop, and handed that on
	ending   bool // it was told to end
}

// runCommand starts the command and lives with it until it ends: it shares
// our process group, and so the terminal, and every open descriptor that our
// caller meant for it.
//
// os.StartProcess is not used: it would number the descriptors itself, and
// it tries out pidfds first, which costs more than all our own work.
//
// The command's standard streams are ours, or the three given.
func runCommand(path string, argv, env []string, signals *signalSet, streams ...*os.File) (int, error) {
	return (&command{signals: signals, streams: streams}).run(path, argv, env)
}

// run starts the command and lives with it until it ends.
func (c *command) run(path string, argv, env []string) (int, error) {
	c.over = make(chan struct{})
	defer close(c.over)
	waitChange := c.prepareWait()
	if c.streams != nil {
		// Not the first command of this process, perhaps: it must not inherit
		// what was ignored for the last one's sake.
		signal.Reset(unix.SIGTSTP)
	}
	if err := c.start(path, argv, env); err != nil {
		return 0, commandFailure(argv[0], err)
	}
	go c.passSignals()
	for {
		waitChange()
		c.mu.Lock()
		c.reap()
		ended, code, err := c.ended, c.code, c.err
		c.mu.Unlock()
		if ended {
			return code, err
		}
	}
}

// passSignals hands on what comes to us.
func (c *command) passSignals() {
	// We stop after the command does, or not at all when it does not want
	// to: it may be an editor that tidies the screen first. Not before the
	// start: the command would inherit it.
	if c.group {
		// The key does not reach the command then, unless it has the terminal.
		signal.Notify(c.signals.arrived, unix.SIGTSTP)
	} else {
		signal.Ignore(unix.SIGTSTP)
	}
	for {
		select {
		case <-c.over:
			return
		case sig := <-c.signals.arrived:
			c.mu.Lock()
			if sig != unix.SIGCONT {
				// It may have ended a moment ago: then nobody would get it.
				c.reap()
			}
			ended := c.ended
			if !ended {
				c.pass(sig.(unix.Signal))
			}
			c.mu.Unlock()
			if ended {
				// It was meant for what comes after the command.
				c.signals.giveBack(sig)
				return
			}
		}
	}
}

// giveBack puts a signal back for whoever asks next.
func (s *signalSet) giveBack(sig os.Signal) {
	select {
	case s.arrived <- sig:
	default: // so many others have come that one will not be missed
	}
}

// start starts the process.
func (c *command) start(path string, argv, env []string) (err error) {
	c.mu.Lock() // it may be told to end before it has begun
	defer c.mu.Unlock()
	if !c.group {
		c.pid, err = spawn(path, argv, env, c.streams, nil)
		return err
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	if tty := c.mayHaveTerminal(); tty >= 0 {
		defer unix.Close(tty)
		sys.Foreground, sys.Ctty = true, tty
		c.terminal = true
	}
	c.pid, err = spawn(path, argv, env, c.streams, sys)
	if err != nil {
		c.takeTerminal()
	}
	return err
}

// spawn is execvp in a child: a file without "#!" is given to /bin/sh.
func spawn(path string, argv, env []string, streams []*os.File, sys *syscall.SysProcAttr) (int, error) {
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: sys}
	for i, f := range streams {
		attr.Files[i] = f.Fd()
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		pid, err = syscall.ForkExec("/bin/sh", scriptArgs(path, argv), attr)
	}
	runtime.KeepAlive(streams)
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

// reap takes in what happened to the command since the last time. It never
// waits.
func (c *command) reap() {
	for !c.ended {
		var status unix.WaitStatus
		pid, err := unix.Wait4(c.pid, &status, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			c.ended, c.err = true, fmt.Errorf("wait for the command: %w", err)
		case pid == 0:
			return
		case status.Exited():
			c.ended, c.code = true, status.ExitStatus()
		case status.Signaled():
			c.ended, c.code = true, 128+int(status.Signal())
		case status.Stopped():
			c.stopped = true
			if !c.resumes {
				// Not before: each signal received costs a start-up its share.
				c.resumes = true
				signal.Notify(c.signals.arrived, unix.SIGCONT)
			}
			if c.group {
				c.groupStopped(status.StopSignal())
			} else if inForeground() {
				// ^Z: stop as the command did, so that the shell gets its
				// terminal back. Elsewhere a stopped command is somebody's
				// experiment, and whoever continues it knows nothing of us.
				c.rests++
				stopSelf()
			}
		case status.Continued():
			c.stopped = false
		}
	}
	if c.group {
		c.takeTerminal()
	}
}

// pass hands on a signal that came to us, unless the command got it as well.
func (c *command) pass(sig unix.Signal) {
	if c.group {
		c.passGroup(sig)
		return
	}
	switch sig {
	case unix.SIGINT, unix.SIGQUIT:
		if inForeground() {
			// The terminal sends these to its whole foreground group, and
			// the command is in it.
			return
		}
	case unix.SIGCONT:
		// First see whether it has gone on already, or has even been stopped
		// by another ^Z that this SIGCONT must not undo.
		before := c.rests
		c.reap()
		if !c.stopped || c.rests != before {
			return
		}
	}
	if !c.ended {
		_ = unix.Kill(c.pid, sig)
	}
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
