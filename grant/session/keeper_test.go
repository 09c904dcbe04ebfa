package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

func kinds(all []Notice) []Kind {
	list := []Kind{}
	for _, n := range all {
		list = append(list, n.Kind)
	}
	return list
}

func (p *place) keeps(c *Client, x *local.Session) *Keeper {
	p.t.Helper()
	head, err := c.Store.Head(p.t.Context(), container)
	if err != nil {
		p.t.Fatal(err)
	}
	return c.Keep(x, head)
}

func wantKinds(t *testing.T, what string, got []Notice, want ...Kind) {
	t.Helper()
	if !slices.Equal(kinds(got), want) && len(got)+len(want) > 0 {
		t.Fatalf("%s: %v, want %v", what, kinds(got), want)
	}
}

// A grant is extended until its cap, and what runs under it is told to stop before the end.
func TestKeeperToTheCap(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	start := p.head().GrantTime
	k := p.keeps(p.client("ada"), x)
	wantKinds(t, "at once", k.Step(t.Context()))
	beats := 0
	for k.Expiry().Sub(start) < 24*time.Hour {
		p.clock.Step(time.Minute)
		got := kinds(k.Step(t.Context()))
		if len(got) > 0 && got[0] != Beat || len(got) > 1 && got[1] != Capped {
			t.Fatal(got)
		}
		beats += len(got)
	}
	if beats < 20 || beats > 23 {
		t.Errorf("%d notices in a day", beats)
	}
	p.clock.Step(p.head().Expiry.Std().Sub(p.clock.Now()) - 61*time.Second)
	wantKinds(t, "61 s before", k.Step(t.Context()))
	p.clock.Step(time.Second)
	wantKinds(t, "60 s before", k.Step(t.Context()), Stop)
	p.clock.Step(44 * time.Second)
	wantKinds(t, "16 s before", k.Step(t.Context()))
	p.clock.Step(time.Second)
	wantKinds(t, "15 s before", k.Step(t.Context()), Kill)
	p.clock.Step(15 * time.Second)
	wantKinds(t, "at the end", k.Step(t.Context()), Lost)
	wantKinds(t, "after it", k.Step(t.Context()))
}

// Case 10: a heartbeat that cannot be written is told long before the grant ends, once, and tried again.
func TestCase10HeartbeatThatCannotBeWritten(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	store := &failing{Store: p.store(), err: errors.New("read-only file system")}
	k := p.keeps(&Client{Store: store, Agent: "ada"}, x)
	p.clock.Step(time.Hour)
	got := k.Step(t.Context())
	wantKinds(t, "after an hour", got, BeatFail)
	if left := got[0].Expiry.Sub(got[0].Now); left != 3*time.Hour {
		t.Errorf("told %v before the end", left)
	}
	tries := store.tries
	for range 60 {
		p.clock.Step(time.Second)
		wantKinds(t, "still", k.Step(t.Context()))
	}
	if store.tries < tries+2 || store.tries > tries+3 {
		t.Errorf("%d tries in a minute", store.tries-tries)
	}
	store.err = nil
	p.clock.Step(time.Minute)
	wantKinds(t, "it works again", k.Step(t.Context()), Beat)
	store.err = errors.New("read-only file system")
	p.clock.Step(time.Hour)
	wantKinds(t, "and fails again", k.Step(t.Context()), BeatFail)
	p.clock.Step(3*time.Hour - time.Minute)
	wantKinds(t, "a minute before", k.Step(t.Context()), Stop)
	store.err = nil
	p.clock.Step(31 * time.Second)
	wantKinds(t, "at the last moment", k.Step(t.Context()), Beat)
	p.clock.Step(20 * time.Second)
	wantKinds(t, "and it lives on", k.Step(t.Context()))
}

type failing struct {
	*local.Store
	err   error
	tries int
}

func (f *failing) Do(ctx context.Context, r grant.Request) (grant.Revision, bool, error) {
	if f.tries++; f.err != nil {
		return grant.Revision{}, false, f.err
	}
	return f.Store.Do(ctx, r)
}

// A machine that slept past the expiry: the wall clock shows it, whatever timers say.
func TestKeeperSlept(t *testing.T) {
	p := newPlace(t)
	k := p.keeps(p.client("ada"), p.acquire("ada"))
	p.clock.Step(9 * time.Hour)
	wantKinds(t, "woken", k.Step(t.Context()), Lost)
}

// A grant that ends otherwise: told from the head that shows it, or by the next heartbeat.
func TestKeeperSees(t *testing.T) {
	p := newPlace(t)
	ctx := t.Context()
	x := p.acquire("ada")
	k, late := p.keeps(p.client("ada"), x), p.keeps(p.client("ada"), x)
	p.clock.Step(5 * time.Hour)
	p.acquire("bob")
	head, err := p.store().Head(ctx, container)
	if err != nil {
		t.Fatal(err)
	}
	got := k.Seen(head)
	wantKinds(t, "seen", got, Lost)
	if grant.CodeOf(got[0].Err) != grant.CodeFenced {
		t.Error(got[0].Err)
	}
	p.clock.Step(-4 * time.Hour) // to a clock that was set back the grant has not expired
	wantKinds(t, "heartbeat", late.Step(ctx), Lost)

	p = newPlace(t)
	x = p.acquire("ada")
	k, late = p.keeps(p.client("ada"), x), p.keeps(p.client("ada"), x)
	if _, err := p.client("ada").Land(ctx, container, "", Landing{Empty: "none"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client("ada").Release(ctx, x, ""); err != nil {
		t.Fatal(err)
	}
	if head, err = p.store().Head(ctx, container); err != nil {
		t.Fatal(err)
	}
	wantKinds(t, "released", k.Seen(head), Released)
	p.clock.Step(time.Hour)
	wantKinds(t, "released, by heartbeat", late.Step(ctx), Released)
}
