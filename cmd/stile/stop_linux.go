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
