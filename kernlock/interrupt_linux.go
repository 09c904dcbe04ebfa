//go:build linux && (amd64 || arm64)

package kernlock

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A thread that waits in the kernel can be called back in one way only: by a
// signal whose handler is not one that restarts the call. Go's runtime has a
// handler for every signal and lets each restart; interruptSignal is the one
// for which that flag is taken away. It is sent to the waiting thread alone
// and means nothing to anyone. A program that asks os/signal for every signal
// there is may see it.
const interruptSignal = 63

const saRestart = 0x10000000

// sigaction is the kernel's struct of rt_sigaction(2), alike on the
// architectures that this file is built for.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// interrupter ends system calls of the current thread when a context ends.
type interrupter struct {
	ctx      context.Context
	pid, tid int
	mask     uint64 // the thread's signal mask before, if it was changed
	unmasked bool

	stop     func() bool   // keeps ctx from starting the sender
	left     chan struct{} // closed when the thread is another's business
	finished chan struct{} // closed by the sender
}

// interruptible ties the calling goroutine to its thread and prepares that to
// be interrupted. It is false when the signal cannot be used: in a program
// whose runtime has no handlers (a C program's plug-in), where it would be
// fatal, or in one that ignores it. After true, leave must be called.
func interruptible(ctx context.Context) (*interrupter, bool) {
	// Each time, since os/signal may have put another handler in place.
	var sa sigaction
	if rtSigaction(nil, &sa) != 0 || sa.handler <= 1 {
		return nil, false
	}
	if sa.flags&saRestart != 0 {
		sa.flags &^= saRestart
		if rtSigaction(&sa, nil) != 0 {
			return nil, false
		}
	}
	runtime.LockOSThread()
	in := &interrupter{ctx: ctx, pid: os.Getpid(), tid: unix.Gettid(),
		left: make(chan struct{}), finished: make(chan struct{})}
	// A parent may have left the signal blocked; it would then never come.
	const bit = uint64(1) << (interruptSignal - 1)
	errno := sigmask(unix.SIG_BLOCK, nil, &in.mask)
	if errno == 0 && in.mask&bit != 0 {
		unblock := bit
		errno = sigmask(unix.SIG_UNBLOCK, &unblock, nil)
		in.unmasked = true
	}
	if errno != 0 {
		runtime.UnlockOSThread()
		return nil, false
	}
	in.stop = context.AfterFunc(ctx, func() {
		defer close(in.finished)
		in.sendUntil(in.left)
	})
	return in, true
}

// run makes one system call that may wait, again if a signal that was not
// ours ended it. When ended says so it returns EINTR; a call that succeeded
// all the same stays a success.
func (in *interrupter) run(ended func() bool, call func() error) error {
	for !ended() {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return unix.EINTR
}

func (in *interrupter) over() bool { return in.ctx.Err() != nil }

// sendUntil signals the thread until done: a signal that comes just before
// the thread enters its call is swallowed.
func (in *interrupter) sendUntil(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		select {
		case <-done:
			return
		default:
		}
		_ = unix.Tgkill(in.pid, in.tid, interruptSignal)
		timer.Reset(pause)
		select {
		case <-done:
			return
		case <-timer.C:
		}
	}
}

// leave ends it. Afterwards nothing of it runs, and no signal reaches the
// thread, which may be another's by then.
func (in *interrupter) leave() {
	close(in.left)
	if !in.stop() {
		<-in.finished
	}
	if in.unmasked {
		_ = sigmask(unix.SIG_SETMASK, &in.mask, nil)
	}
	runtime.UnlockOSThread()
}

func rtSigaction(set, old *sigaction) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, interruptSignal,
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	return errno
}

func sigmask(how int, set, old *uint64) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	return errno
}
