package dispatch

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

// Repaired is what Repair did to a board.
type Repaired struct {
	Added []string // ids of dispatches that were not on it
	Moved []string // ids of closed dispatches whose items were not under "done"
}

// Repair puts what is missing on an agent's board, and what is closed under "done", under the lock of the
// agent's log. Items without a dispatch stay, and so does every other byte. A log or board that is not what
// it should be is an error, and nothing is changed.
func (e *Estate) Repair(ctx context.Context, agent string) (done Repaired, err error) {
	a, err := e.agent(agent, false)
	if err != nil {
		return Repaired{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := a.openBoard()
	if err != nil {
		return Repaired{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.look(); err != nil {
		return Repaired{}, err
	}
	o := a.lockOptions()
	wait := o.Timeout
	if wait == 0 {
		wait = lockfile.DefaultTimeout
	}
	// As in every change of the log: a lost lock is tried again until the wait of one lock has passed.
	clock := a.seams.Clock
	for deadline := clock.Now().Add(wait); ; {
		done, err = a.mendBoard(ctx, b, o)
		if !errors.Is(err, lockfile.ErrLost) {
			return done, err
		}
		if o.Timeout = deadline.Sub(clock.Now()); o.Timeout <= 0 {
			return Repaired{}, err
		}
	}
}

func (a *agent) mendBoard(ctx context.Context, b *board, o lockfile.Options) (done Repaired, err error) {
	hold, err := lockfile.Acquire(ctx, a.log, o)
	if err != nil {
		return Repaired{}, err
	}
	defer func() {
		if rerr := hold.Release(); !errors.Is(rerr, lockfile.ErrLost) { // what it did before stands
			err = errors.Join(err, rerr)
		}
	}()
	err = b.change(hold.Fence, func() (err error) {
		done, err = a.mend(b)
		return err
	})
	if err != nil {
		return Repaired{}, err
	}
	return done, nil
}

// mend changes b.text.
func (a *agent) mend(b *board) (done Repaired, err error) {
	if _, _, _, err := a.index(); err != nil {
		return Repaired{}, a.placed(err)
	}
	items, err := b.items()
	if err != nil {
		return Repaired{}, err
	}
	at := map[string]int{}
	for i, it := range items {
		if _, there := at[it.Dispatch]; !there {
			at[it.Dispatch] = i
		}
	}
	var missing []Record
	behind := map[int]bool{}
	err = a.records(func(raw []byte) error {
		r, _ := parseRecord(raw)
		i, there := at[r.ID]
		switch {
		case !there:
			// Of the texts only what its item needs.
			missing = append(missing, Record{ID: r.ID, Task: title(r.Task), Worker: r.Worker, Status: r.Status})
			done.Added = append(done.Added, r.ID)
		case !r.open() && items[i].Column != Closed:
			behind[i] = true
			done.Moved = append(done.Moved, r.ID)
		}
		return nil
	})
	if err != nil {
		return Repaired{}, err
	}
	now := a.seams.Clock.Now()
	for i := len(items) - 1; i >= 0; i-- { // from the end, so that the places of the others stay
		if behind[i] {
			if err := b.move(items[i], Closed, now); err != nil {
				return Repaired{}, err
			}
		}
	}
	return done, b.addItems(missing, now)
}

// nap is a pause between two looks.
func nap(c seam.Clock) { _ = c.Sleep(context.Background(), napTime) }
