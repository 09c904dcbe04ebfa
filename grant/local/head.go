package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// stride is how far the hint may lag behind the head, and so how many names are looked at to find the head.
// Every writer that has moved further writes the hint anew.
const stride = 8

// Head reads the last revision of the last epoch. It is found from a hint by looking at the names after it,
// not by listing: revisions are published in order and none ever goes away. The linearization point is the
// last look at the name that would follow it.
//
// grant.ErrLockMissing: there are no pages. grant.ErrRollback: a page that the hint or this process knows is
// not there any more. A *BlockError (grant.ErrBadPage) where a page is torn, foreign or missing in between.
func (s *Store) Head(ctx context.Context, container string) (grant.Revision, error) {
	b, err := s.box(container)
	if err != nil {
		return grant.Revision{}, err
	}
	rev, _, err := b.head(ctx)
	return rev, err
}

// head also tells the head's place.
func (b *box) head(ctx context.Context) (grant.Revision, place, error) {
	if err := ctx.Err(); err != nil {
		return grant.Revision{}, place{}, err
	}
	if err := b.there(); err != nil {
		return grant.Revision{}, place{}, err
	}
	if err := b.vouch(); err != nil {
		return grant.Revision{}, place{}, err
	}
	from, err := b.start()
	if err != nil {
		return grant.Revision{}, place{}, err
	}
	there, err := b.exists(from)
	if err != nil {
		return grant.Revision{}, place{}, err
	}
	if !there {
		return b.lost(ctx, from)
	}
	for {
		rev, at, err := b.climb(ctx, from)
		if !errors.Is(err, grant.ErrLockMissing) {
			return rev, at, err
		}
		// What had a name has none any more: half a page was set aside. It was never the head.
		if there, err = b.exists(from); err != nil {
			return grant.Revision{}, place{}, err
		}
		if !there {
			return b.lost(ctx, from)
		}
		if err := ctx.Err(); err != nil {
			return grant.Revision{}, place{}, err
		}
	}
}

// lost finds the head when a page that was there is not: what came of it is an error, unless an operator has
// restored the container since.
func (b *box) lost(ctx context.Context, from place) (grant.Revision, place, error) {
	places, err := b.list()
	if err != nil {
		return grant.Revision{}, place{}, err
	}
	if len(places) == 0 {
		return grant.Revision{}, place{}, b.missing()
	}
	rev, at, err := b.climb(ctx, places[len(places)-1])
	if err == nil && rev.Page().Epoch <= from.epoch {
		err = b.gone(from)
	}
	if err != nil {
		return grant.Revision{}, place{}, err
	}
	b.s.remember(b.name, func(m *memory) { m.top = at })
	return rev, at, nil
}

// start is a place to look upwards from: the highest that is known to have had a page.
func (b *box) start() (place, error) {
	m := b.s.recall(b.name)
	if m.top != (place{}) {
		return m.top, nil
	}
	hint := b.readHint()
	b.s.remember(b.name, func(m *memory) { m.hint = hint })
	if hint != (place{}) {
		return hint, nil
	}
	places, err := b.list()
	if err != nil {
		return place{}, err
	}
	if len(places) == 0 {
		return place{}, b.missing()
	}
	return places[len(places)-1], nil
}

func (b *box) missing() error {
	return fmt.Errorf("container %s: %w", display.Text(b.name), grant.ErrLockMissing)
}

// climb finds the last page at or above from, where there is a name.
func (b *box) climb(ctx context.Context, from place) (grant.Revision, place, error) {
	for at := from; ; {
		top, err := b.reach(at)
		if err != nil {
			return grant.Revision{}, place{}, err
		}
		rev, err := b.load(ctx, top)
		if err != nil {
			return grant.Revision{}, place{}, err
		}
		ref := rev.Ref()
		next := place{ref.Epoch, ref.Rev}
		if next == top {
			b.saw(top)
			return rev, top, nil
		}
		// The first page of a later epoch: what follows it has the names of that epoch.
		further, err := b.reach(next)
		if err != nil {
			return grant.Revision{}, place{}, err
		}
		if further == next {
			b.saw(top)
			return rev, top, nil
		}
		at = further
	}
}

