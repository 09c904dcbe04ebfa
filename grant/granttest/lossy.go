package granttest

import (
	"context"
	"errors"
	"sync"

	"github.com/stile-lock/stile/grant"
)

// Lossy is a store whose answers get lost, as on the way from another machine.
type Lossy struct {
	grant.Store
	mu sync.Mutex
	// swaps says what becomes of the next ones, the first first.
	swaps []Loss
}

// Loss is what becomes of a swap.
type Loss int

// The losses. A swap that was not done may have been lost on its way there.
const (
	Kept Loss = iota
	AnswerLost
	RequestLost
)

// NewLossy wraps a store.
func NewLossy(s grant.Store) *Lossy { return &Lossy{Store: s} }

// Lose says what becomes of the next swaps.
func (l *Lossy) Lose(swaps ...Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swaps = swaps
}

var errUnreachable = errors.New("store is not reachable")

// Swap may lose its answer.
func (l *Lossy) Swap(ctx context.Context, base grant.Ref, next grant.Revision) error {
	l.mu.Lock()
	loss := Kept
	if len(l.swaps) > 0 {
		loss, l.swaps = l.swaps[0], l.swaps[1:]
	}
	l.mu.Unlock()
	if loss == RequestLost {
		return grant.ErrUnknown
	}
	err := l.Store.Swap(ctx, base, next)
	if loss == AnswerLost {
		return grant.ErrUnknown
	}
	return err
}

func unwrap(s grant.Store) grant.Store {
	if l, ok := s.(*Lossy); ok {
		return l.Store
	}
	return s
}

// afterSwap cannot be reached any more once a swap was tried.
type afterSwap struct {
	*Lossy
	tried bool
}

func (s *afterSwap) Swap(ctx context.Context, base grant.Ref, next grant.Revision) error {
	s.tried = true
	return s.Lossy.Swap(ctx, base, next)
}

func (s *afterSwap) Head(ctx context.Context, container string) (grant.Revision, error) {
	if s.tried {
		return grant.Revision{}, errUnreachable
	}
	return s.Lossy.Head(ctx, container)
}
