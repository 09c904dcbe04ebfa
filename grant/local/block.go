package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/lockfile"
)

// BlockError says that a container cannot be worked on, because what lies in a page's place is no page, or a
// page between two others is not there. It matches grant.ErrBadPage.
type BlockError struct {
	Container string
	File      string // the page's name in the container's folder
	Why       string // safe to show
	Hint      string // the one command that helps
	Err       error  // what reading it said; may be nil
}

func (e *BlockError) Error() string {
	return fmt.Sprintf("container %s is blocked: %s: %s; next: %s", display.Text(e.Container), display.Text(e.File), e.Why, e.Hint)
}

// Unwrap gives what reading the page said.
func (e *BlockError) Unwrap() []error {
	if e.Err == nil {
		return []error{grant.ErrBadPage}
	}
	return []error{grant.ErrBadPage, e.Err}
}

func (b *box) block(p place, why string, err error) *BlockError {
	return &BlockError{
		Container: b.name, File: filepath.Join(pagesName, p.name()), Why: why, Err: err,
		Hint: fmt.Sprintf("stile grant restore %s --reason WHY", display.Text(b.name)),
	}
}

// Remains is what is left of a container for a restore to go on from: the highest page that can be read and
// is followed by none. The zero Revision when nothing is left. It goes by listing, so that no hint or missing
// page stands in its way; a page that cannot be read does, until SetAside.
func (s *Store) Remains(ctx context.Context, container string) (grant.Revision, error) {
	b, err := s.box(container)
	if err != nil {
		return grant.Revision{}, err
	}
	err = b.there()
	if errors.Is(err, grant.ErrLockMissing) {
		return grant.Revision{}, nil
	}
	if err != nil {
		return grant.Revision{}, err
	}
	places, err := b.list()
	if err != nil || len(places) == 0 {
		return grant.Revision{}, err
	}
	return b.load(ctx, places[len(places)-1])
}

// SetAside is the operator's, before a restore: it moves the highest page of a container out of its place if
// it cannot be read, and says under which name it is kept in the container's folder; empty when there was none
// such. It is the only thing that ever takes a page's name away, and only one that no program could have
// acknowledged whole, or that was damaged since: then the witnesses know a higher revision, and a restore
// must follow.
func (s *Store) SetAside(ctx context.Context, container string) (kept string, err error) {
	b, err := s.box(container)
	if err != nil {
		return "", err
	}
	if err := b.there(); err != nil {
		return "", err
	}
	// Under the lock of those who write pages in place: what is torn then has no writer that could go on.
	hold, err := b.lockPublishing(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	places, err := b.list()
	if err != nil || len(places) == 0 {
		return "", err
	}
	top := places[len(places)-1]
	_, err = b.loadOnce(top)
	var blocked *BlockError
	if !errors.As(err, &blocked) {
		return "", err
	}
	if err := hold.Fence(); err != nil {
		return "", err
	}
	kept, err = b.setAside(top)
	if err != nil {
		return "", fmt.Errorf("set aside %s: %w", display.Text(b.page(top)), err)
	}
	s.remember(container, func(m *memory) { m.top = place{} })
	return kept, nil
}

// setAside moves what lies at a place to a name of its own in the torn folder.
func (b *box) setAside(p place) (kept string, err error) {
	if err := b.s.mkdir(b.path(tornName), 0o777); err != nil {
		return "", err
	}
	attempt, err := b.s.seams.Hex24()
	if err != nil {
		return "", err
	}
	kept = filepath.Join(tornName, p.name()+"."+attempt)
	if err := b.s.seams.FS.Rename(b.page(p), b.path(kept)); err != nil {
		return "", err
	}
	return kept, errors.Join(b.s.seams.FS.SyncDir(b.path(tornName)), b.s.seams.FS.SyncDir(b.path(pagesName)))
}

// lockPublishing takes the lock file under which pages are written in place.
func (b *box) lockPublishing(ctx context.Context) (*lockfile.Hold, error) {
	return lockfile.Acquire(ctx, b.path(publishName), lockfile.Options{Seams: b.s.seams})
}
