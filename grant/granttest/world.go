package granttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

const container = "atlas"

// world is a place with a container in it, and the agents who work there.
type world struct {
	t     *testing.T
	clock *Clock
	place Place
	store grant.Store
	ctx   context.Context
	n     int
	acked []grant.Ref
}

func newWorld(t *testing.T, factory Factory) *world {
	w := &world{t: t, clock: NewClock(), ctx: t.Context()}
	w.place = factory(t, w.clock)
	w.store = w.place.Open()
	w.must(w.do(w.store, grant.Create{Meta: w.meta(grant.Operator("olga")), Params: grant.DefaultParams()}))
	t.Cleanup(func() {
		if !t.Failed() {
			w.verify()
		}
	})
	return w
}

// verify holds the chain as it is stored against the invariants, and against what was acknowledged.
func (w *world) verify() {
	w.t.Helper()
	chain := w.chain()
	if err := errors.Join(grant.Verify(chain), grant.Persisted(chain, w.acked...)); err != nil {
		w.t.Error(err)
	}
}

func (w *world) chain() []grant.Revision {
	w.t.Helper()
	chain, err := grant.Chain(context.Background(), w.place.Open(), container)
	if err != nil {
		w.t.Fatal(err)
	}
	return chain
}

func (w *world) nonce() string {
	w.n++
	return fmt.Sprintf("nonce-%04d", w.n)
}

func (w *world) meta(by grant.Actor) grant.Meta {
	return grant.Meta{Container: container, Nonce: w.nonce(), By: by}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) { w.clock.Step(d) }

// env is what a command meets: the store's clock, or the caller's, which is the same here.
func (w *world) env(s grant.Store) func(context.Context, grant.Revision) (grant.Env, error) {
	return w.envAt(s, grant.TimeOf(w.clock.Now()), grant.Witness{})
}

func (w *world) envAt(s grant.Store, own grant.Time, seen grant.Witness) func(context.Context, grant.Revision) (grant.Env, error) {
	return func(ctx context.Context, head grant.Revision) (grant.Env, error) {
		now := grant.Stamp{Source: grant.SourceClient, T: own}
		// Without a clock for all, these clients have watched: they saw each page when it was made.
		offerSeen := grant.Time(0)
		if c, ok := unwrap(s).(grant.Clock); ok {
			t, err := c.Now(ctx)
			if err != nil {
				return grant.Env{}, err
			}
			now = grant.Stamp{Source: grant.SourceStore, T: t}
		} else if page := head.Page(); page != nil {
			offerSeen = page.Stamp.T
		}
		return grant.Env{Now: now, FenceHeld: true, Witness: seen, OfferSeen: offerSeen}, nil
	}
}

// withOfferSeen adds when a contender first saw the head, by its own clock.
func withOfferSeen(env func(context.Context, grant.Revision) (grant.Env, error), at grant.Time) func(context.Context, grant.Revision) (grant.Env, error) {
	return func(ctx context.Context, head grant.Revision) (grant.Env, error) {
		e, err := env(ctx, head)
		e.OfferSeen = at
		return e, err
	}
}

// do carries a command out on a store.
func (w *world) do(s grant.Store, cmd grant.Command) (grant.Revision, error) {
	rev, _, err := grant.Do(w.ctx, s, grant.Request{Command: cmd, Env: w.env(s)})
	if err == nil {
		w.acked = append(w.acked, rev.Ref())
	}
	return rev, err
}

func (w *world) must(rev grant.Revision, err error) *grant.Page {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return rev.Page()
}

// fails wants an error of that code, and that it changed nothing.
func (w *world) fails(code grant.Code, f func() (grant.Revision, error)) {
	w.t.Helper()
	_ = w.failure(code, f)
}

// failure is fails, and gives the error.
func (w *world) failure(code grant.Code, f func() (grant.Revision, error)) error {
	w.t.Helper()
	before, berr := w.place.Open().Head(w.ctx, container)
	_, err := f()
	if grant.CodeOf(err) != code {
		w.t.Fatalf("got %v (%s), want %s", err, grant.CodeOf(err), code)
	}
	after, aerr := w.place.Open().Head(w.ctx, container)
	if !bytes.Equal(before.Bytes(), after.Bytes()) || (berr == nil) != (aerr == nil) {
		w.t.Fatalf("a command that failed with %s changed the page", code)
	}
	return err
}

func (w *world) head() grant.Revision {
	w.t.Helper()
	head, err := w.store.Head(w.ctx, container)
	if err != nil {
		w.t.Fatal(err)
	}
	return head
}

func (w *world) page() *grant.Page { w.t.Helper(); return w.head().Page() }

// prepare evaluates a command on the head, and does not swap: what a process was about to do when it stopped.
func (w *world) prepare(cmd grant.Command) (base grant.Ref, next grant.Revision) {
	w.t.Helper()
	head := w.head()
	env, err := w.env(w.store)(w.ctx, head)
	if err != nil {
		w.t.Fatal(err)
	}
	next, err = grant.Apply(head, cmd, env)
	if err != nil {
		w.t.Fatal(err)
	}
	return head.Ref(), next
}

