package local

import (
	"context"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/kernlock"
)

// TestNestedGrantsAreRefused, also when one agent tries two containers at once.
func TestNestedGrantsAreRefused(t *testing.T) {
	for range 10 {
		e := newEstate(t)
		other := grant.Create{Meta: e.meta(grant.Operator("olga"))}
		other.Container = "borea"
		e.do(e.open(), other)
		errs := make(chan error)
		for i, name := range []string{"atlas", "borea"} {
			cmd := grant.Acquire{Meta: e.meta(grant.Agent("anna")), Session: grant.Secret{byte(i)}.Hash()}
			cmd.Container = name
			s := e.open()
			go func() {
				_, _, err := s.Do(context.Background(), grant.Request{Command: cmd})
				errs <- err
			}()
		}
		a, b := <-errs, <-errs
		if a != nil {
			a, b = b, a
		}
		if a != nil || grant.CodeOf(b) != grant.CodeNested {
			t.Fatalf("two containers at once: %v, %v", a, b)
		}
	}
}

// TestFenceExcludesGrants: while a fence is held no grant begins or ends, all else goes on, and who holds it is
// told.
func TestFenceExcludesGrants(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	f, err := s.Fence(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	rival := e.open()
	rival.fence = func(_ context.Context, target string) (func() error, error) { // without the wait
		l, held, err := kernlock.TryAcquire(target, kernlock.Options{})
		if held != nil {
			return nil, &kernlock.TimeoutError{Target: target}
		}
		return l.Release, err
	}
	acquire := func(s *Store, ctx context.Context) error {
		cmd := grant.Acquire{Meta: e.meta(grant.Agent("anna")), Session: grant.Secret{byte(e.n)}.Hash()}
		_, _, err := s.Do(ctx, grant.Request{Command: cmd})
		return err
	}
	if err := acquire(rival, t.Context()); grant.CodeOf(err) != grant.CodeLandingRuns {
		t.Fatalf("a grant under another's fence: %v", err)
	}
	head, err := rival.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	now := grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: grant.TimeOf(e.clock.Now())}}
	next, err := grant.Apply(head, grant.Acquire{Meta: e.meta(grant.Agent("anna")), Session: grant.Secret{200}.Hash()}, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := rival.Swap(t.Context(), head.Ref(), next); grant.CodeOf(err) != grant.CodeLandingRuns {
		t.Fatalf("a swap under another's fence: %v", err)
	}
	e.do(rival, e.petition("ben"))
	e.do(rival, grant.Withdraw{Meta: e.meta(grant.Agent("ben"))})
	if err := acquire(s, f.Context()); err != nil {
		t.Fatalf("under its own fence: %v", err)
	}
	e.clock.Step(5 * time.Hour)
	if err := acquire(rival, t.Context()); grant.CodeOf(err) != grant.CodeLandingRuns {
		t.Fatalf("a takeover under another's fence: %v", err)
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	if err := acquire(rival, t.Context()); err != nil {
		t.Fatal(err)
	}
}
