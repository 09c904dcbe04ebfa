package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
)

// Store is where a Client works: a grant.Store that carries commands out with all that they need there, and
// keeps the user's sessions. *local.Store is one.
type Store interface {
	grant.Store
	grant.Clock

	// Do is grant.Do with the store's own Env.
	Do(ctx context.Context, r grant.Request) (rev grant.Revision, replayed bool, err error)
	// Restore is the operator's; kept is where bytes are that could not be read.
	Restore(ctx context.Context, cmd grant.Restore) (rev grant.Revision, kept string, err error)

	// Witness is the highest that the user has ever seen of a container.
	Witness(container string) (grant.Witness, error)

	// Guard keeps the agent's other commands away; what follows is of package local.
	Guard(ctx context.Context, container, agent string) (release func(), err error)
	NewSession(container, agent, nonce string, base grant.Ref) (*local.Session, error)
	OpenSession(path string) (*local.Session, error)
	Sessions(container string) ([]*local.Session, error)
	Granted(x *local.Session, number int64) error
	Forget(x *local.Session) error
	Prune(container string, begun int64)
	Attempt(x *local.Session, op grant.Op, nonce string, base grant.Ref) (*local.Attempt, error)
	Attempts(x *local.Session) ([]*local.Attempt, error)
	Settle(a *local.Attempt) error
}

var _ Store = (*local.Store)(nil)

// Client carries out one agent's commands, or one operator's.
type Client struct {
	Store Store
	Agent string
	// Operator is who clears and restores. Create is the operator's if there is one, else the agent's.
	Operator string
}

// Result is what a command came to.
type Result struct {
	Revision grant.Revision
	// Replayed: an earlier attempt of the same command had done it.
	Replayed bool
	// Earlier is set when another attempt of the same kind, whose answer was lost, is found to have succeeded
	// before this one.
	Earlier *grant.Revision

	nonce string // that it was tried with
}

// Nonce is id, or a fresh one.
func Nonce(id string) string {
	if id != "" {
		return id
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (c *Client) agent(container, id string) grant.Meta {
	return grant.Meta{Container: container, Nonce: Nonce(id), By: grant.Agent(c.Agent)}
}

func (c *Client) operator(container, id string) grant.Meta {
	return grant.Meta{Container: container, Nonce: Nonce(id), By: grant.Operator(c.Operator)}
}

// do carries out a command that needs no session. With an id of the caller's it may have been done before.
func (c *Client) do(ctx context.Context, cmd grant.Command, id string) (Result, error) {
	rev, replayed, err := c.Store.Do(ctx, grant.Request{Command: cmd, Anywhere: id != ""})
	return Result{Revision: rev, Replayed: replayed}, err
}

// Create makes a container. id may be empty, here and in what follows: with one, a repetition of the same
// command returns the first result.
func (c *Client) Create(ctx context.Context, container, id string, p grant.Params) (Result, error) {
	if err := grant.CheckParams(p); err != nil {
		return Result{}, err
	}
	meta := c.agent(container, id)
	if c.Operator != "" {
		meta = c.operator(container, id)
	}
	return c.do(ctx, grant.Create{Meta: meta, Params: p}, id)
}

// Petition joins the queue.
func (c *Client) Petition(ctx context.Context, container, id string) (Result, error) {
	return c.do(ctx, grant.Petition{Meta: c.agent(container, id)}, id)
}

// Withdraw leaves it.
func (c *Client) Withdraw(ctx context.Context, container, id string) (Result, error) {
	return c.do(ctx, grant.Withdraw{Meta: c.agent(container, id)}, id)
}

// Clear ends the grant of a silent holder. own are sessions that the operator works in: none may be the
// holder's.
func (c *Client) Clear(ctx context.Context, container, id, reason string, seen int64, own []grant.Digest) (Result, error) {
	return c.do(ctx, grant.Clear{Meta: c.operator(container, id), Reason: reason, Seen: seen, Own: own}, id)
}

// Restore begins a new epoch of a container whose pages were lost or rolled back. kept is where bytes are that
// could not be read.
func (c *Client) Restore(ctx context.Context, container, id, reason string) (r Result, kept string, err error) {
	r.Revision, kept, err = c.Store.Restore(ctx, grant.Restore{Meta: c.operator(container, id), Reason: reason})
	return r, kept, err
}

// Head is the container's last revision. One that is older than what the user has seen before is no more
// believed by who looks than by who writes: ErrRollback.
func (c *Client) Head(ctx context.Context, container string) (grant.Revision, error) {
	// The witness first: others may see more while a head is read.
	w, err := c.Store.Witness(container)
	if err != nil {
		return grant.Revision{}, err
	}
	head, err := c.Store.Head(ctx, container)
	if err != nil {
		return head, err
	}
	if err := grant.CheckWitness(head, w); err != nil {
		return grant.Revision{}, fmt.Errorf("container %s: %w", display.Text(container), err)
	}
	return head, nil
}

// TurnOf is the agent's turn on a head, by the store's clock.
func (c *Client) TurnOf(ctx context.Context, head grant.Revision) (grant.Turn, bool, error) {
	now, err := c.Store.Now(ctx)
	if err != nil {
		return grant.Turn{}, false, err
	}
	t, ok := grant.TurnOf(head.Page(), c.Agent, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
	return t, ok, nil
}

// Refuse is a refusal of this package's own, judged on a head: BAD_INPUT and NOT_HOLDER.
func Refuse(head grant.Revision, op grant.Op, code grant.Code, cause, next, hint string) *grant.Refusal {
	r := &grant.Refusal{Code: code, Op: op, Cause: cause, Next: next, Hint: hint}
	if p := head.Page(); p != nil {
		r.Container, r.Rev, r.State, r.Grant, r.Expiry = p.Container, p.Rev, p.State, p.Grant, p.Expiry
		if p.Holder != nil {
			h := *p.Holder
			r.Holder = &h
		}
	}
	return r
}

// isRefusal says that nothing was changed, and that this is known.
func isRefusal(err error) bool {
	var r *grant.Refusal
	return errors.As(err, &r)
}

// errLate is an acquire that got its grant, as is found too late: it has ended since.
func errLate(x *local.Session, head grant.Revision) *grant.Refusal {
	r := Refuse(head, grant.OpAcquire, grant.CodeFenced,
		fmt.Sprintf("an attempt whose answer was lost had got grant %d, which has ended since", x.Grant),
		"grant acquire "+head.Page().Container, "again: that attempt is settled now")
	r.Yours = x.Grant
	return r
}
