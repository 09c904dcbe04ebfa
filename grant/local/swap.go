package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/sweep"
)

// Swap publishes next under the name that follows base. Success is durable. A commit that begins or ends a
// grant is made under the container's kernel lock, which Swap takes unless ctx comes from a Fence: then it
// may be refused with grant.CodeLandingRuns. Publishing the very same page again is a success as well.
//
// The linearization point is the creation of the name.
func (s *Store) Swap(ctx context.Context, base grant.Ref, next grant.Revision) error {
	page := next.Page()
	if page == nil || page.PrevHash != base.Hash ||
		page.Epoch == base.Epoch && page.Rev != base.Rev+1 || page.Epoch < base.Epoch || page.Rev < 1 {
		return fmt.Errorf("swap: %w: the page does not follow its base", grant.CodeBadInput)
	}
	b, err := s.box(page.Container)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if base == (grant.Ref{}) {
		err = b.create()
	} else {
		err = b.there()
	}
	if err != nil {
		return err
	}
	if changesGrant(page.Op) && !fenced(ctx, b.fenceTarget()) {
		f, err := s.Fence(ctx, page.Container)
		if err != nil {
			return err
		}
		defer s.letGo(f)
	}
	if err := b.sweep(); err != nil {
		return err
	}
	if err := b.vouch(); err != nil {
		return err
	}
	if err := b.checkBase(ctx, base, next); err != nil {
		return err
	}
	at := after(base)
	if err := b.publish(ctx, base, at, next); err != nil {
		if errors.Is(err, grant.ErrConflict) {
			return err
		}
		return fmt.Errorf("publish revision %d of %s: %w", page.Rev, display.Text(b.name), err)
	}
	b.saw(at)
	b.writeHint(at, page.Op == grant.OpRestore)
	return nil
}

// changesGrant tells whether an operation begins or ends a grant, or the epoch.
func changesGrant(op grant.Op) bool {
	return slices.Contains([]grant.Op{grant.OpAcquire, grant.OpRelease, grant.OpClear, grant.OpRestore}, op)
}

// checkBase checks that the base is there as the caller knows it. A page that was replaced or taken away is
// not built on; whether another has been built on it, the publication tells.
func (b *box) checkBase(ctx context.Context, base grant.Ref, next grant.Revision) error {
	if base == (grant.Ref{}) {
		return b.checkEmpty(next)
	}
	rev, _, err := b.find(ctx, base)
	if errors.Is(err, grant.ErrLockMissing) {
		places, lerr := b.list()
		switch {
		case lerr != nil:
			return lerr
		case len(places) == 0:
			return b.missing()
		}
		return b.gone(place{base.Epoch, base.Rev})
	}
	if err != nil {
		return err
	}
	if rev.Hash() != base.Hash {
		return fmt.Errorf("container %s: %w: revision %d is not the one that was read; next: stile grant history %s",
			display.Text(b.name), grant.ErrRollback, base.Rev, display.Text(b.name))
	}
	return nil
}

