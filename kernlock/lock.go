package kernlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stile-lock/stile/internal/display"
)

// Lock is one hold of a lock. Its methods may be called from any goroutine.
type Lock struct {
	h   *Handle
	f   *lockFile
	ctx context.Context // as given to Acquire

	mu        sync.Mutex
	released  bool
	inherited bool

	signed   bool // a record of this hold is in the file
	acquired time.Time
	warning  error

	own    context.Context // made by the first Context
	cancel context.CancelCauseFunc
}

// Target is the canonical path of what is guarded.
func (l *Lock) Target() string { return l.h.names.target }

// LockPath is the path of the lock file.
func (l *Lock) LockPath() string { return l.h.names.lock }

// LockID is the first 16 hex digits of the SHA-256 of Target.
func (l *Lock) LockID() string { return l.h.names.id }

// Warning is why the holder record could not be written, or nil. The lock is
// held all the same: what is advisory never vetoes it.
func (l *Lock) Warning() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warning
}

// Fence reports whether this hold still guards the target: nil, or an error
// that matches ErrLost when the lock file was removed or replaced, or when
// the lock was released. Call it just before a commit; what follows a failed
// fence must not be written.
func (l *Lock) Fence() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return l.lost("it was released")
	}
	same, err := l.f.at(l.h.names.lock)
	if err != nil {
		return fmt.Errorf("fence %s: %w", display.Text(l.h.names.target), err)
	}
	if !same {
		return l.lost("its lock file was removed or replaced")
	}
	return nil
}

func (l *Lock) lost(why string) error {
	return fmt.Errorf("lock %s: %w: %s", display.Text(l.h.names.target), ErrLost, why)
}

// Context comes from the context given to Acquire and ends with it or with
// the lock's release; context.Cause then matches ErrLost. An Acquire of the
// same lock with it, or with one made from it, is refused with ErrReentrant,
// since its wait could never end. It does not watch the lock file: only
// Fence notices that the file was replaced.
func (l *Lock) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil {
		base := context.WithValue(l.ctx, heldKey{}, &held{by: l, outer: l.ctx})
		l.own, l.cancel = context.WithCancelCause(base)
		if l.released {
			l.cancel(l.lost("it was released"))
		}
	}
	return l.own
}

type heldKey struct{}

// held says in a context which lock it belongs to; outer leads to the holds
// around this one.
type held struct {
	by    *Lock
	outer context.Context
}

// over says whether the lock was released.
func (l *Lock) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released
}

// holds says whether ctx belongs to a hold of the lock file at path.
func holds(ctx context.Context, path string) bool {
	for {
		h, ok := ctx.Value(heldKey{}).(*held)
		if !ok {
			return false
		}
		if h.by.h.names.lock == path && !h.by.over() {
			return true
		}
		ctx = h.outer
	}
}

// Release lets go. It writes released_at into the record, frees the lock and
// ends Context. A second Release is an error that matches ErrLost and does
// nothing. The lock file stays.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return l.lost("it was released before")
	}
	l.released = true
	if l.cancel != nil {
		// Before the lock is free, so that what was started under it stops
		// before another holder starts.
		l.cancel(l.lost("it was released"))
	}
	if l.f.bare && l.h.names.record {
		l.f.adopt(&l.h.names, false)
	}
	if l.inherited {
		return l.releaseInherited()
	}
	if l.signed {
		l.signOff(l.f)
	}
	if err := l.f.unlock(); err != nil {
		return errors.Join(l.h.fail(err), l.f.close())
	}
	l.h.keep(l.f)
	return nil
}
