package kernlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// wait goes on where a first attempt has found the lock held; f is open and
// not locked. Only a waiter pays for what is made here.
func (h *Handle) wait(ctx context.Context, f *lockFile) (*Lock, error) {
	began := time.Now()
	first := f.sample(&h.names)
	bounded, cancel := context.WithDeadlineCause(ctx, began.Add(h.opts.Timeout), errWaitedOut)
	defer cancel()
	for {
		var err error
		if h.opts.Timeout > TryOnce {
			err = h.block(bounded, f)
		} else {
			err = errWaitedOut
		}
		if err == nil {
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
		switch {
		case ctx.Err() != nil:
			h.keep(f)
			return nil, h.fail(context.Cause(ctx))
		case errors.Is(err, errWaitedOut):
			terr := h.timedOut(f, began, first)
			h.keep(f)
			return nil, terr
		}
		_ = f.close()
		return nil, h.fail(err)
	}
}

// errWaitedOut is the cause of a wait that the handle's own timeout ended.
var errWaitedOut = errors.New("the wait ran out")

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
func (h *Handle) poll(ctx context.Context, f *lockFile) error {
	pause := pollFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		// Jitter, so that waiters who began together do not try together.
		timer.Reset(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			// A last try: a lock that came free during the pause is no
			// timeout.
			if taken, err := f.try(h.opts.Shared); taken || err != nil {
				return err
			}
			return context.Cause(ctx)
		case <-timer.C:
		}
		taken, err := f.try(h.opts.Shared)
		if taken || err != nil {
			return err
		}
		pause = min(2*pause, pollLast)
	}
}
