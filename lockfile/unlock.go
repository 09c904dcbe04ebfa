package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// UnlockOptions are the choices of one Unlock. The zero value removes only the lock of a provably dead
// holder.
type UnlockOptions struct {
	// Force removes the lock whatever its holder. Only for a holder that is gone or stuck: one that
	// still runs may commit over a newer holder's commit.
	Force bool
	// Show is called with the lock as it was found, before anything is removed.
	Show func(State)
	// UnlockHint is as in Options.
	UnlockHint string
	// Seams is for this module's own tests.
	Seams *seam.Set
}

// Unlocked is what an Unlock without an error has found and done.
type Unlocked struct {
	State   State // as it was found; not Locked when there was no lock
	Removed bool  // false also when the lock went away by itself meanwhile
}

// Unlock removes the lock of the guarded file at path, on an operator's behalf. Without Force, a holder
// that is not provably dead is refused with a *HeldError and the lock is left byte for byte; while
// another process is breaking the same lock, Unlock waits up to a second and then fails with an error
// that matches ErrBusy as well. With Force the lock is removed whatever its holder.
//
// Only the very lock that was shown is removed: if it has changed since, nothing is, and the error is
// ErrChanged. A kernel lock's file is never removed (ErrKernelLock), recognised by its record or by
// somebody's kernel lock on it. Nothing else is swept.
func Unlock(ctx context.Context, path string, o UnlockOptions) (Unlocked, error) {
	l, err := find(path, Options{UnlockHint: o.UnlockHint, Seams: o.Seams})
	if err != nil {
		return Unlocked{}, err
	}
	r, err := l.read(l.name, o.Force)
	if errors.Is(err, fs.ErrNotExist) {
		return Unlocked{State: State{Path: l.path, LockPath: l.name}}, nil
	}
	if err != nil {
		return Unlocked{}, err
	}
	r.parse()
	if r.kernel {
		return Unlocked{}, l.kernelLock()
	}
	found := Unlocked{State: l.state(r)}
	if o.Show != nil {
		o.Show(found.State)
	}
	if !o.Force && !l.dead(r) {
		return found, l.held(r, 0, nil)
	}
	if o.Force {
		done, err := l.flockFree()
		if err != nil {
			return found, err
		}
		found.Removed, err = l.unlock(ctx, r, true)
		return found, errors.Join(err, done())
	}
	found.Removed, err = l.unlock(ctx, r, false)
	return found, err
}

func (l *lock) unlock(ctx context.Context, r *reading, force bool) (removed bool, err error) {
	w := newWaiter(l, unlockBusyWait)
	w.blind = true // what it waits for is a claim's going, not the lock's
	for {
		outcome, err := l.breakLock(r, force)
		switch {
		case errors.Is(err, ErrBusy):
			if err := w.wait(ctx, r, err); err != nil {
				return false, err
			}
			continue
		case errors.Is(err, fs.ErrPermission):
			return false, fmt.Errorf("%w (the folder's owner, or the lock's, can do it)", err)
		case err != nil:
			return false, err
		}
		switch outcome {
		case broken:
			return true, nil
		case gone:
			return false, nil
		}
		return false, fmt.Errorf("unlock %s: %w", displayPath(l.name), ErrChanged)
	}
}

// flockFree takes the kernel lock of the lock file for as long as it takes to remove it, so that no
// kernel lock's file is removed under its holder: such a file may be empty, or hold what a program of
// its own has there. Where there is no flock, or not on this file system, nobody can hold one.
func (l *lock) flockFree() (done func() error, err error) {
	fsys, ok := l.s.FS.(vfs.Flocker)
	if !ok {
		return func() error { return nil }, nil
	}
	done, taken, err := fsys.TryFlock(l.name)
	switch {
	case taken:
		return nil, fmt.Errorf("%s: %w, and somebody holds it (see stile status)", displayPath(l.name), ErrKernelLock)
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrNotExist):
		return func() error { return nil }, nil
	case err != nil:
		return nil, fmt.Errorf("unlock %s: %w", displayPath(l.name), err)
	}
	return done, nil
}
