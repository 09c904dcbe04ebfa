package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/lockfile"
)

// Read reads one revision. grant.ErrLockMissing when there is none such; else as Head.
func (s *Store) Read(ctx context.Context, container string, at grant.Ref) (grant.Revision, error) {
	b, err := s.box(container)
	if err != nil {
		return grant.Revision{}, err
	}
	if err := b.there(); err != nil {
		return grant.Revision{}, err
	}
	rev, _, err := b.find(ctx, at)
	return rev, err
}

// find reads a revision and tells its place.
func (b *box) find(ctx context.Context, at grant.Ref) (grant.Revision, place, error) {
	if at.Epoch < 1 || at.Rev < 1 {
		return grant.Revision{}, place{}, b.missing()
	}
	p := place{at.Epoch, at.Rev}
	rev, err := b.load(ctx, p)
	if err == nil && rev.Ref().Epoch == at.Epoch {
		return rev, p, nil
	}
	if err != nil && !errors.Is(err, grant.ErrLockMissing) {
		return grant.Revision{}, place{}, err
	}
	// The first page of an epoch lies under the last name of an epoch before it.
	places, err := b.list()
	if err != nil {
		return grant.Revision{}, place{}, err
	}
	for i, p := range places {
		last := i == len(places)-1 || places[i+1].epoch != p.epoch
		if !last || p.epoch >= at.Epoch {
			continue
		}
		rev, err := b.load(ctx, p)
		if err != nil {
			return grant.Revision{}, place{}, err
		}
		if ref := rev.Ref(); ref.Epoch == at.Epoch && ref.Rev == at.Rev {
			return rev, p, nil
		}
	}
	return grant.Revision{}, place{}, fmt.Errorf("container %s: revision %d of epoch %d: %w",
		display.Text(b.name), at.Rev, at.Epoch, grant.ErrLockMissing)
}

// errTorn says that the bytes are no page. It does not leave this file.
var errTorn = errors.New("torn")

// writeTimeout is how long a page that somebody is writing is waited for. A writer that lives and does not go on
// is stopped, or could not clean up: then the page is a block, as if it were dead.
const writeTimeout = 10 * time.Second

// load reads the page at a place. Without hard links a page may be met while it is written: that is waited for,
// while its writer lives.
func (b *box) load(ctx context.Context, p place) (grant.Revision, error) {
	waited := time.Duration(0)
	for wait, looked := time.Millisecond, false; ; wait = min(2*wait, 50*time.Millisecond) {
		rev, err := b.loadOnce(p)
		if !errors.Is(err, errTorn) {
			return rev, err
		}
		writing := waited < writeTimeout && b.beingWritten()
		if !writing && looked {
			var blocked *BlockError
			errors.As(err, &blocked)
			return grant.Revision{}, blocked
		}
		// Once more after nobody writes: the writer may have ended between both looks.
		looked = !writing
		if writing {
			if err := b.s.seams.Clock.Sleep(ctx, wait); err != nil {
				return grant.Revision{}, err
			}
			waited += wait
		}
	}
}

// beingWritten tells whether a living process, or one that cannot be judged, holds the lock under which pages
// are written without hard links.
func (b *box) beingWritten() bool {
	st, err := lockfile.Status(b.path(publishName), lockfile.Options{Seams: b.s.seams})
	return err == nil && st.Locked && st.Holder.State == lockfile.Alive
}

func (b *box) loadOnce(p place) (grant.Revision, error) {
	name := b.page(p)
	data, err := b.s.slurp(name, maxPage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return grant.Revision{}, fmt.Errorf("container %s: page %s: %w", display.Text(b.name), p.name(), grant.ErrLockMissing)
	case errors.Is(err, errOdd):
		return grant.Revision{}, b.block(p, err.Error(), nil)
	case err != nil:
		return grant.Revision{}, fmt.Errorf("read a page of %s: %w", display.Text(b.name), err)
	}
	// Most pages are read several times in a row; to decode one costs more than all else about it.
	if rev := b.s.recall(b.name).page; rev.Page() != nil && bytes.Equal(rev.Bytes(), data) {
		return rev, b.belongs(p, rev)
	}
	rev, err := grant.Open(data)
	if err == nil {
		b.s.remember(b.name, func(m *memory) { m.page = rev })
	}
	if errors.Is(err, grant.ErrNewer) {
		return grant.Revision{}, fmt.Errorf("container %s: page %s: %w", display.Text(b.name), p.name(), err)
	}
	if err != nil {
		why := "it is no page"
		if len(data) == 0 {
			why = "it is empty"
		}
		return grant.Revision{}, fmt.Errorf("%w: %w", errTorn, b.block(p, why, err))
	}
	return rev, b.belongs(p, rev)
}

// belongs checks that the page is one that could have been published there.
func (b *box) belongs(p place, rev grant.Revision) error {
	page := rev.Page()
	switch {
	case page.Container != b.name:
		return b.block(p, "it is a page of another container: "+lockfile.CapForDisplay(page.Container), nil)
	case page.Epoch == p.epoch && page.Rev == p.rev && (page.Op != grant.OpRestore):
		return nil
	case page.Epoch > p.epoch && page.Op == grant.OpRestore, page.Epoch == p.epoch && p == first && page.Rev == p.rev:
		return nil
	}
	return b.block(p, fmt.Sprintf("it is revision %d of epoch %d", page.Rev, page.Epoch), nil)
}

// errOdd says that a name is no regular file, or holds too much.
var errOdd = errors.New("it is no regular file, or too large")

// slurp reads a whole file of at most limit bytes.
func (s *Store) slurp(name string, limit int) ([]byte, error) {
	f, err := s.seams.FS.Open(name)
	if err != nil {
		if info, lerr := s.seams.FS.Lstat(name); lerr == nil && !info.Mode.IsRegular() {
			return nil, errOdd // a link is not followed, a socket cannot be opened
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode.IsRegular() || info.Size > int64(limit) {
		return nil, errOdd
	}
	data, whole, err := vfs.ReadSized(f, info.Size, limit)
	if err == nil && !whole {
		err = errOdd
	}
	return data, err
}
