package session

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/kernlock"
)

// paused is a store that stops before it carries out a command of one kind.
type paused struct {
	*local.Store
	op     grant.Op
	in, on chan struct{}
}

func (s *paused) Do(ctx context.Context, r grant.Request) (grant.Revision, bool, error) {
	if r.Command.Op() == s.op {
		s.in <- struct{}{}
		<-s.on
	}
	return s.Store.Do(ctx, r)
}

// waits returns when somebody waits for the agent's guard, or when over is closed.
func (p *place) waits(over <-chan struct{}) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		names, err := filepath.Glob(filepath.Join(p.state, "sessions", "*", container, "agent-*.lock"))
		if err != nil || len(names) != 1 {
			p.t.Fatal(names, err)
		}
		r, err := kernlock.Status(names[0], kernlock.Options{Exact: true})
		if err != nil {
			p.t.Fatal(err)
		}
		if r.Waiters != 0 { // -1: the system does not tell
			return
		}
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatal("nobody ever waits")
		}
	}
}

// An attempt that is under way in another process is not taken for one that was lost: of an acquire there would
// be two holders of one grant.
func TestAttemptUnderWay(t *testing.T) {
	p := newPlace(t)
	slow := &paused{Store: p.store(), op: grant.OpAcquire, in: make(chan struct{}), on: make(chan struct{})}
	first := make(chan error, 1)
	go func() {
		_, _, err := (&Client{Store: slow, Agent: "ada"}).Acquire(t.Context(), container, "")
		first <- err
	}()
	<-slow.in
	over, second := make(chan struct{}), error(nil)
	c := p.client("ada")
	go func() {
		defer close(over)
		_, _, second = c.Acquire(t.Context(), container, "")
	}()
	p.waits(over)
	close(slow.on)
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-over
	wants(t, second, grant.CodeHeld)
}

// Many who work on one container, and remember what they see of it, never take each other's pages for a page
// that was set back.
func TestNoRollbackAmongManyProcesses(t *testing.T) {
	p := newPlace(t)
	done := make(chan error)
	agents := []string{"ada", "bob", "carl", "dora", "ed", "fay", "gus", "hal"}
	for _, agent := range agents {
		c := p.client(agent)
		go func() {
			var err error
			for i := 0; i < 12 && err == nil; i++ {
				if _, err = c.Petition(t.Context(), container, ""); err == nil {
					_, err = c.Head(t.Context(), container)
				}
				if err == nil {
					_, err = c.Withdraw(t.Context(), container, "")
				}
			}
			done <- err
		}()
	}
	for range agents {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Two who land at once under one session both land: the second one's base is what the first has left. (A landing that
// names the tree that stands, an empty one, is refused then: it was made for another.)
func TestLandingsOfOneSession(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	slow := &paused{Store: p.store(), op: grant.OpLand, in: make(chan struct{}), on: make(chan struct{})}
	first := make(chan error, 1)
	one, two := p.tree(p.file("one", "1")), p.tree(p.file("two", "2"))
	go func() {
		_, err := (&Client{Store: slow, Agent: "ada"}).Land(t.Context(), container, x.Path, Landing{Tree: one})
		first <- err
	}()
	<-slow.in
	over, second := make(chan struct{}), error(nil)
	c := p.client("ada")
	go func() {
		defer close(over)
		_, second = c.Land(t.Context(), container, x.Path, Landing{Tree: two})
	}()
	p.waits(over)
	close(slow.on)
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-over
	if second != nil {
		t.Error(second)
	}
	if r := p.head().Register; r.Seq != 2 {
		t.Errorf("%+v", r)
	}
}
