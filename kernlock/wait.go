package kernlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// wait goes on where a first attempt has found the lock held; f is open and
// not locked. Only a waiter pays for what is made here.
func (h *Handle) wait(ctx context.Context, f *lockFile) (*Lock, error) {
	began := time.Now()
	if h.opts.Timeout > TryOnce {
		taken, err := h.spin(f)
		if err != nil {
			_ = f.close()
			return nil, h.fail(err)
		}
		if taken {
			if same, err := f.at(h.names.lock); err == nil && same {
				return h.enter(ctx, f), nil
			}
			_ = f.unlock() // it was replaced just now: the wait below goes to the new one
		}
	}
	first := f.sample(&h.names)
	bounded, cancel := context.WithDeadline(ctx, began.Add(h.opts.Timeout))
	defer cancel()
	for {
		var taken *lockFile
		err := errWaitEnded
		if h.opts.Timeout > TryOnce {
			taken, err = h.block(bounded, f)
		}
		if err == nil {
			f = taken
			same, aerr := f.at(h.names.lock)
			if aerr == nil && same {
				return h.enter(ctx, f), nil
			}
			// Somebody removed or replaced the file that was waited for.
			// The wait goes on at the one that the path names now.
			_ = f.close()
			if aerr != nil {
				return nil, h.fail(aerr)
			}
			if f, err = openLockFile(&h.names, &h.opts); err != nil {
				return nil, h.fail(err)
			}
			continue
		}
		if !errors.Is(err, errWaitEnded) {
			_ = f.close()
			return nil, h.fail(err)
		}
		defer h.keep(f)
		if ctx.Err() != nil {
			return nil, h.fail(ended(ctx))
		}
		return nil, h.timedOut(f, began, first)
	}
}

// errWaitEnded is a wait that its context ended before the lock came.
var errWaitEnded = errors.New("the wait ended")

// ended is why ctx ended: what it says, and the cause where there is another.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Pauses of a waiter that cannot block in the kernel. The first is short for
// holders that hold for microseconds; the last bounds both the cost of a
// waiter and how late it notices.
const (
	pollFirst = 200 * time.Microsecond
	pollLast  = 10 * time.Millisecond
)

// poll tries again and again until the lock is taken or ctx ends. It is the
// wait of systems and filesystems where a blocked one could not be ended or
// would not queue.
func (h *Handle) poll(ctx context.Context, f *lockFile) (*lockFile, error) {
	pause := pollFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		// Jitter, so that waiters who began together do not try together.
		timer.Reset(pause/2 + rand.N(pause)) //nolint:gosec // nobody gains by guessing when we try again
		select {
		case <-ctx.Done():
			// A last try: a lock that came free during the pause is no
			// timeout.
			if taken, err := f.try(h.opts.Shared); err != nil {
				return nil, err
			} else if taken {
				return f, nil
			}
			return nil, errWaitEnded
		case <-timer.C:
		}
		if taken, err := f.try(h.opts.Shared); err != nil {
			return nil, err
		} else if taken {
			return f, nil
		}
		pause = min(2*pause, pollLast)
	}
}
