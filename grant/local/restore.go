package local

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/grant"
)

// Restore is the operator's command for a container whose pages are lost, damaged or older than a witness: what
// cannot be read is set aside, and a new epoch begins above all that was seen. To the command's witness it adds
// the user's own, and what the container's folder itself shows to have been there.
//
// Where setting aside was all that it took, no epoch begins: the revision is then the head, and kept says where
// the bytes are. One that was done before, as its nonce shows, is found wherever it stands in the history.
func (s *Store) Restore(ctx context.Context, cmd grant.Restore) (rev grant.Revision, kept string, err error) {
	return s.RestoreIf(ctx, cmd, nil)
}

// RestoreIf is Restore where check, which may be nil, finds nothing wrong with the head. It is asked under the fence,
// before anything is set aside, unless this restore was done before; a head that cannot be read it is given as the
// zero Revision.
func (s *Store) RestoreIf(ctx context.Context, cmd grant.Restore, check func(grant.Revision) error) (rev grant.Revision, kept string, err error) {
	b, err := s.box(cmd.Container)
	if err != nil {
		return grant.Revision{}, "", err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return grant.Revision{}, "", err
	}
	// What is refused whatever is found must be so before anything is set aside.
	_, err = grant.Apply(grant.Revision{}, cmd, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
	if code := grant.CodeOf(err); code == grant.CodeReasonRequired || code == grant.CodeBadInput {
		return grant.Revision{}, "", err
	}
	own, err := s.Witness(cmd.Container)
	if err != nil {
		return grant.Revision{}, "", err
	}
	cmd.Witness = higher(cmd.Witness, own)
	err = b.there()
	if err == nil || cmd.Witness.Rev > 0 && errors.Is(err, grant.ErrLockMissing) {
		err = b.create()
	}
	if err != nil {
		return grant.Revision{}, "", err
	}
	f, err := s.Fence(ctx, cmd.Container)
	if err != nil {
		return grant.Revision{}, "", err
	}
	defer s.letGo(f)
	ctx = f.Context()
	if done, err := b.restoredBefore(ctx, cmd); err != nil || done.Page() != nil {
		return done, "", err
	}
	if check != nil {
		head, err := s.Head(ctx, cmd.Container)
		if ctx.Err() != nil {
			return grant.Revision{}, "", ctx.Err()
		}
		if err != nil {
			head = grant.Revision{}
		}
		if err := check(head); err != nil {
			return grant.Revision{}, "", err
		}
	}
	for {
		aside, err := s.SetAside(ctx, cmd.Container)
		if err != nil {
			return grant.Revision{}, kept, err
		}
		if aside == "" {
			break
		}
		if kept == "" {
			kept = aside
		}
	}
	left, err := s.Remains(ctx, cmd.Container)
	if err != nil {
		return grant.Revision{}, kept, err
	}
	whole, err := s.Head(ctx, cmd.Container)
	switch {
	case err == nil && kept != "" && grant.CheckWitness(whole, cmd.Witness) == nil:
		return whole, kept, nil
	case err != nil && !errors.Is(err, grant.ErrLockMissing):
		cmd.Witness = higher(cmd.Witness, b.shown(left))
	}
	if now, err = s.Now(ctx); err != nil {
		return grant.Revision{}, kept, err
	}
	rev, err = grant.Apply(left, cmd, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}, FenceHeld: true, Witness: cmd.Witness})
	if err != nil {
		return grant.Revision{}, kept, err
	}
	if err := s.Swap(ctx, left.Ref(), rev); err != nil {
		return grant.Revision{}, kept, err
	}
	s.Remember(cmd.Container, rev)
	return rev, kept, nil
}

// lastWhole is the last page that can be read; the zero Revision when there is none.
func (b *box) lastWhole(ctx context.Context) (grant.Revision, error) {
	places, err := b.list()
	if err != nil {
		return grant.Revision{}, err
	}
	for i := len(places) - 1; i >= 0; i-- {
		rev, err := b.load(ctx, places[i])
		var blocked *BlockError
		if !errors.As(err, &blocked) {
			return rev, err
		}
	}
	return grant.Revision{}, nil
}

// restoredBefore is the revision that the command made when it was given before; the zero one when it was not. Of
// the page's audit line the operator and the reason are compared. The witness is not: each attempt adds what is known
// by then. A restore for which setting aside was enough left no page, and is not found.
func (b *box) restoredBefore(ctx context.Context, cmd grant.Restore) (grant.Revision, error) {
	last, err := b.lastWhole(ctx)
	if err != nil || last.Page() == nil {
		return grant.Revision{}, err
	}
	done, ok, err := grant.FindNonceFrom(ctx, b.s, last, cmd.Nonce)
	switch {
	case grant.CodeOf(err) != "":
		return grant.Revision{}, nil //nolint:nilerr // the history is not whole: that is what a restore is for
	case err != nil || !ok:
		return grant.Revision{}, err
	}
	if p := done.Page(); p.Op != grant.OpRestore || p.Audit == nil || p.Audit.Operator != cmd.By.Name || p.Audit.Reason != cmd.Reason {
		if refusal := grant.SameCommand(done, cmd); refusal != nil {
			return grant.Revision{}, refusal
		}
	}
	return done, b.assure(ctx, done.Ref())
}

// shown is the witness that the folder of a damaged container is itself: a page is missing that must have been
// there, below the hint or between two others.
func (b *box) shown(left grant.Revision) grant.Witness {
	hint := b.readHint()
	w := grant.Witness{Epoch: hint.epoch, Rev: hint.rev}
	if page := left.Page(); page != nil && (page.Epoch > w.Epoch || page.Epoch == w.Epoch && page.Rev >= w.Rev) {
		w.Epoch, w.Rev = page.Epoch, page.Rev+1
	}
	return w
}

// higher is the higher of two witnesses in each.
func higher(a, b grant.Witness) grant.Witness {
	w := a
	if b.Epoch > a.Epoch || b.Epoch == a.Epoch && b.Rev > a.Rev {
		w.Epoch, w.Rev, w.Hash = b.Epoch, b.Rev, b.Hash
	}
	w.Grant, w.Next = max(a.Grant, b.Grant), max(a.Next, b.Next)
	if b.Register.Seq > a.Register.Seq {
		w.Register = b.Register
	}
	return w
}
