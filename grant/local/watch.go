package local

import (
	"context"
	"errors"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs"
)

// How often a watch looks without being woken.
const (
	pollLeast   = 10 * time.Millisecond
	pollMost    = 250 * time.Millisecond
	pollWatched = time.Second
)

// Watch returns when a page has followed at, or at is gone, at once if so; else with ctx's error. Whatever
// follows, a restore too, needs the one name after it. It wakes by inotify on Linux, and looks now and then
// besides; elsewhere it looks four times a second.
func (s *Store) Watch(ctx context.Context, container string, at grant.Ref) error {
	b, err := s.box(container)
	if err != nil {
		return err
	}
	if err := b.there(); err != nil {
		if errors.Is(err, grant.ErrLockMissing) && at == (grant.Ref{}) {
			return s.poll(ctx, nil, func() (bool, error) {
				err := b.there()
				if errors.Is(err, grant.ErrLockMissing) {
					return false, nil
				}
				return true, err
			})
		}
		return err
	}
	var w vfs.Watch
	if fsys, ok := s.seams.FS.(vfs.ArrivalWatcher); ok {
		// It may not be had: a user has few of them. Then there is only polling.
		if w, err = fsys.WatchArrivals(b.path(pagesName)); err == nil {
			defer w.Close()
		} else {
			w = nil
		}
	}
	next, own := after(at), place{at.Epoch, at.Rev}
	return s.poll(ctx, w, func() (bool, error) {
		there, err := b.exists(next)
		if there || err != nil || at == (grant.Ref{}) {
			return there, err
		}
		// An epoch's first page has no name in its own epoch: only what could be gone is looked at.
		if own != b.s.recall(b.name).top {
			return false, nil
		}
		there, err = b.exists(own)
		return !there, err
	})
}

// poll waits until look says done.
func (s *Store) poll(ctx context.Context, w vfs.Watch, look func() (done bool, err error)) error {
	for wait := pollLeast; ; wait = min(2*wait, pollMost) {
		done, err := look()
		if done || err != nil {
			return err
		}
		if w == nil {
			err = s.seams.Clock.Sleep(ctx, wait)
		} else {
			err = w.Wait(ctx, pollWatched, 0)
		}
		if err != nil {
			return err
		}
	}
}
