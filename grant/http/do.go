package granthttp

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// Do gives a command to the service, which carries it out as local.Store.Do does, and keeps the user's witness of what
// came out. Before it asks, it checks that the service's page is not older than the witness, which only the client has:
// ErrRollback. A Request.Env that is set is not used.
func (s *Store) Do(ctx context.Context, r grant.Request) (rev grant.Revision, replayed bool, err error) {
	m := grant.MetaOf(r.Command)
	if err := grant.CheckName(m.Container); err != nil {
		return grant.Revision{}, false, err
	}
	if err := s.believe(ctx, m.Container); err != nil {
		return grant.Revision{}, false, err
	}
	data, err := Encode(r.Command)
	if err != nil {
		return grant.Revision{}, false, err
	}
	h := map[string]string{"Content-Type": "application/json", HeaderKey: m.Nonce}
	switch {
	case r.Anywhere:
	case r.Since == grant.Ref{}:
		h[HeaderSince] = SinceNew
	default:
		h[HeaderSince] = Place(r.Since.Epoch, r.Since.Rev)
	}
	answer, resp, err := s.read(ctx, Request{
		Method: "POST", Path: containerPath(m.Container, string(r.Command.Op())), Header: h, Body: bytes.NewReader(data),
	})
	if err != nil {
		return grant.Revision{}, false, lost(ctx, err)
	}
	rev, err = opened(m.Container, answer)
	if err != nil {
		return grant.Revision{}, false, fmt.Errorf("%w: %w", grant.ErrUnknown, err)
	}
	s.Remember(m.Container, rev)
	return rev, resp.Header[HeaderReplayed] == "true", nil
}

// believe holds the service's page against the user's witness.
func (s *Store) believe(ctx context.Context, container string) error {
	w, err := s.Witness(container)
	if err != nil || w == (grant.Witness{}) {
		return err
	}
	head, err := s.Head(ctx, container)
	if err == nil {
		err = grant.CheckWitness(head, w)
	}
	if err != nil {
		return fmt.Errorf("container %s: %w", display.Text(container), err)
	}
	return nil
}

// Restore is the operator's. To the command's witness it adds the user's own. kept is where, in the service's
// estate, bytes are that could not be read.
func (s *Store) Restore(ctx context.Context, cmd grant.Restore) (rev grant.Revision, kept string, err error) {
	own, err := s.Witness(cmd.Container)
	if err != nil {
		return grant.Revision{}, "", err
	}
	if own.Epoch > cmd.Witness.Epoch || own.Epoch == cmd.Witness.Epoch && own.Rev > cmd.Witness.Rev {
		cmd.Witness = own
	}
	data, err := Encode(cmd)
	if err != nil {
		return grant.Revision{}, "", err
	}
	answer, resp, err := s.read(ctx, Request{
		Method: "POST", Path: containerPath(cmd.Container, string(grant.OpRestore)), Body: bytes.NewReader(data),
		Header: map[string]string{"Content-Type": "application/json", HeaderKey: cmd.Nonce},
	})
	if err != nil {
		return grant.Revision{}, "", lost(ctx, err)
	}
	if rev, err = opened(cmd.Container, answer); err != nil {
		return grant.Revision{}, "", fmt.Errorf("%w: %w", grant.ErrUnknown, err)
	}
	s.Remember(cmd.Container, rev)
	return rev, resp.Header[HeaderKept], nil
}
