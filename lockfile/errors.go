package lockfile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/display"
)

// What an error of this package can match with errors.Is. An error of the system (no space, no
// permission, too many open files, a missing folder) is always itself, and never one of these.
var (
	// ErrHeld: somebody holds the lock, or a block stands in its place. The error is a *HeldError.
	ErrHeld = errors.New("lock is held")
	// ErrLost: the lock no longer carries this hold's token; an operator forced it away.
	ErrLost = errors.New("lock was lost")
	// ErrStale: the guarded file is not the one that this hold read. Somebody has committed without the
	// lock: a holder that was forced out in its very last step, or a program that knows no lock. Start
	// over, as after ErrLost.
	ErrStale = errors.New("file changed since it was read")
	// ErrReleased: the hold has ended.
	ErrReleased = errors.New("hold has ended")
	// ErrReentry: Acquire was given the context of a live hold on the same file.
	ErrReentry = errors.New("lock is already held by this very context")
	// ErrChanged: the lock is no longer the one that Unlock showed; nothing was removed.
	ErrChanged = errors.New("lock changed meanwhile")
	// ErrBusy: another process is breaking the same dead lock. It comes in a *HeldError.
	ErrBusy = errors.New("another process is breaking the lock")
	// ErrKernelLock: the file in the lock's place belongs to a kernel lock, and is never removed.
	ErrKernelLock = errors.New("this is a kernel lock's file")
	// ErrNotLockFile: a link, folder, device or FIFO stands in the lock's place. It is left alone.
	ErrNotLockFile = errors.New("lock path is not a regular file")
	// ErrNotRegular: the guarded path is a folder, device or FIFO.
	ErrNotRegular = commit.ErrNotRegular
	// ErrNameTooLong: with the longest suffix that a lock needs, the name would not fit the folder.
	ErrNameTooLong = errors.New("file name is too long to have a lock beside it")
	// ErrNotDurable: the commit landed, but its folder could not be synced.
	ErrNotDurable = commit.ErrNotDurable
)

// HeldError says who stands in the way. It matches ErrHeld; and the context's error when waiting was
// cancelled, and ErrBusy when the holder is dead and another process is breaking its lock.
type HeldError struct {
	State  State         // the lock as last read
	Waited time.Duration // how long Acquire or Unlock waited
	// Claim is who is breaking the lock, as the claim's name says; for ErrBusy only.
	Claim string
	// Hint is the command that clears the lock, without or with force as the holder's state asks.
	Hint string

	cause error // besides ErrHeld; may be nil
}

func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrHeld}
	}
	return []error{ErrHeld, e.cause}
}

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lock %s is held by %s", displayPath(e.State.LockPath), e.State.Holder)
	if e.Waited > 0 {
		fmt.Fprintf(&b, "; waited %s", showAge(e.Waited))
	}
	if e.cause != nil {
		fmt.Fprintf(&b, "; %v", e.cause)
	}
	if e.Claim != "" {
		fmt.Fprintf(&b, " (%s)", e.Claim)
	}
	fmt.Fprintf(&b, "; to clear it: %s", e.Hint)
	if e.State.Holder.State != Dead {
		b.WriteString(" (" + whenToForce + ")")
	}
	return b.String()
}

const whenToForce = "only once the holder's process is gone or stuck, never while it is still running"

// lost makes the error for a lock that left its holder.
func (l *lock) lost() error {
	return fmt.Errorf("lock %s: %w", displayPath(l.name), ErrLost)
}

// unlockCommand is the remedy that an error names.
func (l *lock) unlockCommand(force bool) string {
	cmd := l.hint
	if cmd == "" {
		cmd = "stile unlock " + display.ShellWord(l.path)
	}
	if !force {
		return cmd
	}
	if before, after, ok := strings.Cut(cmd, "unlock"); ok {
		return before + "unlock --force" + after
	}
	return cmd + " --force"
}
