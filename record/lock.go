package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

// Hold is a lock that is held. *kernlock.Lock and *lockfile.Hold are holds.
type Hold interface {
	// Fence is nil while the hold still guards the file. It is asked just before a commit.
	Fence() error
	// Release ends the hold.
	Release() error
}

// Lock is a way to lock files: KernelLock, LockFile, or something around one of them.
type Lock interface {
	// Timeout bounds the wait of one change, tries under fresh holds included.
	Timeout() time.Duration
	// Resolve returns the file that path leads to, links resolved. It makes and takes nothing.
	Resolve(path string) (string, error)
	// Acquire takes the lock of a file that Resolve returned, waiting at most wait; one try when that
	// is not positive. It returns a Hold or an error.
	Acquire(ctx context.Context, path string, wait time.Duration) (Hold, error)
}

// KernelLock guards a file with the kernel lock beside it, as stile run, stile edit and
// flock FILE.lock do. Options.Shared and Options.Exact make no sense here and are ignored.
func KernelLock(o kernlock.Options) Lock {
	o.Shared, o.Exact = false, false
	return kernelLock{o}
}

type kernelLock struct{ o kernlock.Options }

func (l kernelLock) Timeout() time.Duration {
	if l.o.Timeout > 0 {
		return l.o.Timeout
	}
	return l.o.Policy.Timeout()
}

func (l kernelLock) Resolve(path string) (string, error) {
	h, err := kernlock.Open(path, l.o)
	if err != nil {
		return "", err
	}
	return h.Target(), h.Close()
}

func (l kernelLock) Acquire(ctx context.Context, path string, wait time.Duration) (Hold, error) {
	o := l.o
	if o.Policy != kernlock.SingleFlight {
		o.Timeout = max(wait, kernlock.TryOnce)
	}
	h, err := kernlock.Acquire(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return heldAt(h, h.Target(), path)
}

// LockFile guards a file with the crash-safe lock file beside it (package lockfile). Everything that
// writes the file must use it.
func LockFile(o lockfile.Options) Lock { return lockFile{o} }

type lockFile struct{ o lockfile.Options }

func (l lockFile) Timeout() time.Duration {
	if l.o.Timeout == 0 {
		return lockfile.DefaultTimeout
	}
	return max(l.o.Timeout, 0)
}

func (l lockFile) Resolve(path string) (string, error) { return lockfile.Resolve(path, l.o) }

func (l lockFile) Acquire(ctx context.Context, path string, wait time.Duration) (Hold, error) {
	o := l.o
	o.Timeout = wait
	if wait <= 0 {
		o.Timeout = -1
	}
	h, err := lockfile.Acquire(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return heldAt(h, h.Path(), path)
}

// heldAt lets a hold go whose file is not the one asked for: a folder or link on the way to it was
// changed since it was resolved, and what is held guards another file.
func heldAt(h Hold, got, asked string) (Hold, error) {
	if got == asked {
		return h, nil
	}
	return nil, errors.Join(fmt.Errorf("lock %s: it has moved to %s meanwhile", display.Text(asked), display.Text(got)), h.Release())
}

// isLost says whether an error of a fence is the loss of the hold, in either family.
func isLost(err error) bool {
	return errors.Is(err, kernlock.ErrLost) || errors.Is(err, lockfile.ErrLost)
}
