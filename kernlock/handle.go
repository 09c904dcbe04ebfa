package kernlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/proc"
)

// Handle names one target for any number of holds. Its methods may be called
// from any number of goroutines; two holds at once exclude each other as two
// processes do.
type Handle struct {
	names names
	opts  Options
	enc   *encoder // nil when no record is written

	// idle is a description that no hold uses, kept to spare the next hold
	// the open. After the lock is taken the path is checked against it, so
	// an idle one that has gone stale is noticed.
	idle   atomic.Pointer[lockFile]
	closed atomic.Bool

	// asked is when this handle last asked whether someone queues.
	asked atomic.Int64
}

// Open makes target canonical, once, and checks the options. It neither
// makes nor opens the lock file. A target need not exist; its folder must.
// A folder as target is locked beside itself, at <folder>.lock.
func Open(target string, opts Options) (*Handle, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	n, err := resolve(target, opts.Exact)
	if err != nil {
		return nil, err
	}
	h := &Handle{names: n, opts: opts}
	if n.record && !opts.NoRecord && !opts.Shared {
		h.enc = newEncoder(&n, &opts, proc.Self())
	}
	return h, nil
}

// Target is the canonical path of what is guarded.
func (h *Handle) Target() string { return h.names.target }

// LockPath is the path of the lock file.
func (h *Handle) LockPath() string { return h.names.lock }

// LockID is the first 16 hex digits of the SHA-256 of Target.
func (h *Handle) LockID() string { return h.names.id }

// Close ends the handle: its next Acquire is refused with ErrClosed. Holds
// that are open stay valid.
func (h *Handle) Close() error {
	h.closed.Store(true)
	if f := h.idle.Swap(nil); f != nil {
		return f.close()
	}
	return nil
}

// Acquire takes the lock, waiting as long as the policy says. It returns a
// Lock or an error, never neither:
//
//   - *TimeoutError (ErrTimeout) when the wait ran out; one incident row was
//     appended;
//   - *HeldError (ErrHeld) under single_flight, which neither waits nor
//     appends;
//   - ErrReentrant at once when ctx comes from a hold of this lock;
//   - what ctx says when it ends first, without an incident;
//   - anything else by its own name.
func (h *Handle) Acquire(ctx context.Context) (*Lock, error) {
	if holds(ctx, h.names.lock) {
		return nil, fmt.Errorf("lock %s: %w", display.Text(h.names.target), ErrReentrant)
	}
	if ctx.Err() != nil {
		return nil, h.fail(ended(ctx))
	}
	waits := h.opts.Policy != SingleFlight && h.opts.Timeout > TryOnce
	f, taken, err := h.attempt(waits)
	if err != nil {
		return nil, h.fail(err)
	}
	if taken {
		return h.enter(ctx, f), nil
	}
	if h.opts.Policy == SingleFlight {
		d := h.duplicate(f)
		h.keep(f)
		return nil, &HeldError{Duplicate: *d}
	}
	return h.wait(ctx, f)
}

// TryAcquire takes the lock if it is free. Exactly one of its results is not
// nil: the lock, an account of the present holder, or an error. It never
// waits and never appends an incident, whatever the policy.
func (h *Handle) TryAcquire() (*Lock, *Duplicate, error) {
	f, taken, err := h.attempt(false)
	if err != nil {
		return nil, nil, h.fail(err)
	}
	if taken {
		return h.enter(context.Background(), f), nil, nil
	}
	d := h.duplicate(f)
	h.keep(f)
	return nil, d, nil
}

func (h *Handle) fail(err error) error {
	return fmt.Errorf("lock %s: %w", display.Text(h.names.target), err)
}

// attempt tries the lock once. The file comes back in either case, open;
// taken says whether it is locked. A polite attempt does not overtake those
// who queue.
func (h *Handle) attempt(polite bool) (f *lockFile, taken bool, err error) {
	if h.closed.Load() {
		return nil, false, ErrClosed
	}
	f = h.idle.Swap(nil)
	for {
		if f == nil {
			if f, err = openLockFile(&h.names, &h.opts); err != nil {
				return nil, false, err
			}
		}
		if polite && h.someoneQueues(f) {
			return f, false, nil
		}
		if taken, err = f.try(h.opts.Shared); err != nil || !taken {
			break
		}
		// The path must still name what is now locked: otherwise it was
		// removed or replaced between the open and the lock, and a newcomer
		// may hold the other file.
		var same bool
		if same, err = f.at(h.names.lock); err != nil || same {
			break
		}
		_ = f.close()
		f = nil
	}
	if err != nil {
		_ = f.close()
		return nil, false, err
	}
	return f, taken, nil
}

// queueInterval bounds what politeness costs a handle in a tight loop.
const queueInterval = 100 * time.Microsecond

// someoneQueues asks whether others wait their turn, at most once in each
// queueInterval.
func (h *Handle) someoneQueues(f *lockFile) bool {
	if !f.queueable {
		return false
	}
	now := sinceStart()
	if last := h.asked.Load(); last != 0 && now-last < int64(queueInterval) {
		return false
	}
	h.asked.Store(now)
	return f.queued()
}

var start = time.Now()

// sinceStart is the monotonic clock in nanoseconds, never 0.
func sinceStart() int64 { return int64(time.Since(start)) + 1 }

// enter makes the Lock of a file that was just locked.
func (h *Handle) enter(ctx context.Context, f *lockFile) *Lock {
	l := &Lock{h: h, f: f, ctx: ctx}
	if h.enc != nil {
		l.sign()
	}
	return l
}

// keep stores an unlocked description for the next hold, or closes it.
func (h *Handle) keep(f *lockFile) {
	if h.closed.Load() || !h.idle.CompareAndSwap(nil, f) {
		_ = f.close()
		return
	}
	if h.closed.Load() { // Close may have looked just before the swap
		if f := h.idle.Swap(nil); f != nil {
			_ = f.close()
		}
	}
}

// Acquire is Open and Handle.Acquire for one hold.
func Acquire(ctx context.Context, target string, opts Options) (*Lock, error) {
	h, err := Open(target, opts)
	if err != nil {
		return nil, err
	}
	defer h.closeOnce()
	return h.Acquire(ctx)
}

// TryAcquire is Open and Handle.TryAcquire for one hold.
func TryAcquire(target string, opts Options) (*Lock, *Duplicate, error) {
	h, err := Open(target, opts)
	if err != nil {
		return nil, nil, err
	}
	defer h.closeOnce()
	return h.TryAcquire()
}

// closeOnce is the Close of a one-shot handle: what it would keep is closed
// instead.
func (h *Handle) closeOnce() { _ = h.Close() }
