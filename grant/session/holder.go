package session

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Heartbeat extends the session's grant. It leaves nothing to be settled: one too many does no harm.
func (c *Client) Heartbeat(ctx context.Context, x *local.Session, id string) (Result, error) {
	meta := grant.Meta{Container: x.Container, Nonce: Nonce(id), By: grant.Agent(x.Agent)}
	since := grant.Ref{}
	if id != "" {
		since = x.Base
	}
	rev, replayed, err := c.Store.Do(ctx, grant.Request{Command: grant.Heartbeat{Meta: meta, Session: x.Proof()}, Since: since})
	return Result{Revision: rev, Replayed: replayed}, c.explain(ctx, err)
}

// explain adds to a refusal how the grant ended that the command came with, when that is further back than the
// page remembers.
func (c *Client) explain(ctx context.Context, err error) error {
	var r *grant.Refusal
	if !errors.As(err, &r) || r.Ended != nil || r.Yours == 0 || r.Yours >= r.Grant {
		return err
	}
	if end, ferr := grant.FindEnd(ctx, c.Store, r.Container, r.Yours); ferr == nil {
		r.Ended = end
	}
	return err
}

// LeaseIDs gives the grant a range of identifiers: the last lease of the result's page.
func (c *Client) LeaseIDs(ctx context.Context, x *local.Session, id string, count, block int64, worker string) (Result, error) {
	return c.holder(ctx, x, grant.OpIDs, id, func(m grant.Meta) grant.Command {
		return grant.LeaseIDs{Meta: m, Session: x.Proof(), Count: count, Block: block, Worker: worker}
	})
}

// AssignBlock gives work to somebody: the last block of the result's page.
func (c *Client) AssignBlock(ctx context.Context, x *local.Session, id, worker, note string) (Result, error) {
	return c.holder(ctx, x, grant.OpBlock, id, func(m grant.Meta) grant.Command {
		return grant.AssignBlock{Meta: m, Session: x.Proof(), Worker: worker, Note: note}
	})
}

// CloseBlock ends a block.
func (c *Client) CloseBlock(ctx context.Context, x *local.Session, id string, block int64, reason string) (Result, error) {
	return c.holder(ctx, x, grant.OpCloseBlock, id, func(m grant.Meta) grant.Command {
		return grant.CloseBlock{Meta: m, Session: x.Proof(), Block: block, Reason: reason}
	})
}

// Resolve says what became of a fenced command whose end nobody saw.
func (c *Client) Resolve(ctx context.Context, x *local.Session, id, of string, done bool, reason string) (Result, error) {
	return c.holder(ctx, x, grant.OpResolve, id, func(m grant.Meta) grant.Command {
		return grant.Resolve{Meta: m, Session: x.Proof(), ID: of, Done: done, Reason: reason}
	})
}

// Release reads back what the grant has landed, and ends the grant. The session goes with it.
func (c *Client) Release(ctx context.Context, x *local.Session, id string) (Result, error) {
	head, err := c.Store.Head(ctx, x.Container)
	if err != nil {
		return Result{}, err
	}
	back := head.Page().Register.Head
	if l := head.Page().Landing; l != nil {
		if back, err = c.ReadBack(ctx, head); err != nil {
			return Result{}, err
		}
	}
	r, err := c.holder(ctx, x, grant.OpRelease, id, func(m grant.Meta) grant.Command {
		return grant.Release{Meta: m, Session: x.Proof(), ReadBack: back}
	})
	if err != nil {
		return r, err
	}
	return r, c.Store.Forget(x)
}

// Released finds a release that was done with an id: its session, which could tell, went with it.
func (c *Client) Released(ctx context.Context, container, id string) (Result, bool, error) {
	rev, ok, err := grant.FindNonce(ctx, c.Store, container, id, grant.Ref{})
	if p := rev.Page(); err != nil || !ok || p.Op != grant.OpRelease || p.By != grant.Agent(c.Agent) {
		return Result{}, false, err
	}
	return Result{Revision: rev, Replayed: true}, true, nil
}

// holder carries out a command that must not be done twice, while no other of the agent's is under way.
func (c *Client) holder(ctx context.Context, x *local.Session, op grant.Op, id string, build func(grant.Meta) grant.Command) (r Result, err error) {
	release, err := c.Store.Guard(ctx, x.Container, x.Agent)
	if err != nil {
		return Result{}, err
	}
	defer release()
	return c.guarded(ctx, x, op, id, build, func(Result) error { return nil })
}

// guarded carries it out behind the guard. Its nonce is on disk before the first try; an earlier attempt of its
// kind that nobody has settled is looked for first: whoever made it is dead. tell is given the result before the
// attempt is settled.
func (c *Client) guarded(ctx context.Context, x *local.Session, op grant.Op, id string, build func(grant.Meta) grant.Command, tell func(Result) error) (Result, error) {
	meta := grant.Meta{Container: x.Container, By: grant.Agent(x.Agent)}
	head, err := c.Store.Head(ctx, x.Container)
	if err != nil {
		return Result{}, err
	}
	var earlier *grant.Revision
	if id == "" {
		found, same, err := c.unsettled(ctx, x, op, head, meta, build)
		if err != nil {
			return Result{}, err
		}
		if same {
			r := Result{Revision: *found, Replayed: true}
			return r, tell(r)
		}
		earlier = found
	}
	a, err := c.Store.Attempt(x, op, id, head.Ref())
	if err != nil {
		return Result{}, err
	}
	since := a.Base
	if id != "" {
		since = x.Base // its attempt may have been settled long ago
	}
	meta.Nonce = a.Nonce
	rev, replayed, err := c.Store.Do(ctx, grant.Request{Command: build(meta), Since: since})
	r := Result{Revision: rev, Replayed: replayed, Earlier: earlier, nonce: meta.Nonce}
	if err == nil {
		err = errors.Join(tell(r), c.Store.Settle(a))
	} else if isRefusal(err) {
		err = errors.Join(c.explain(ctx, err), c.Store.Settle(a))
	}
	return r, err
}

// unsettled looks for what became of earlier attempts. same: one of them was this very command.
func (c *Client) unsettled(ctx context.Context, x *local.Session, op grant.Op, head grant.Revision, meta grant.Meta, build func(grant.Meta) grant.Command) (found *grant.Revision, same bool, err error) {
	list, err := c.Store.Attempts(x)
	if err != nil {
		return nil, false, err
	}
	for _, a := range list {
		if a.Op != op {
			continue
		}
		rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, a.Nonce, a.Base)
		if err != nil {
			return nil, false, err
		}
		if !ok && head.Ref() == a.Base {
			continue // it may still come, unless what is about to be done comes first
		}
		if err := c.Store.Settle(a); err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		found = &rev
		meta.Nonce = a.Nonce
		if op == grant.OpRelease || grant.SameCommand(rev, build(meta)) == nil {
			return found, true, nil // a session has one release, whatever has landed since
		}
	}
	return found, false, nil
}