// agent is one session's client, on a store of its own.
type agent struct {
	w       *world
	name    string
	store   grant.Store
	session grant.Session
}

func (w *world) agent(name string) *agent {
	w.n++
	a := &agent{w: w, name: name, store: w.place.Open()}
	copy(a.session.Secret[:], fmt.Sprintf("secret-%s-%d", name, w.n))
	return a
}

func (a *agent) meta() grant.Meta { return a.w.meta(grant.Agent(a.name)) }

func (a *agent) acquisition() grant.Acquire {
	return grant.Acquire{Meta: a.meta(), Session: a.session.Secret.Hash()}
}

// acquire tries once.
func (a *agent) acquire() (grant.Revision, error) {
	rev, err := a.w.do(a.store, a.acquisition())
	if err == nil {
		a.session.Grant = rev.Page().Grant
	}
	return rev, err
}

// holds begins a grant that must be had.
func (w *world) holds(name string) *agent {
	w.t.Helper()
	a := w.agent(name)
	w.must(a.acquire())
	return a
}

func (a *agent) petition() { a.w.t.Helper(); a.w.must(a.w.do(a.store, grant.Petition{Meta: a.meta()})) }

// waits makes an agent with a petition.
func (w *world) waits(name string) *agent {
	w.t.Helper()
	a := w.agent(name)
	a.petition()
	return a
}

func (a *agent) heartbeat() (grant.Revision, error) {
	return a.w.do(a.store, grant.Heartbeat{Meta: a.meta(), Session: a.session})
}

// landing stores what is to land, and gives the command for it.
func (a *agent) landing(text string, ids ...grant.Range) grant.Land {
	a.w.t.Helper()
	digest, _, err := a.store.Put(a.w.ctx, container, grant.KindArtifact, strings.NewReader(text))
	if err != nil {
		a.w.t.Fatal(err)
	}
	return grant.Land{Meta: a.meta(), Session: a.session, Base: a.w.page().Register.Head, Manifest: digest, IDs: ids}
}

// land lands, and keeps in quarantine what is to be kept, as a client does.
func (a *agent) land(cmd grant.Land) (grant.Revision, error) {
	rev, err := a.w.do(a.store, cmd)
	var r *grant.Refusal
	if errors.As(err, &r) && r.Quarantined() {
		content := a.w.object(grant.KindArtifact, cmd.Manifest)
		why, merr := json.Marshal(map[string]any{"code": r.Code, "yours": r.Yours, "ended": r.Ended, "manifest": cmd.Manifest})
		for _, data := range [][]byte{content, why} {
			if _, _, perr := a.store.Put(a.w.ctx, container, grant.KindQuarantine, bytes.NewReader(data)); perr != nil || merr != nil {
				a.w.t.Fatal(perr, merr)
			}
		}
	}
	return rev, err
}

func (a *agent) release() (grant.Revision, error) {
	return a.w.do(a.store, grant.Release{Meta: a.meta(), Session: a.session, ReadBack: a.w.page().Register.Head})
}

// landsAndReleases ends a grant as it should end.
func (a *agent) landsAndReleases(text string) {
	a.w.t.Helper()
	a.w.must(a.land(a.landing(text)))
	a.w.must(a.release())
}

func (w *world) clear(operator string) (grant.Revision, error) {
	return w.do(w.place.Open(), grant.Clear{Meta: w.meta(grant.Operator(operator)), Reason: operator + " saw it silent", Seen: w.page().Rev})
}

// object reads an object whole.
func (w *world) object(kind grant.Kind, d grant.Digest) []byte {
	w.t.Helper()
	r, err := w.store.Get(w.ctx, container, kind, d)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		w.t.Fatal(err)
	}
	return data
}

// quarantined wants the landing refused with the code, kept, and the register as it was.
func (w *world) quarantined(code grant.Code, a *agent, cmd grant.Land) {
	w.t.Helper()
	_ = w.refusal(code, a, cmd)
}

// refusal is quarantined, and gives the refusal.
func (w *world) refusal(code grant.Code, a *agent, cmd grant.Land) *grant.Refusal {
	w.t.Helper()
	before := w.page().Register
	err := w.failure(code, func() (grant.Revision, error) { return a.land(cmd) })
	if w.page().Register != before {
		w.t.Fatal("a refused landing moved the register")
	}
	kept, err2 := w.store.Objects(w.ctx, container, grant.KindQuarantine)
	if err2 != nil || len(kept) < 2 {
		w.t.Fatalf("quarantine has %d objects, %v", len(kept), err2)
	}
	if !bytes.Equal(w.object(grant.KindQuarantine, cmd.Manifest), w.object(grant.KindArtifact, cmd.Manifest)) {
		w.t.Fatal("the quarantine gives back other bytes")
	}
	var r *grant.Refusal
	errors.As(err, &r)
	return r
}