// gone is the error for a page that was there.
func (b *box) gone(at place) error {
	return fmt.Errorf("container %s: %w: page %s was there and is not; next: stile grant restore %s --reason WHY",
		display.Text(b.name), grant.ErrRollback, at.name(), display.Text(b.name))
}

// reach finds the highest place in at's epoch that has a name, from at upwards, a stride at a time until the last
// name of one is free. It does not stop at the first free name: a page with later ones and not there itself is a
// block, since to publish in its place would make two chains of one. No hint lags by more than a stride, so from a
// hint all that there is is looked at.
func (b *box) reach(at place) (place, error) {
	top := at
	var hole place
	for p, end := at, at.rev+stride; p.rev < end && p.rev < grant.MaxNumber; {
		p.rev++
		there, err := b.exists(p)
		if err != nil {
			return place{}, err
		}
		if !there {
			if hole == (place{}) {
				hole = p
			}
			continue
		}
		if hole != (place{}) {
			// Pages come in order: by now the one that was missing may have come. If not, it never will.
			if there, err = b.exists(hole); err != nil {
				return place{}, err
			}
			if !there {
				return place{}, b.block(hole, "it is missing, and later ones are there", nil)
			}
			p, hole = hole, place{}
		}
		if top = p; p.rev == end {
			end += stride
		}
	}
	return top, nil
}

func (b *box) exists(p place) (bool, error) {
	_, err := b.s.seams.FS.Lstat(b.page(p))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("look for the head of %s: %w", display.Text(b.name), err)
}

// saw remembers the head's place.
func (b *box) saw(p place) {
	b.s.remember(b.name, func(m *memory) {
		// A slower reader must not take back what a faster one saw. An epoch's first page lies in the epoch
		// before, below what follows it.
		if m.top.epoch < p.epoch || m.top.epoch == p.epoch && m.top.rev < p.rev {
			m.top = p
		}
	})
}

// list finds every page by listing: where there is no hint, and to say what is left.
func (b *box) list() ([]place, error) {
	names, err := b.s.seams.FS.List(b.path(pagesName), "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the pages of %s: %w", display.Text(b.name), err)
	}
	var places []place
	for _, name := range names {
		if p, ok := parsePlace(name); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(p, q place) int {
		if p.epoch != q.epoch {
			return int(p.epoch - q.epoch)
		}
		return int(p.rev - q.rev)
	})
	return places, nil
}

// maxHint bounds what is read of a hint.
const maxHint = 64

// readHint is what the hint file says; the zero place when it says nothing that helps. It is never ahead of
// the pages unless somebody took one away.
func (b *box) readHint() place {
	f, err := b.s.seams.FS.Open(b.path(hintName))
	if err != nil {
		return place{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode.IsRegular() {
		return place{}
	}
	data, whole, err := vfs.ReadAll(f, maxHint)
	if err != nil || !whole {
		return place{}
	}
	name, ok := strings.CutSuffix(string(data), "\n")
	if !ok {
		return place{}
	}
	p, _ := parsePlace(name)
	return p
}

// writeHint moves the hint to p when it lags by a stride, or there is none, or a restore has left gaps below. Nothing depends on it but how many
// names the next process looks at, so it is not synced, and a failure is only told.
func (b *box) writeHint(p place, restored bool) {
	m := b.s.recall(b.name)
	if !restored && m.hint.epoch == p.epoch && m.hint.rev <= p.rev && p.rev-m.hint.rev < stride {
		return
	}
	err := b.replace(b.path(hintName), []byte(p.name()+"\n"), 0o666)
	if err != nil {
		b.s.log.Warn("hint not written", "container", b.name, "page", strconv.FormatInt(p.rev, 10), "error", err)
		return
	}
	b.s.remember(b.name, func(m *memory) { m.hint = p })
}
