package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/internal/sweep"
)

// Acquire takes the lock of the guarded file at path, which need not exist; its folder must. The lock
// is path + ".lock", beside the file that path leads to when it is a symbolic link.
//
// A held lock is waited for. When Options.Timeout has passed or ctx is done, the error is a *HeldError
// that names the holder. A lock whose holder is provably dead is broken at once. A lock that this
// process left behind (a hold that was lost to a forced unlock whose lock came back, or whose release
// failed) is released on sight.
//
// The caller must call Release. The lock file has the guarded file's read and write bits and group,
// where this process may give them, so that those who share the file share its lock; 0600 without a
// file.
func Acquire(ctx context.Context, path string, o Options) (*Hold, error) {
	l, err := find(path, o)
	if err != nil {
		return nil, err
	}
	if err := l.fits(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire lock %s: %w", displayPath(l.name), err)
	}
	if reentered(ctx, l) {
		return nil, fmt.Errorf("lock %s: %w", displayPath(l.name), ErrReentry)
	}
	w := newWaiter(l, o.timeout())
	defer w.close()
	h, err := l.acquire(ctx, w)
	if err != nil {
		return nil, err
	}
	h.parent = ctx
	return h, nil
}

func (l *lock) acquire(ctx context.Context, w *waiter) (*Hold, error) {
	if err := sweep.Dir(l.s, l.path); err != nil {
		return nil, err
	}
	p := &publisher{lock: l}
	var err error
	if p.token, err = l.s.Hex24(); err != nil {
		return nil, err
	}
	defer p.discard()
	for {
		r, err := l.look()
		if errors.Is(err, fs.ErrNotExist) {
			// Only now: what is published while a lock stands in the way is work for every waiter's
			// sweep.
			h, err := p.publish()
			if h != nil || err != nil {
				return h, err
			}
			r, err = l.look() // taken between the look and the publication
			if errors.Is(err, fs.ErrNotExist) {
				if err := w.spin(ctx); err != nil {
					return nil, err
				}
				continue
			}
			if err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, err
		}

		var claim error
		switch again, err := l.clear(r, p.token, w.news(r)); {
		case errors.Is(err, ErrBusy):
			claim = err
		case err != nil:
			return nil, err
		case again:
			if err := w.spin(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if p.owns(r) {
			return p.hold(), nil
		}
		if err := w.wait(ctx, r, claim); err != nil {
			return nil, err
		}
	}
}

// clear does what may be done automatically about a lock in the way. It reports whether the name is
// worth looking at again at once. News is not judged.
func (l *lock) clear(r *reading, token string, news bool) (again bool, err error) {
	switch {
	case r.kernel:
		return false, l.kernelLock()
	case r.lock == nil || r.lock.Token == token:
		return false, nil
	case l.s.Process.TakeEnded(r.lock.Token):
		return true, l.recover(r)
	case news || !l.dead(r):
		return false, nil
	}
	outcome, err := l.breakLock(r, false)
	return outcome != nothing, err
}
