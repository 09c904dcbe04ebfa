package local

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/kernlock"
)

const lineName = "line" // guarded by a kernel lock: of those who wait, one looks

// LineUp returns when this process is the first of those on this host that wait for the container: it may try to
// acquire, and watch while somebody holds. The others sleep in the order in which they came, and are not woken by what
// happens to the page: a crowd that all watch spends more on reading each revision than the holder on making it. Whoever
// acquires, lands and releases in one go leaves after the release: then the next is woken once, when it can have the grant.
//
// The line decides nothing, and waits for nobody: whoever is behind a process that does not go on looks for
// itself every few seconds, and goes past it when nobody holds. It is no queue either: for an order that lasts,
// petition.
func (s *Store) LineUp(ctx context.Context, container string) (leave func(), err error) {
	b, err := s.box(container)
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	for {
		release, err := s.fence(ctx, b.path(lineName))
		if err == nil {
			return func() {
				if err := release(); err != nil {
					s.log.Warn("line not left", "container", container, "error", err)
				}
			}, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		past := func() {}
		if !errors.Is(err, kernlock.ErrTimeout) {
			s.log.Warn("there is no line", "container", container, "error", err)
			return past, nil
		}
		head, err := s.Head(ctx, container)
		if err != nil {
			return nil, err
		}
		now, err := s.Now(ctx)
		if err != nil {
			return nil, err
		}
		if p := head.Page(); p.State != grant.StateHeld || now >= p.Expiry {
			return past, nil
		}
	}
}
