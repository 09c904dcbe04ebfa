package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs"
)

// lacksLinks tells whether an error of link() is how a file system says that it has no hard links. Any other
// error is itself: were it taken for this one, a full disk would leave a torn page.
func lacksLinks(err error) bool {
	for _, no := range []error{errors.ErrUnsupported, syscall.EPERM, syscall.ENOSYS, syscall.EXDEV, syscall.EMLINK} {
		if errors.Is(err, no) {
			return true
		}
	}
	return lacksLinksHere(err)
}

// publishInPlace makes the page by exclusive creation and writes it then, under a lock file: so that a reader
// who meets half a page can tell whether somebody is writing it. The exclusion is still the creation's, and a
// forced lock breaks nothing. If the process dies here, a torn page stays, a block.
func (b *box) publishInPlace(ctx context.Context, base grant.Ref, at place, data []byte) (err error) {
	hold, err := b.lockPublishing(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := hold.Release(); rerr != nil {
			b.s.log.Warn("lock not released", "container", b.name, "error", rerr)
		}
	}()
	if done, err := b.taken(at, data); done || err != nil {
		return err
	}
	// The base's writer may have died between its last write and its sync.
	if base != (grant.Ref{}) {
		_, p, err := b.find(ctx, base)
		if err == nil {
			err = b.s.syncFile(b.page(p))
		}
		if err != nil {
			return fmt.Errorf("sync the base: %w", err)
		}
	}
	if err := hold.Fence(); err != nil {
		return err
	}
	f, err := b.s.seams.FS.Create(b.page(at), 0o666)
	if errors.Is(err, fs.ErrExist) {
		done, err := b.settle(at, data)
		if !done && err == nil {
			err = grant.ErrConflict
		}
		return err
	}
	if err != nil {
		return b.halfMade(hold.Fence, at, data, err)
	}
	err = vfs.WriteAll(f, data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return b.halfMade(hold.Fence, at, data, err)
	}
	if err := hold.Fence(); err != nil {
		return fmt.Errorf("%w: %w", grant.ErrUnknown, err)
	}
	return b.settleDurably(at)
}

// halfMade deals with a page whose writing failed, while its writer lives and holds the lock. Half a page was
// no page to anybody, and is set aside; a whole one may have been read, so it stays, and whether it lasts is
// not known.
func (b *box) halfMade(fence func() error, at place, data []byte, cause error) error {
	is, err := b.s.slurp(b.page(at), maxPage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cause
	case err != nil:
		return fmt.Errorf("%w: %w", grant.ErrUnknown, errors.Join(cause, err))
	case bytes.Equal(is, data):
		b.s.remember(b.name, func(m *memory) { m.dirty = append(m.dirty, at) })
		return fmt.Errorf("%w: %w", grant.ErrUnknown, cause)
	case !bytes.HasPrefix(data, is):
		return grant.ErrConflict // somebody else's
	}
	if err := fence(); err != nil {
		return errors.Join(cause, b.block(at, "its writing failed", err))
	}
	if _, err := b.setAside(at); err != nil {
		return errors.Join(cause, b.block(at, "its writing failed", err))
	}
	return cause
}
