package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// waiterOf begins to wait, and gives what it is told and what it got.
func (p *place) waiterOf(ctx context.Context, agent string) (told chan Waiting, got chan error) {
	told, got = make(chan Waiting, 1000), make(chan error, 1)
	c := p.client(agent)
	go func() {
		_, _, err := c.Await(ctx, container, time.Hour, func(w Waiting) { told <- w })
		got <- err
	}()
	return told, got
}

func (p *place) release(x *local.Session) {
	p.t.Helper()
	c := p.client(x.Agent)
	if _, err := c.Land(p.t.Context(), container, x.Path, Landing{Empty: "none"}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := c.Release(p.t.Context(), x, ""); err != nil {
		p.t.Fatal(err)
	}
}

// Waiters join the queue, are told their place, and come in turn.
func TestAwaitInTurn(t *testing.T) {
	p := newPlace(t)
	ada := p.acquire("ada")
	bobTold, bobGot := p.waiterOf(t.Context(), "bob")
	if w := <-bobTold; w.Turn.Place != 1 || !w.Petitioned || w.Head.Page().Holder.Agent != "ada" {
		t.Fatalf("%+v", w)
	}
	carlTold, carlGot := p.waiterOf(t.Context(), "carl")
	if w := <-carlTold; w.Turn.Place != 2 {
		t.Fatalf("%+v", w)
	}
	p.release(ada)
	if err := <-bobGot; err != nil {
		t.Fatal(err)
	}
	bob, _, err := p.client("bob").Find(t.Context(), grant.OpLand, container, "")
	if err != nil || bob.Grant != 2 {
		t.Fatal(bob, err)
	}
	p.release(bob)
	if err := <-carlGot; err != nil {
		t.Fatal(err)
	}
}

// Case 39: the queue's head has died; the next one gets in when its window is over, by the wall clock.
func TestCase39SecondIsPromoted(t *testing.T) {
	p := newPlace(t)
	ada := p.acquire("ada")
	if _, err := p.client("dead").Petition(t.Context(), container, ""); err != nil {
		t.Fatal(err)
	}
	told, got := p.waiterOf(t.Context(), "bob")
	<-told
	p.release(ada)
	for w := range told {
		if w.Turn.Open {
			if wait := w.Turn.From.Sub(w.Now); wait != 30*time.Minute {
				t.Errorf("turn in %v", wait)
			}
			break
		}
	}
	p.clock.Step(30 * time.Minute)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if page := p.head(); page.Holder.Agent != "bob" || len(page.Queue) != 1 || page.Queue[0].Misses != 1 {
		t.Errorf("%+v", page)
	}
}

// A wait that ends takes its own petition along, and leaves one that was there.
func TestAwaitEnds(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	if _, err := p.client("old").Petition(t.Context(), container, ""); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"old", "new"} {
		ctx, cancel := context.WithCancel(t.Context())
		told, got := p.waiterOf(ctx, agent)
		<-told
		cancel()
		err := <-got
		if !errors.Is(err, context.Canceled) || !errors.Is(err, grant.CodeHeld) {
			t.Errorf("%s: %v", agent, err)
		}
	}
	if q := p.head().Queue; len(q) != 1 || q[0].Agent != "old" {
		t.Errorf("queue %+v", q)
	}
}

// With no time to wait it tries once, and says why that was in vain.
func TestAwaitTriesOnce(t *testing.T) {
	p := newPlace(t)
	if x, _, err := p.client("ada").Await(t.Context(), container, 0, func(Waiting) {}); err != nil || x.Grant != 1 {
		t.Fatal(x, err)
	}
	told := 0
	_, _, err := p.client("bob").Await(t.Context(), container, 0, func(w Waiting) { told += w.Turn.Place })
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, grant.CodeHeld) || told != 1 || len(p.head().Queue) != 0 {
		t.Errorf("%v, told %d, %+v", err, told, p.head().Queue)
	}
}

// What goes wrong is said as itself, also when there was no time to wait.
func TestAwaitFails(t *testing.T) {
	p := newPlace(t)
	full := errors.New("no space left")
	for _, most := range []time.Duration{0, time.Hour} {
		_, _, err := (&Client{Store: &failing{Store: p.store(), err: full}, Agent: "ada"}).Await(t.Context(), container, most, func(Waiting) {})
		if !errors.Is(err, full) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", most, err)
		}
	}
}

// Nobody waits for a grant of one's own.
func TestAwaitOwn(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	_, _, err := p.client("ada").Await(t.Context(), container, time.Hour, func(Waiting) { t.Error("it waits") })
	wants(t, err, grant.CodeHeld)
	if len(p.head().Queue) != 0 {
		t.Error("it queues")
	}
}

// A waiter whose acquire was lost on the way has it found.
func TestAwaitAnswerLost(t *testing.T) {
	p := newPlace(t)
	loss := &lossy{Store: p.store(), after: 1, op: grant.OpAcquire}
	x, r, err := (&Client{Store: loss, Agent: "ada"}).Await(t.Context(), container, time.Hour, func(Waiting) {})
	if err != nil || x.Grant != 1 || !r.Replayed {
		t.Fatal(x, r, err)
	}
}

// A petition does not go idle while its waiter waits.
func TestAwaitTouches(t *testing.T) {
	p := newPlace(t)
	if _, err := p.client("bob").Petition(t.Context(), container, ""); err != nil {
		t.Fatal(err)
	}
	p.clock.Step(3 * 24 * time.Hour)
	w := &waiter{Client: p.client("bob"), container: container}
	if err := w.touch(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := p.head()
	if page.Op != grant.OpTouch {
		t.Fatalf("%s", page.Op)
	}
	if err := w.touch(t.Context()); err != nil || p.head().Rev != page.Rev {
		t.Error("touched again at once", err)
	}
}
