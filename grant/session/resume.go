package session

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Resume takes up the grant that the agent holds already, as after a crash: its session must be here, and a
// heartbeat must reach the store. Nil, and no error: there is nothing to take up. Whether another process works
// under that session is for occupy to tell, at local.Session.RunTarget; if it fails, nothing is changed.
func (c *Client) Resume(ctx context.Context, container string, occupy func(*local.Session, grant.Revision) error) (*local.Session, Result, error) {
	x, head, err := c.Find(ctx, grant.OpHeartbeat, container, "")
	if isRefusal(err) {
		return nil, Result{}, nil // no session of the agent's is kept here
	}
	if err != nil {
		return nil, Result{}, err
	}
	if h := head.Page().Holder; h == nil || h.Session != x.Secret.Hash() {
		return nil, Result{}, nil
	}
	if err := occupy(x, head); err != nil {
		return nil, Result{}, err
	}
	r, err := c.Heartbeat(ctx, x, "")
	switch {
	case err == nil:
		return x, r, nil
	case errors.Is(err, grant.CodePastCap):
		return x, Result{Revision: head}, nil // it lives, and cannot be extended
	case errors.Is(err, grant.CodeExpired), errors.Is(err, grant.CodeFenced), errors.Is(err, grant.CodeNotHolder):
		return nil, Result{}, nil // it has ended: an acquire says what comes now
	}
	return nil, Result{}, err
}
