package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process. The signal goes to the calling thread, which
// then stops before it does anything else: sent to the process, it could be
// taken by another thread while this one goes on for a while, and takes an
// old SIGCONT for the answer to this stop.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// prepareWait gives what waits for news of the command.
func (c *command) prepareWait() func() { return c.waitChange }

// waitChange returns when something has happened to the command that reap
// will take in, or when it was taken in elsewhere. It leaves the news where
// they are: collecting needs the lock that no waiting may hold.
func (c *command) waitChange() {
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
