package session

import (
	"context"
	"errors"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Keeper keeps a grant alive, and says when what runs under it must stop. It has no clock and no timer of its
// own: Step is to be called every Tick, and as often besides as one likes.
type Keeper struct {
	client *Client
	x      *local.Session
	params grant.Params

	expiry  grant.Time // as last heard of
	capped  bool       // cannot be extended further
	next    grant.Time // heartbeat
	failing bool
	stopped bool // the command was told to stop
	over    bool
}

// Kind is what a Notice is about.
type Kind string

// The notices of a Keeper.
const (
	Beat     Kind = "heartbeat"        // the grant was extended
	BeatFail Kind = "heartbeat_failed" // it could not be: Err says why; it is tried again
	Capped   Kind = "last_extension"   // it cannot be extended any further
	Stop     Kind = "stop"             // the grant is about to end: whatever runs under it is to stop
	Kill     Kind = "kill"             // it ends now
	Lost     Kind = "lost"             // it has ended: Err is the refusal, or nil when it expired
	Released Kind = "released"         // it was released, by the session itself
)

// Notice is what a Keeper has to say.
type Notice struct {
	Kind   Kind
	Expiry grant.Time
	Now    grant.Time
	Err    error
}

// Keep begins to keep a session's grant, which at shows as held.
func (c *Client) Keep(x *local.Session, at grant.Revision) *Keeper {
	p := at.Page()
	k := &Keeper{client: c, x: x, params: p.Params, expiry: p.Expiry}
	k.plan(p.Heartbeat)
	k.capped = k.atCap(p)
	return k
}

// Tick is how long may pass between two steps: clocks jump and machines sleep, so the wall clock is looked at.
func (k *Keeper) Tick() time.Duration { return min(time.Second, k.margin()/4) }

// margin is how long before its end a grant's command is told to stop; a quarter of it is left when it is
// killed.
func (k *Keeper) margin() time.Duration {
	return min(time.Minute, k.params.Extension.Duration()/8)
}

// plan sets the next heartbeat: three or four can fail before the end.
func (k *Keeper) plan(last grant.Time) {
	k.next = last.Add(k.params.Extension.Duration() / 4)
}

func (k *Keeper) atCap(p *grant.Page) bool {
	return p.Expiry >= p.GrantTime.Add(p.Params.Cap.Duration())
}

// Step looks at the clock, sends a heartbeat when it is time, and says what is new. After Lost and Released
// there is nothing more.
func (k *Keeper) Step(ctx context.Context) []Notice {
	if k.over {
		return nil
	}
	now, err := k.client.Store.Now(ctx)
	if err != nil {
		return nil // the context has ended
	}
	var all []Notice
	note := func(kind Kind, err error) {
		all = append(all, Notice{Kind: kind, Expiry: k.expiry, Now: now, Err: err})
	}
	if now < k.expiry && now >= k.next && !k.capped {
		k.beat(ctx, now, note)
	}
	if k.over {
		return all
	}
	switch {
	case now >= k.expiry:
		k.over = true
		note(Lost, nil)
	case now >= k.expiry.Add(-k.margin()/4):
		note(Kill, nil)
	case now >= k.expiry.Add(-k.margin()) && !k.stopped:
		k.stopped = true
		note(Stop, nil)
	}
	return all
}

// beat sends a heartbeat. One that fails is tried again soon; only the first failure in a row is told.
func (k *Keeper) beat(ctx context.Context, now grant.Time, note func(Kind, error)) {
	r, err := k.client.Heartbeat(ctx, k.x, "")
	if err == nil {
		k.failing = false
		k.extended(r.Revision.Page(), now, note)
		return
	}
	switch grant.CodeOf(err) {
	case grant.CodePastCap:
		k.capped = true
		note(Capped, nil)
		return
	case grant.CodeFenced, grant.CodeNotHolder, grant.CodeExpired, grant.CodeRollback:
		k.end(err, note)
		return
	}
	k.next = now.Add(min(30*time.Second, k.params.Extension.Duration()/16))
	if !k.failing && ctx.Err() == nil {
		k.failing = true
		note(BeatFail, err)
	}
}

func (k *Keeper) extended(p *grant.Page, now grant.Time, note func(Kind, error)) {
	k.expiry = p.Expiry
	k.plan(now)
	if k.stopped && now < k.expiry.Add(-k.margin()) {
		k.stopped = false // a heartbeat got through at the last moment
	}
	note(Beat, nil)
	if k.atCap(p) {
		k.capped = true
		note(Capped, nil)
	}
}

// end is the grant's: by its own release, or not.
func (k *Keeper) end(err error, note func(Kind, error)) {
	k.over = true
	var r *grant.Refusal
	if errors.As(err, &r) && r.Ended != nil && r.Ended.How == grant.HowReleased {
		note(Released, nil)
		return
	}
	note(Lost, err)
}

// Seen tells the keeper of a head that was read meanwhile: it may show an end, or a longer life.
func (k *Keeper) Seen(head grant.Revision) []Notice {
	p := head.Page()
	if k.over || p == nil {
		return nil
	}
	var all []Notice
	note := func(kind Kind, err error) {
		all = append(all, Notice{Kind: kind, Expiry: k.expiry, Now: p.Stamp.T, Err: err})
	}
	switch h := p.Holder; {
	case h != nil && h.Session == k.x.Secret.Hash():
		k.expiry = max(k.expiry, p.Expiry)
	case p.Ended != nil && p.Ended.Grant == k.x.Grant && p.Ended.How == grant.HowReleased:
		k.over = true
		note(Released, nil)
	default:
		r := Refuse(head, grant.OpHeartbeat, grant.CodeFenced, "the grant has ended", "grant history "+p.Container, "shows how")
		r.Yours = k.x.Grant
		k.over = true
		note(Lost, r)
	}
	return all
}

// Expiry is when the grant ends, as far as is known.
func (k *Keeper) Expiry() grant.Time { return k.expiry }
