package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

// Landing is what to land: a tree, a manifest of artifacts that are stored already, or a reason why there is nothing.
type Landing struct {
	Tree     *register.Tree
	Manifest *register.Manifest
	Empty    string
	Note     string
	IDs      []grant.Range
	Keep     []int64 // leases
	// Base is the register's head that the work was based on; nil: the present one, which nobody else moves
	// while the grant lasts.
	Base *grant.Digest
	ID   string // the landing's nonce; empty: a fresh one
	// Tell, if there is one, is given what has landed while the same landing, given again, still finds it: whoever
	// dies before the answer is told does not land twice.
	Tell func(Landed) error
}

// Landed is a landing that is in the register.
type Landed struct {
	Result
	Receipt register.Receipt
}

// Land stores what is to land and moves the register's head to it, under the agent's grant. path names the
// session's file; empty: Find looks for it. A landing whose grant is not the live one is a *register.RefusedError,
// and kept; so is one of an agent who never had a grant.
func (c *Client) Land(ctx context.Context, container, path string, l Landing) (Landed, error) {
	x, head, err := c.Find(ctx, grant.OpLand, container, path)
	var none *grant.Refusal
	if err != nil && !errors.As(err, &none) {
		return Landed{}, err
	}
	if l.Manifest == nil && (l.Tree == nil || l.Tree.Len() == 0) && strings.TrimSpace(l.Empty) == "" {
		return Landed{}, Refuse(head, grant.OpLand, grant.CodeBadInput, "nothing was named to land, and no reason given why", "grant land --help", "shows what it takes")
	}
	cmd := grant.Land{
		Meta: grant.Meta{Container: container, Nonce: Nonce(l.ID), By: grant.Agent(c.Agent)}, Base: head.Page().Register.Head,
		Empty: l.Empty, IDs: l.IDs, Keep: l.Keep, Note: l.Note,
	}
	if l.Base != nil {
		cmd.Base = *l.Base
	}
	if x != nil {
		cmd.By, cmd.Session = grant.Agent(x.Agent), x.Proof()
	}
	var out Landed
	out.Receipt, err = register.Of(c.Store, container).LandBy(ctx, register.Landing{Command: cmd, Tree: l.Tree, Manifest: l.Manifest},
		func(ctx context.Context, cmd grant.Land, receipt func(grant.Revision, bool) register.Receipt) (grant.Land, grant.Revision, bool, error) {
			if none != nil {
				return cmd, grant.Revision{}, false, none
			}
			r, err := c.land(ctx, x, cmd, l, func(r Result) error {
				if l.Tell == nil {
					return nil
				}
				return l.Tell(Landed{Result: r, Receipt: receipt(r.Revision, r.Replayed)})
			})
			out.Result = r
			if r.nonce != "" {
				cmd.Nonce = r.nonce
			}
			return cmd, r.Revision, r.Replayed, err
		})
	return out, err
}

func (c *Client) land(ctx context.Context, x *local.Session, cmd grant.Land, l Landing, tell func(Result) error) (r Result, err error) {
	release, err := c.Store.Guard(ctx, x.Container, x.Agent)
	if err != nil {
		return Result{}, err
	}
	defer release()
	build := func(base grant.Digest) func(m grant.Meta) grant.Command {
		return func(m grant.Meta) grant.Command {
			again := cmd
			again.Meta, again.Base = m, base
			return again
		}
	}
	base := cmd.Base
	if l.Base == nil && l.ID == "" {
		// An attempt whose answer was lost had an earlier base: it is the same landing all the same.
		found, a, err := c.lostLanding(ctx, x, build)
		if err != nil {
			return Result{}, err
		}
		if found != nil {
			r := Result{Revision: *found, Replayed: true, nonce: a.Nonce}
			return r, errors.Join(tell(r), c.Store.Settle(a))
		}
	}
	if l.Base == nil && l.Empty == "" {
		// Another landing under this session may have come before ours. (An empty one names the tree that stands.)
		head, err := c.Store.Head(ctx, x.Container)
		if err != nil {
			return Result{}, err
		}
		if head.Page() != nil {
			base = head.Page().Register.Head
		}
	}
	if l.Base == nil && l.ID != "" {
		// Repeated with its id, it is on the base that it had.
		rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, l.ID, x.Base)
		if err != nil {
			return Result{}, err
		}
		if ok && rev.Page().Landing != nil {
			base = rev.Page().Landing.Base
		}
	}
	return c.guarded(ctx, x, grant.OpLand, l.ID, build(base), tell)
}

// lostLanding finds an unsettled landing of the same content that has reached the register.
func (c *Client) lostLanding(ctx context.Context, x *local.Session, build func(grant.Digest) func(grant.Meta) grant.Command) (*grant.Revision, *local.Attempt, error) {
	list, err := c.Store.Attempts(x)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range list {
		if a.Op != grant.OpLand {
			continue
		}
		rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, a.Nonce, a.Base)
		if err != nil {
			return nil, nil, err
		}
		if !ok || rev.Page().Landing == nil {
			continue
		}
		meta := grant.Meta{Container: x.Container, Nonce: a.Nonce, By: grant.Agent(x.Agent)}
		if grant.SameCommand(rev, build(rev.Page().Landing.Base)(meta)) == nil {
			return &rev, a, nil
		}
	}
	return nil, nil, nil // there is none: the caller goes on to land
}

// ReadBack reads all that the grant's last landing is made of, as whoever uses it later will, and gives the
// register's head that follows from it. What is missing or damaged is NOT_PUSHED.
func (c *Client) ReadBack(ctx context.Context, head grant.Revision) (grant.Digest, error) {
	p := head.Page()
	back, err := register.Of(c.Store, p.Container).ReadBack(ctx, head)
	if err == nil {
		return back, nil
	}
	for _, there := range []error{register.ErrMissing, register.ErrDamaged, register.ErrManifest, fs.ErrNotExist} {
		if errors.Is(err, there) {
			return "", errors.Join(Refuse(head, grant.OpRelease, grant.CodeNotPushed, "the landing cannot be read back: "+display.Text(err.Error()),
				"grant land "+p.Container+" FILE…", "lands it again, and makes it whole"), err)
		}
	}
	return "", fmt.Errorf("read back the landing: %w", err)
}
