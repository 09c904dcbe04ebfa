package kernlock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stile-lock/stile/internal/display"
)

// Errors that callers tell apart, matched with errors.Is. What the system
// itself says (ENOSPC, EACCES, EMFILE, EROFS, …) is wrapped and matches the
// system's own values; none of it is ever reported as a held lock.
var (
	// ErrUsage: the arguments can never work, whatever the lock's state.
	ErrUsage = errors.New("bad argument")

	// ErrHeld: another holder has the lock and the policy does not wait
	// (single_flight). The error is a *HeldError.
	ErrHeld = errors.New("lock is held")

	// ErrTimeout: the wait ran out. The error is a *TimeoutError.
	ErrTimeout = errors.New("lock_acquire_timeout")

	// ErrReentrant: the context given to Acquire belongs to a hold of this
	// very lock, so the wait could never end.
	ErrReentrant = errors.New("lock is already held by this context")

	// ErrLost: the hold no longer guards the target: its lock file was
	// removed or replaced, or the lock was released.
	ErrLost = errors.New("lock is lost")

	// ErrBadLockFile: what lies under the lock's name cannot be a lock file
	// (a link, a folder, a FIFO, a device, several hard links). It was not
	// touched.
	ErrBadLockFile = errors.New("not a usable lock file")

	// ErrOtherFamily: the file under the lock's name belongs to the lock
	// file family (package lockfile). It was not touched.
	ErrOtherFamily = errors.New("lock belongs to the lock file family")

	// ErrNameTooLong: the lock's name, or one beside it, would be longer
	// than the filesystem allows.
	ErrNameTooLong = errors.New("name too long")

	// ErrUnsupported: the filesystem or system has no such locks. The target
	// was not locked.
	ErrUnsupported = errors.New("file locks are not supported here")

	// ErrStillHeld: the lock was let go, and processes that inherited it
	// hold it still. The error is a *StillHeldError.
	ErrStillHeld = errors.New("lock is still held by what inherited it")

	// ErrClosed: the handle was closed.
	ErrClosed = errors.New("handle is closed")
)

// HeldError is what Acquire returns under single_flight when the lock is
// held. It matches ErrHeld.
type HeldError struct {
	Duplicate Duplicate
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %s: held by %s", display.Text(e.Duplicate.Target), e.Duplicate.holderText())
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// TimeoutError is what Acquire returns when its wait has run out. It matches
// ErrTimeout. The holder in its incident is the last one read, and may have
// gone since.
type TimeoutError struct {
	Target   string // canonical path
	LockPath string

	// Incident is the row that was appended, or that would have been.
	Incident Incident

	// Channel is the incidents file's name, without its folder.
	Channel string

	// RecordErr says why the incident could not be appended, if so. It never
	// hides or delays the timeout.
	RecordErr error

	// Queue is how many other waiters the kernel shows, or -1 when it cannot
	// be known.
	Queue int

	unreadable bool // there is something that is no readable record
}

// Code is the stable name of this error in JSON.
func (e *TimeoutError) Code() string { return "lock_acquire_timeout" }

// Is reports whether target is ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

func (e *TimeoutError) Error() string {
	in := &e.Incident
	var b strings.Builder
	fmt.Fprintf(&b, "lock %s: timed out after %.3f s", display.Text(e.Target), in.Waiter.WaitedSeconds)
	switch {
	case in.HolderChanged:
		b.WriteString(": busy, not stalled: the holder changed during the wait")
		if in.HolderState == Current && in.Holder != nil {
			b.WriteString("; now " + in.Holder.text())
		}
	case in.Holder == nil && e.unreadable:
		b.WriteString(": held, holder unknown (there is no readable record)")
	case in.HolderState == Previous || in.Holder == nil:
		b.WriteString(": held, holder unknown (it wrote no record)")
	default:
		b.WriteString(": held by " + in.Holder.text())
	}
	return b.String()
}

// StillHeldError is what Release returns for an inherited lock (Lock.Inherit)
// when other processes hold it still. It matches ErrStillHeld.
type StillHeldError struct {
	Target string
	// Processes are those found to hold the lock; empty when the system
	// does not tell.
	Processes []Process
}

// Process is a process as the system shows it.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // printable, from the system's process list
}

func (e *StillHeldError) Error() string {
	s := "lock " + display.Text(e.Target) + ": still held by what the command left behind"
	for i, p := range e.Processes {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		s += fmt.Sprintf("%s%s (pid %d)", sep, p.Name, p.PID)
	}
	return s
}

// Is reports whether target is ErrStillHeld.
func (e *StillHeldError) Is(target error) bool { return target == ErrStillHeld }
