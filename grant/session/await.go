package session

import (
	"context"
	"errors"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Waiting is what a waiter can be told: its place, and who is in the way.
type Waiting struct {
	Head grant.Revision
	Turn grant.Turn
	Now  grant.Time
	// Petitioned: the waiter has just joined the queue.
	Petitioned bool
	// Refusal is why the acquire was not possible.
	Refusal *grant.Refusal
}

// lookAgain is how often a waiter looks without being woken: its turn may come by the clock, and a clock may
// be set.
const lookAgain = time.Second

// maxUnknown is how many lost answers in a row a waiter puts up with.
const maxUnknown = 5

// Await acquires, and waits for its turn where that is needed, for most at most: it joins the queue unless the
// agent is in it. With 0 it tries once. tell is called before each wait. When time is up or ctx ends, a petition
// that Await made is withdrawn; one that was there keeps its place. The error is then the context's, joined with
// the last refusal.
func (c *Client) Await(ctx context.Context, container string, most time.Duration, tell func(Waiting)) (*local.Session, Result, error) {
	patience, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	w := &waiter{Client: c, container: container, tell: tell, patience: patience}
	x, r, err := w.acquire(ctx)
	if err != nil && w.petitioned {
		err = errors.Join(err, w.withdraw(context.WithoutCancel(ctx)))
	}
	return x, r, err
}

type waiter struct {
	*Client
	container  string
	tell       func(Waiting)
	patience   context.Context // ends with the wait; what is under way is not torn by it
	petitioned bool            // by us
	last       *grant.Refusal
	unknown    int
}

func (w *waiter) acquire(ctx context.Context) (*local.Session, Result, error) {
	for {
		x, r, err := w.Acquire(ctx, w.container, "")
		if err == nil {
			return x, r, nil
		}
		joined := false
		if ctx.Err() == nil {
			joined, err = w.stay(ctx, err)
		}
		if err == nil {
			err = w.wait(ctx, joined)
		}
		switch {
		case err == nil && w.patience.Err() == nil:
		case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return nil, r, w.ended()
		default:
			return nil, r, err // what went wrong is itself, also when time is up
		}
	}
}

// ended is the end of a wait by its context.
func (w *waiter) ended() error {
	if w.last == nil {
		return w.patience.Err()
	}
	return errors.Join(w.patience.Err(), w.last)
}

// stay decides whether an error of acquire is one to wait behind, and joins the queue.
func (w *waiter) stay(ctx context.Context, err error) (joined bool, _ error) {
	var r *grant.Refusal
	switch code := grant.CodeOf(err); {
	case code == grant.CodeUnknown && w.unknown < maxUnknown:
		w.unknown++ // the next acquire finds what became of it
		return false, nil
	case code == grant.CodeLandingRuns:
		if errors.As(err, &r) {
			w.last = r
		}
	case (code == grant.CodeHeld || code == grant.CodeNotYourTurn) && errors.As(err, &r):
		if isOwn(r, w.Agent) {
			return false, err // it would wait for itself
		}
		w.last = r
	default:
		return false, err
	}
	w.unknown = 0
	if r != nil && r.Turn != nil && r.Turn.Petition != 0 {
		return false, w.touch(ctx)
	}
	_, err = w.Petition(ctx, w.container, "")
	switch {
	case err == nil:
		w.petitioned = true
		return true, nil
	case errors.Is(err, grant.CodeDuplicate), errors.Is(err, grant.ErrUnknown):
		return false, nil
	}
	return false, err
}

// touch lets a petition not go idle, long before it would.
func (w *waiter) touch(ctx context.Context) error {
	head, err := w.Head(ctx, w.container)
	if err != nil {
		return err
	}
	now, err := w.Store.Now(ctx)
	if err != nil {
		return err
	}
	p := head.Page()
	for _, q := range p.Queue {
		if q.Agent != w.Agent || now.Sub(q.Touched) < p.Params.PetitionIdle.Duration()/4 {
			continue
		}
		_, err := w.do(ctx, grant.Touch{Meta: w.agent(w.container, "")}, "")
		if errors.Is(err, grant.CodeGone) || errors.Is(err, grant.ErrUnknown) {
			err = nil
		}
		return err
	}
	return nil
}

// wait returns when something has changed, or the turn may have come.
func (w *waiter) wait(ctx context.Context, joined bool) error {
	for {
		head, err := w.Head(ctx, w.container)
		if err != nil {
			return err
		}
		now, err := w.Store.Now(ctx)
		if err != nil {
			return err
		}
		turn, queued := grant.TurnOf(head.Page(), w.Agent, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
		w.tell(Waiting{Head: head, Turn: turn, Now: now, Petitioned: joined, Refusal: w.last})
		joined = false
		if !queued || turn.Petition == 0 || turn.May(now) && head.Page().Running == nil {
			return w.pause(head, turn.May(now))
		}
		woken, err := w.changed(head)
		if woken || err != nil {
			return err
		}
		if again, err := w.Head(ctx, w.container); err != nil || again.Ref() != head.Ref() {
			return err
		}
	}
}

// pause keeps a waiter whose turn it is, and who was refused all the same, from asking without rest: a fenced
// command runs, or another was quicker.
func (w *waiter) pause(head grant.Revision, may bool) error {
	if !may || w.last == nil || w.last.Code != grant.CodeLandingRuns {
		return w.patience.Err()
	}
	_, err := w.changed(head)
	return err
}

// changed waits for another head, but not for long.
func (w *waiter) changed(head grant.Revision) (bool, error) {
	brief, cancel := context.WithTimeout(w.patience, lookAgain)
	defer cancel()
	var err error
	if s, ok := w.Store.(grant.Watcher); ok {
		err = s.Watch(brief, w.container, head.Ref())
	} else {
		<-brief.Done()
		err = brief.Err()
	}
	switch {
	case w.patience.Err() != nil:
		return false, w.patience.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return err == nil, err
}

// withdraw leaves the queue that Await joined.
func (w *waiter) withdraw(ctx context.Context) error {
	_, err := w.Withdraw(ctx, w.container, "")
	if errors.Is(err, grant.CodeGone) {
		return nil
	}
	return err
}
