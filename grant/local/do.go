package local

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
)

// Do is grant.Do with all that it needs here: the store's clock; the fence, for commands that begin or end a
// grant; the other containers, for Acquire; and the witness, which is checked before and kept afterwards. A Request.Env that is set is used instead of
// all that.
//
// What comes out is durable, also when the command turns out to have been done before (replayed).
func (s *Store) Do(ctx context.Context, r grant.Request) (rev grant.Revision, replayed bool, err error) {
	meta := grant.MetaOf(r.Command)
	b, err := s.box(meta.Container)
	if err != nil {
		return grant.Revision{}, false, err
	}
	op := r.Command.Op()
	if op == grant.OpCreate {
		if err := b.create(); err != nil {
			return grant.Revision{}, false, err
		}
	}
	if op == grant.OpAcquire {
		seen, err := s.refusedAlready(ctx, b, r)
		if err != nil {
			return grant.Revision{}, false, err
		}
		nest, err := s.fenceOff(ctx, filepath.Join(s.root, nestingName), "the estate's containers")
		if err != nil {
			return grant.Revision{}, false, err
		}
		defer s.letGo(nest)
		// Of a crowd that came for one end of a grant, the first has it by now.
		moved := false
		if seen != (grant.Ref{}) {
			moved, err = b.exists(after(seen))
		}
		if err == nil && moved {
			_, err = s.refusedAlready(ctx, b, r)
		}
		if err != nil {
			return grant.Revision{}, false, err
		}
	}
	behind := fenced(ctx, b.fenceTarget())
	if changesGrant(op) && !behind {
		f, err := s.Fence(ctx, meta.Container)
		if err != nil {
			return grant.Revision{}, false, err
		}
		defer s.letGo(f)
		ctx, behind = f.Context(), true
	}
	var witness witnesses
	if r.Env == nil {
		r.Env = func(ctx context.Context, head grant.Revision) (env grant.Env, err error) {
			env, witness, err = s.env(ctx, b, r.Command, head, behind)
			return env, err
		}
	}
	rev, replayed, err = grant.Do(ctx, s, r)
	if err != nil {
		return grant.Revision{}, false, err
	}
	if replayed {
		// Who did it may have died before it was durable.
		if err := b.assure(ctx, rev.Ref()); err != nil {
			return grant.Revision{}, false, err
		}
	}
	s.rememberAfter(meta.Container, rev, witness)
	return rev, replayed, nil
}

// refusedAlready evaluates an acquire before the fence is taken for it: those who are refused, most of them while
// somebody holds, then do not stand in the way of the release. It tells the head that it looked at; the zero Ref:
// none.
func (s *Store) refusedAlready(ctx context.Context, b *box, r grant.Request) (grant.Ref, error) {
	if r.Env != nil || r.Check != nil || r.Anywhere || r.Since != (grant.Ref{}) {
		return grant.Ref{}, nil // it may have been done, or be stale, and that is told first
	}
	head, err := s.Head(ctx, b.name)
	if err != nil {
		return grant.Ref{}, nil //nolint:nilerr // grant.Do meets it again
	}
	now, err := s.Now(ctx)
	if err != nil || head.Page().State != grant.StateHeld || now >= head.Page().Expiry || head.Page().Nonce == grant.MetaOf(r.Command).Nonce {
		return head.Ref(), err
	}
	env, _, err := s.env(ctx, b, r.Command, head, true)
	if err == nil {
		_, err = grant.Apply(head, r.Command, env)
	}
	return head.Ref(), err
}

// assure makes a page that was found durable.
func (b *box) assure(ctx context.Context, at grant.Ref) error {
	_, p, err := b.find(ctx, at)
	if err != nil {
		return err
	}
	if err := b.s.syncFile(b.page(p)); err != nil {
		return fmt.Errorf("%w: %w", grant.ErrUnknown, err)
	}
	return b.settleDurably(p)
}

// env is what a command meets here that is evaluated on head, and the witness as it was read for that.
func (s *Store) env(ctx context.Context, b *box, cmd grant.Command, head grant.Revision, behind bool) (grant.Env, witnesses, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return grant.Env{}, witnesses{}, err
	}
	e := grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}, FenceHeld: behind}
	var read witnesses
	if s.state != "" {
		if read, err = s.witnesses(b.name); err != nil {
			return grant.Env{}, witnesses{}, err
		}
		if e.Witness = read.highest; b.ranAhead(ctx, head, read.highest) {
			e.Witness = grant.Witness{}
		}
	}
	if cmd.Op() == grant.OpAcquire {
		if e.Elsewhere, err = s.heldBy(ctx, grant.MetaOf(cmd).By.Name, b.name, now); err != nil {
			return grant.Env{}, witnesses{}, err
		}
	}
	return e, read, nil
}

// ranAhead tells whether a witness is only ahead of a head that was read before: another process of the user may have
// gone on since, and written what it saw. That is no rollback. The swap will conflict.
func (b *box) ranAhead(ctx context.Context, head grant.Revision, w grant.Witness) bool {
	if head.Page() == nil || grant.CheckWitness(head, w) == nil {
		return false
	}
	now, _, err := b.head(ctx)
	return err == nil && grant.CheckWitness(now, w) == nil
}

// heldBy lists the containers but one on which an agent holds a grant that has not expired. One that cannot
// be read is passed over: its own users are told, and nobody can begin a grant there.
func (s *Store) heldBy(ctx context.Context, agent, except string, now grant.Time) ([]string, error) {
	names, err := s.Containers(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the other containers: %w", err)
	}
	var held []string
	for _, name := range names {
		if name == except {
			continue
		}
		head, err := s.Head(ctx, name)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case grant.CodeOf(err) != "":
			continue
		default:
			return nil, err
		}
		p := head.Page()
		if p.State == grant.StateHeld && p.Holder.Agent == agent && now < p.Expiry {
			held = append(held, name)
		}
	}
	return held, nil
}
