package local

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/kernlock"
)

// inLine runs f at the head of the line.
func inLine(ctx context.Context, s *Store, container string, f func(context.Context) error) error {
	leave, err := s.LineUp(ctx, container)
	if err != nil {
		return err
	}
	defer leave()
	return f(ctx)
}

// TestInLine: one at a time, in the kernel's order, and whoever is cancelled in line goes.
func TestInLine(t *testing.T) {
	e := newEstate(t)
	first, second := make(chan struct{}), make(chan error)
	leave := make(chan struct{})
	inside := false
	go func() {
		second <- inLine(t.Context(), e.open(), "atlas", func(context.Context) error {
			inside = true
			close(first)
			<-leave
			inside = false
			return nil
		})
	}()
	<-first
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		errs <- inLine(ctx, e.open(), "atlas", func(context.Context) error { return errors.New("passed the first") })
	}()
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled in line: %v", err)
	}
	go func() {
		errs <- inLine(t.Context(), e.open(), "atlas", func(context.Context) error {
			if inside {
				return errors.New("two at once")
			}
			return grant.ErrConflict
		})
	}()
	close(leave)
	if err := errors.Join(<-second); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, grant.ErrConflict) {
		t.Fatalf("the second: %v", err)
	}
}

// TestLineWaitsForNobody: when the first in line does not go on, the others go past it, but not while somebody
// holds; and where there can be no line, there is none.
func TestLineWaitsForNobody(t *testing.T) {
	e := newEstate(t)
	turns := 0
	var held bool
	s, err := Open(e.dir, Options{State: e.state, Seams: &seam.Set{Clock: clock{e.clock}}, fence: func(ctx context.Context, target string) (func() error, error) {
		if box, err := e.open().box("atlas"); err != nil || target != box.path(lineName) {
			return kernelFence(ctx, target)
		}
		if turns++; turns == 3 && held {
			e.clock.Step(25 * time.Hour)
		}
		return nil, kernlock.ErrTimeout
	}})
	if err != nil {
		t.Fatal(err)
	}
	came := 0
	in := func() {
		t.Helper()
		if err := inLine(t.Context(), s, "atlas", func(context.Context) error { came++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if in(); came != 1 || turns != 1 {
		t.Errorf("nobody holds: came %d times, after %d turns", came, turns)
	}
	turns, held = 0, true
	e.do(e.open(), grant.Acquire{Meta: e.meta(grant.Agent("anna")), Session: grant.Secret{1}.Hash()})
	if in(); came != 2 || turns != 3 {
		t.Errorf("held until its expiry: came %d times, after %d turns", came, turns)
	}
	s.fence = func(context.Context, string) (func() error, error) { return nil, errors.New("no locks here") }
	if in(); came != 3 {
		t.Error("where there is no line nobody came")
	}
	if err := inLine(t.Context(), s, "none", func(context.Context) error { return nil }); !errors.Is(err, grant.ErrLockMissing) {
		t.Errorf("no container: %v", err)
	}
}
