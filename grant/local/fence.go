package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// fenceTimeout is how long a commit that begins or ends a grant waits for the container's kernel lock. Others
// of its kind hold it for milliseconds; a fenced command for as long as it runs.
const fenceTimeout = 5 * time.Second

// Fence is a hold of a container's kernel lock: no grant begins or ends under it but by commits made with its
// Context. It decides nothing else.
type Fence struct {
	ctx     context.Context
	release func() error
}

// Fence takes the container's kernel lock. When somebody has it for long, the error matches
// grant.CodeLandingRuns and says who; others are those of package kernlock.
func (s *Store) Fence(ctx context.Context, container string) (*Fence, error) {
	b, err := s.box(container)
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	return s.fenceOff(ctx, b.fenceTarget(), "container "+display.Text(container))
}

func (s *Store) fenceOff(ctx context.Context, target, what string) (*Fence, error) {
	release, err := s.fence(ctx, target)
	if errors.Is(err, kernlock.ErrTimeout) {
		err = fmt.Errorf("%w: something runs under the fence of %s: %w", grant.CodeLandingRuns, what, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fence %s: %w", what, err)
	}
	return &Fence{ctx: context.WithValue(ctx, fenceKey{}, &held{target, ctx}), release: release}, nil
}

// FenceTarget is what to give package kernlock for a command that is to run inside the fence and inherit it.
func (s *Store) FenceTarget(container string) (string, error) {
	b, err := s.box(container)
	if err != nil {
		return "", err
	}
	return b.fenceTarget(), nil
}

func (b *box) fenceTarget() string { return b.path(fenceName) }

// Context is the one that Fence was given, and tells Swap of the fence. Do not use it after Release.
func (f *Fence) Context() context.Context { return f.ctx }

// Release lets go.
func (f *Fence) Release() error { return f.release() }

// letGo releases a fence behind what was done under it, which a failure does not undo.
func (s *Store) letGo(f *Fence) {
	if err := f.Release(); err != nil {
		s.log.Warn("fence not released", "error", err)
	}
}

type fenceKey struct{}

type held struct {
	target string
	outer  context.Context
}

// fenced tells whether ctx comes from a fence of that target.
func fenced(ctx context.Context, target string) bool {
	for {
		h, ok := ctx.Value(fenceKey{}).(*held)
		if !ok {
			return false
		}
		if h.target == target {
			return true
		}
		ctx = h.outer
	}
}

// WithFence tells Swap that the caller holds the container's kernel lock by other means: a fenced command's
// wrapper does, which took it at FenceTarget.
func (s *Store) WithFence(ctx context.Context, container string) (context.Context, error) {
	target, err := s.FenceTarget(container)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, fenceKey{}, &held{target, ctx}), nil
}

func kernelFence(ctx context.Context, target string) (func() error, error) {
	l, err := kernlock.Acquire(ctx, target, kernlock.Options{Timeout: fenceTimeout, Operation: "grant"})
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
