package lockfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
)

const (
	firstWait   = 100 * time.Microsecond
	blindFloor  = 10 * time.Millisecond  // the least wait that is ever reached without watching
	longestWait = 250 * time.Millisecond // then look again whatever happened
	// watchAfter is how many short waits for one lock come before it is watched. Most holds are over by
	// then; in a crowd of short ones a watch would wake everybody at every release; and a user has few
	// inotify instances. When the lock is the one that was found at first there is no sign of a crowd.
	watchAfter       = 4
	watchAfterAtOnce = 2
)

// waiter waits for one lock. It decides nothing but when to look again.
type waiter struct {
	l       *lock
	start   time.Time
	timeout time.Duration
	rng     *rand.Rand
	last    []byte // the lock as seen at the last wait
	same    int    // waits for that one lock so far
	changes int    // how often it was another
	spins   int
	watch   vfs.Watch
	blind   bool // no watch can be had
}

func newWaiter(l *lock, timeout time.Duration) *waiter {
	return &waiter{l: l, start: l.s.Clock.Now(), timeout: timeout}
}

func (w *waiter) close() {
	if w.watch != nil {
		_ = w.watch.Close() // nothing was written
	}
}

func (w *waiter) waited() time.Duration { return w.l.s.Clock.Now().Sub(w.start) }

// spin is called before another look at once, after others have changed something. It ends a race that
// this caller keeps losing, or a file system that says "taken" of a name that is not there.
func (w *waiter) spin(ctx context.Context) error {
	w.spins++
	const free = 8 // as many breakers, releasers and faster writers are no news
	if w.spins <= free {
		return ctx.Err()
	}
	waited := w.waited()
	if waited >= w.timeout {
		return fmt.Errorf("acquire lock %s: %w: it changed hands %d times in %s", displayPath(w.l.name), ErrHeld,
			w.spins, showAge(waited))
	}
	w.same++
	return w.l.s.Clock.Sleep(ctx, min(w.next(waited), w.timeout-waited))
}

// news says that r is another lock than this caller has waited for so far. Locks that change hands have
// living holders, so this one is judged when it is still there at the next look, a short wait from now: in a
// crowd a judgement costs more than the look. Not when the time is nearly up, since then there may be no next.
func (w *waiter) news(r *reading) bool {
	return w.last != nil && !bytes.Equal(w.last, r.data) && w.timeout-w.waited() > 2*longestWait
}

// wait returns when the lock r is worth another look. When the time is up or ctx is done it returns the
// *HeldError that says so.
func (w *waiter) wait(ctx context.Context, r *reading, claim error) error {
	waited := w.waited()
	left := w.timeout - waited
	if err := ctx.Err(); err != nil {
		return w.fail(r, waited, claim, err)
	}
	if left <= 0 {
		return w.fail(r, waited, claim, nil)
	}
	if !bytes.Equal(w.last, r.data) {
		w.last, w.same = r.data, 0
		w.changes++
	}
	d := min(w.next(waited), left)
	w.same++
	enough := watchAfter
	if w.changes == 1 {
		enough = watchAfterAtOnce
	}
	if w.watch == nil && !w.blind && w.same > enough {
		w.blind = true
		if fsys, ok := w.l.s.FS.(vfs.Watcher); ok {
			if watch, err := fsys.Watch(w.l.dir, w.l.base+".lock"); err == nil {
				w.watch, w.blind = watch, false
				return nil // it may have gone before the watch began
			}
		}
	}
	var err error
	if w.watch != nil && w.same > enough {
		err = w.watch.Wait(ctx, d, w.whose(r))
		if err != nil && ctx.Err() == nil { // a broken watch
			_ = w.watch.Close()
			w.watch, w.blind, err = nil, true, nil
		}
	} else {
		err = w.l.s.Clock.Sleep(ctx, d)
	}
	if err != nil {
		return w.fail(r, w.waited(), claim, err)
	}
	return nil
}

// fail makes the error of a wait that ended without the lock.
func (w *waiter) fail(r *reading, waited time.Duration, claim, cause error) error {
	e := w.l.held(r, waited, cause)
	if claim != nil {
		e.Claim = claim.Error()
		if cause == nil {
			e.cause = ErrBusy
		}
	}
	return e
}

// whose is the process whose death is worth waking for; 0 when its pid means nothing here.
func (w *waiter) whose(r *reading) int64 {
	if r.lock == nil || !r.alive {
		return 0
	}
	return r.lock.PID
}

// next is how long to wait now: under a millisecond at first, doubling while the lock stays the same,
// jittered so that a crowd spreads out. When the lock has changed hands it begins anew: who has waited
// longest must not look least often. It begins a little higher each time, since many changes mean many
// waiters. With a watch it grows to longestWait. Without one it stops at 10 ms, and then grows with the
// time waited already, so that a long wait costs little and a short one is not drawn out.
func (w *waiter) next(waited time.Duration) time.Duration {
	if w.rng == nil {
		var seed [8]byte
		_, _ = io.ReadFull(w.l.s.Rand, seed[:])                                                        // jitter needs no good seed
		w.rng = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:]), uint64(w.start.UnixNano()))) //nolint:gosec // only jitter
	}
	d := longestWait
	if w.same < 20 {
		d = min((firstWait+min(firstWait*time.Duration(w.changes)/2, 20*firstWait))<<w.same, longestWait)
	}
	if w.watch == nil {
		d = min(d, max(blindFloor, waited/8))
	}
	return d/2 + time.Duration(w.rng.Int64N(int64(d)))
}
