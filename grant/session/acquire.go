package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
)

// Acquire begins a grant, if it is the agent's turn. The session that it returns is on disk since before the
// first attempt. An attempt of a process that died, or whose answer was lost, is finished first: then the
// result is that one's, and Replayed.
func (c *Client) Acquire(ctx context.Context, container, id string) (x *local.Session, r Result, err error) {
	release, err := c.Store.Guard(ctx, container, c.Agent)
	if err != nil {
		return nil, r, err
	}
	defer release()
	all, err := c.Store.Sessions(container)
	if err != nil {
		return nil, r, err
	}
	for _, old := range all {
		if old.Agent != c.Agent || old.Nonce != id && (old.Grant != 0 || id != "") {
			continue
		}
		r, err := c.acquire(ctx, old)
		if err == nil || !isRefusal(err) || old.Nonce == id {
			return old, r, err
		}
		// It never got a grant, and never will: go on with an attempt of our own.
	}
	head, err := c.Head(ctx, container)
	if err != nil {
		return nil, r, err
	}
	if id == "" {
		// Asked in vain again and again, as waiters do, it need not write a session each time.
		if err := c.hopeless(ctx, head); err != nil {
			return nil, r, err
		}
	}
	x, err = c.Store.NewSession(container, c.Agent, id, head.Ref())
	if errors.Is(err, fs.ErrExist) {
		return nil, r, Refuse(head, grant.OpAcquire, grant.CodeOpIDReused, fmt.Sprintf("the id %s is another session's", id), "", "leave the id out")
	}
	if err != nil {
		return nil, r, err
	}
	r, err = c.acquire(ctx, x)
	return x, r, err
}

// hopeless refuses what the head alone refuses.
func (c *Client) hopeless(ctx context.Context, head grant.Revision) error {
	now, err := c.Store.Now(ctx)
	if err != nil {
		return err
	}
	_, err = grant.Apply(head, grant.Acquire{Meta: c.agent(head.Page().Container, ""), Session: (grant.Secret{}).Hash()},
		grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}, FenceHeld: true})
	if code := grant.CodeOf(err); code == grant.CodeHeld || code == grant.CodeNotYourTurn {
		return c.ownGrant(err)
	}
	return nil
}

// ownGrant gives a refusal that is due to the agent itself the way out that it has.
func (c *Client) ownGrant(err error) error {
	var r *grant.Refusal
	if errors.As(err, &r) && isOwn(r, c.Agent) {
		r.Next, r.Hint = "grant release "+r.Container, "the agent holds it itself: 'stile grant run' takes it up, and after a landing it can be released"
	}
	return err
}

func isOwn(r *grant.Refusal, agent string) bool {
	return r.Code == grant.CodeHeld && r.Holder != nil && r.Holder.Agent == agent
}

// acquire tries a session's acquire, for the first time or again. A session that was refused goes.
func (c *Client) acquire(ctx context.Context, x *local.Session) (Result, error) {
	meta := grant.Meta{Container: x.Container, Nonce: x.Nonce, By: grant.Agent(x.Agent)}
	rev, replayed, err := c.Store.Do(ctx, grant.Request{Command: grant.Acquire{Meta: meta, Session: x.Secret.Hash()}, Since: x.Base})
	if err != nil {
		if isRefusal(err) && x.Grant == 0 {
			err = errors.Join(c.ownGrant(err), c.Store.Forget(x))
		}
		return Result{}, err
	}
	if x.Grant == 0 {
		if err := c.Store.Granted(x, rev.Page().Grant); err != nil {
			return Result{}, err
		}
	}
	if !replayed {
		c.Store.Prune(x.Container, x.Grant)
		return Result{Revision: rev}, nil
	}
	head, err := c.Store.Head(ctx, x.Container)
	if err != nil {
		return Result{}, err
	}
	if h := head.Page().Holder; h == nil || h.Session != x.Secret.Hash() {
		return Result{}, errLate(x, head)
	}
	return Result{Revision: head, Replayed: true}, nil
}

// Find gives the agent's session on a container: the one in the file that is named, else the holder's, else
// the one with the last grant: a grant that has ended is refused by name, and a landing under it kept. Without
// any it is NOT_HOLDER.
func (c *Client) Find(ctx context.Context, op grant.Op, container, path string) (*local.Session, grant.Revision, error) {
	head, err := c.Head(ctx, container)
	if err != nil {
		return nil, head, err
	}
	if path != "" {
		x, err := c.named(head, op, path)
		if err == nil {
			err = c.learn(ctx, x)
		}
		return x, head, err
	}
	all, err := c.Store.Sessions(container)
	if err != nil {
		return nil, head, err
	}
	var found *local.Session
	for _, x := range all {
		if x.Agent != c.Agent {
			continue
		}
		if h := head.Page().Holder; h != nil && h.Session == x.Secret.Hash() {
			found = x
			break
		}
		if found == nil || x.Grant > found.Grant {
			found = x
		}
	}
	if found != nil {
		if err := c.learn(ctx, found); err != nil {
			return nil, head, err
		}
	}
	if found == nil || found.Grant == 0 {
		return nil, head, Refuse(head, op, grant.CodeNotHolder, c.Agent+" has no grant here: no session of it is kept",
			"grant acquire "+container, "asks for one, in turn")
	}
	return found, head, nil
}

// named opens the session in a file, which must be for this work.
func (c *Client) named(head grant.Revision, op grant.Op, path string) (*local.Session, error) {
	p := head.Page()
	x, err := c.Store.OpenSession(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Refuse(head, op, grant.CodeNotHolder, "there is no session file "+display.Text(path)+": it goes with its grant's release",
			"grant acquire "+p.Container, "asks for a grant, in turn")
	}
	if err != nil {
		return nil, err
	}
	switch {
	case x.Container != p.Container:
		return nil, Refuse(head, op, grant.CodeNotHolder, "the session is of the container "+x.Container, "grant status "+p.Container, "shows who holds this one")
	case c.Agent != "" && x.Agent != c.Agent:
		return nil, Refuse(head, op, grant.CodeNotHolder, fmt.Sprintf("the session is of %s, not of %s", x.Agent, c.Agent), "grant status "+p.Container, "shows who holds it")
	}
	return x, nil
}

// learn looks for the grant of a session that does not know it: whoever acquired may have died with the answer.
func (c *Client) learn(ctx context.Context, x *local.Session) error {
	if x.Grant != 0 {
		return nil
	}
	rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, x.Nonce, x.Base)
	if err != nil || !ok || rev.Page().Op != grant.OpAcquire {
		return err
	}
	return c.Store.Granted(x, rev.Page().Grant)
}