// checkEmpty checks that there is nothing that a page without a base would pass over.
func (b *box) checkEmpty(next grant.Revision) error {
	if there, err := b.exists(first); there || err != nil {
		return err // the publication tells whether it is ours
	}
	places, err := b.list()
	if err != nil {
		return err
	}
	if len(places) > 0 {
		return grant.ErrConflict
	}
	_, err = b.s.seams.FS.Lstat(b.path(hintName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at %s: %w", display.Text(b.path(hintName)), err)
	case next.Page().Op == grant.OpRestore:
		return nil
	}
	return fmt.Errorf("container %s: %w: it had pages, and they are gone; next: stile grant restore %s --reason WHY",
		display.Text(b.name), grant.ErrLockMissing, display.Text(b.name))
}

// publish makes the page appear at its place, if the place is free.
func (b *box) publish(ctx context.Context, base grant.Ref, at place, next grant.Revision) error {
	data := next.Bytes()
	objects := b.vouchObjects
	if next.Page().Op == grant.OpHeartbeat {
		// It names nothing that is new, and a grant must not end for a folder that cannot be synced.
		objects = func() error { return nil }
	}
	// Nothing is written for a race that is lost already.
	if done, err := b.taken(at, data); done || err != nil {
		return err
	}
	if !b.s.recall(b.name).noLinks {
		done, err := b.publishByLink(at, data, objects)
		if done || err != nil {
			return err
		}
		b.s.remember(b.name, func(m *memory) { m.noLinks = true })
	}
	// Here the name comes first: what the page names has to be there before.
	if err := objects(); err != nil {
		return err
	}
	return b.publishInPlace(ctx, base, at, data)
}

// taken looks at the place. It says done when this very page lies there, and then that it is durable;
// grant.ErrConflict when something else does.
func (b *box) taken(at place, data []byte) (done bool, err error) {
	there, err := b.exists(at)
	if err != nil || !there {
		return false, err
	}
	return b.settle(at, data)
}

// settle says whose page lies at a place that is taken: a nonce is in every page, so equal bytes are the same
// attempt.
func (b *box) settle(at place, data []byte) (done bool, err error) {
	is, err := b.s.slurp(b.page(at), maxPage)
	switch {
	case errors.Is(err, errOdd):
		return false, b.block(at, err.Error(), nil)
	case err != nil:
		return false, err
	case !bytes.Equal(is, data):
		return false, grant.ErrConflict
	}
	return true, b.settleDurably(at)
}

// publishByLink links a synced file to the place: the page appears whole, and whoever is second is refused. Its bytes
// and the names of the objects that it may name go to the disk together, and both are there before the link.
// Neither done nor an error says that there are no hard links here.
func (b *box) publishByLink(at place, data []byte, objects func() error) (done bool, err error) {
	vouched := make(chan error, 1)
	if len(b.s.recall(b.name).placed) == 0 {
		vouched <- nil
	} else {
		go func() { vouched <- objects() }()
	}
	temp, err := b.s.pending(b.path(pendingName), 0o666, true, writing(data))
	oerr := <-vouched
	if err != nil {
		return false, errors.Join(err, oerr)
	}
	defer sweep.Remove(b.s.seams, temp)
	if oerr != nil {
		return false, oerr
	}
	err = b.s.seams.FS.Link(temp, b.page(at))
	switch {
	case err == nil:
		return true, b.settleDurably(at)
	case errors.Is(err, fs.ErrExist):
		// Perhaps by ourselves: a link that was interrupted when it had been made, and then repeated.
		return b.settle(at, data)
	}
	there, lerr := b.exists(at)
	switch {
	case lerr != nil:
		return false, fmt.Errorf("%w: %w", grant.ErrUnknown, errors.Join(err, lerr))
	case there:
		return b.settle(at, data)
	case lacksLinks(err):
		return false, nil
	}
	return false, err
}

// settleDurably syncs what makes the page at a place last. Until that has succeeded, nothing in this process
// says that the page is there.
func (b *box) settleDurably(at place) error {
	b.s.remember(b.name, func(m *memory) { m.dirty = append(m.dirty, at) })
	return b.vouch()
}

// vouch makes durable what this process has published and could not sync.
func (b *box) vouch() error {
	dirty := b.s.recall(b.name).dirty
	if len(dirty) == 0 {
		return nil
	}
	var err error
	if b.s.recall(b.name).noLinks {
		for _, p := range dirty {
			err = errors.Join(err, b.s.syncFile(b.page(p)))
		}
	}
	err = errors.Join(err, b.s.seams.FS.SyncDir(b.path(pagesName)))
	if err != nil {
		return fmt.Errorf("%w: the page is there, and not known to be on the disk: %w", grant.ErrUnknown, err)
	}
	b.s.remember(b.name, func(m *memory) {
		m.dirty = slices.DeleteFunc(slices.Clone(m.dirty), func(p place) bool { return slices.Contains(dirty, p) })
	})
	return nil
}
