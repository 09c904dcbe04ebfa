package granttest

import (
	"errors"
	"slices"
	"time"

	"github.com/stile-lock/stile/grant"
)

// failureTests are those of the design's list that need no damage and no race, by their numbers there.
var failureTests = []test{
	{"Failure01PausedPastExpiry", failure01},
	{"Failure02PausedBetweenCheckAndSwap", failure02},
	{"Failure03ContendersClockAhead", failure03},
	{"Failure04OldBase", failure04},
	{"Failure05HoldersClockBack", failure05},
	{"Failure06StoresClockAhead", failure06},
	{"Failure07AnswerLostAfterLand", failure07},
	{"Failure08AnswerLostAfterAcquireThenCrash", failure08},
	{"Failure09LandDeliveredTwice", failure09},
	{"Failure10SameNonceOtherBytes", failure10},
	{"Failure12ClearOfASilentHolder", failure12},
	{"Failure13ClearBeforeExpiry", failure13},
	{"Failure17HeadDiesBeforeAcquiring", failure17},
	{"Failure18HeadDiesAfterAcquiring", failure18},
	{"Failure20AllWaitersSilent", failure20},
	{"Failure21WithdrawMeetsTheOffer", failure21},
	{"Failure28ReleaseWithoutALanding", failure28},
	{"Failure29DeadGrantsIDs", failure29},
}

const (
	extension = 4 * time.Hour
	window    = 30 * time.Minute
)

func failure01(w *world) {
	a := w.holds("anna")
	late := a.landing("anna's work")
	b := w.waits("ben")
	w.pass(extension)
	w.must(b.acquire())
	r := w.refusal(grant.CodeFenced, a, late)
	if r.Yours != a.session.Grant || r.Ended == nil || r.Ended.How != grant.HowTakenOver || r.Holder == nil || r.Holder.Agent != "ben" || r.Next == "" {
		w.t.Errorf("the refusal says %+v", r)
	}
	b.landsAndReleases("ben's work")
	w.quarantined(grant.CodeFenced, a, late)
}

func failure02(w *world) {
	a := w.holds("anna")
	late := a.landing("anna's work")
	base, next := w.prepare(late)
	w.pass(extension)
	b := w.holds("ben")
	before := w.head()
	if err := a.store.Swap(w.ctx, base, next); !errors.Is(err, grant.ErrConflict) {
		w.t.Fatalf("a swap on an old base: %v", err)
	}
	if w.head().Hash() != before.Hash() {
		w.t.Fatal("the swap that conflicted changed the head")
	}
	w.quarantined(grant.CodeFenced, a, late)
	b.landsAndReleases("ben's work")
}

// A contender whose own clock is a day ahead must not take over from a holder who is alive.
func failure03(w *world) {
	a := w.holds("anna")
	b := w.agent("ben")
	own := func() grant.Time { return grant.TimeOf(w.clock.Now().Add(25 * time.Hour)) }
	firstSeen := own()
	try := func() (grant.Revision, error) {
		env := w.envAt(b.store, own(), grant.Witness{})
		rev, _, err := grant.Do(w.ctx, b.store, grant.Request{Command: b.acquisition(), Env: withOfferSeen(env, firstSeen)})
		return rev, err
	}
	w.fails(grant.CodeHeld, try)
	for range 5 { // the holder lives: each heartbeat is one more page, seen anew
		w.pass(extension - time.Minute)
		w.fails(grant.CodeHeld, try)
		w.must(a.heartbeat())
		firstSeen = own()
		w.fails(grant.CodeHeld, try)
	}
	w.must(a.land(a.landing("anna's work")))
	firstSeen = own()
	// And is gone: one extension after its last sign of life it is taken over.
	w.pass(extension - time.Second)
	w.fails(grant.CodeHeld, try)
	w.pass(time.Second)
	w.must(try())
}

func failure04(w *world) {
	a := w.waits("anna")
	var heads []grant.Revision
	for range 60 {
		heads = append(heads, w.head())
		w.must(w.do(a.store, grant.Touch{Meta: a.meta()}))
	}
	for i, base := range heads {
		env, _ := w.env(w.store)(w.ctx, base)
		next, err := grant.Apply(base, grant.Touch{Meta: a.meta()}, env)
		if err != nil {
			w.t.Fatal(err)
		}
		before := w.head().Hash()
		if err := w.place.Open().Swap(w.ctx, base.Ref(), next); !errors.Is(err, grant.ErrConflict) {
			w.t.Fatalf("a swap on a base %d revisions old: %v", len(heads)-i, err)
		}
		if w.head().Hash() != before {
			w.t.Fatal("it changed the head")
		}
	}
}

func failure05(w *world) {
	a := w.holds("anna")
	started, expiry := w.page().GrantTime, w.page().Expiry
	w.pass(-time.Hour)
	if p := w.must(a.heartbeat()); p.Expiry != expiry {
		w.t.Errorf("with the clock an hour back the expiry goes from %s to %s", expiry, p.Expiry)
	}
	w.pass(time.Hour)
	limit := started.Add(24 * time.Hour)
	for expiry < limit {
		w.pass(extension - time.Minute)
		p := w.must(a.heartbeat())
		if p.Expiry < expiry || p.Expiry > limit {
			w.t.Fatalf("expiry %s of a grant of %s", p.Expiry, started)
		}
		expiry = p.Expiry
	}
	for _, step := range []time.Duration{-time.Hour, -25 * time.Hour, 26 * time.Hour} {
		w.pass(step)
		w.fails(grant.CodePastCap, a.heartbeat)
	}
	if w.page().Expiry != limit {
		w.t.Errorf("the last expiry is %s", w.page().Expiry)
	}
}

func failure06(w *world) {
	a := w.holds("anna")
	late := a.landing("anna's work")
	w.pass(25 * time.Hour)
	w.quarantined(grant.CodeExpired, a, late)
	b := w.holds("ben")
	w.pass(-25 * time.Hour)
	w.quarantined(grant.CodeFenced, a, late)
	b.landsAndReleases("ben's work")
}

func failure07(w *world) {
	a := w.holds("anna")
	lossy := NewLossy(a.store)
	// The answer is lost, and found again by the nonce at once.
	lossy.Lose(AnswerLost)
	cmd := a.landing("one")
	rev, replayed, err := grant.Do(w.ctx, lossy, grant.Request{Command: cmd, Env: w.env(lossy)})
	if p := w.must(rev, err); p.Register.Seq != 1 || !replayed {
		w.t.Fatalf("landed %d times, replayed %v", p.Register.Seq, replayed)
	}
	// Neither can be had: UNKNOWN, whether it happened or not; later, elsewhere, the receipt by the nonce.
	for seq, loss := range []Loss{AnswerLost, RequestLost} {
		cmd, since := a.landing("more"), w.head().Ref()
		lossy.Lose(loss)
		_, _, err := grant.Do(w.ctx, &afterSwap{Lossy: lossy}, grant.Request{Command: cmd, Env: w.env(lossy)})
		if grant.CodeOf(err) != grant.CodeUnknown {
			w.t.Fatalf("got %v, want UNKNOWN", err)
		}
		rev, replayed, err := grant.Do(w.ctx, w.place.Open(), grant.Request{Command: cmd, Since: since, Env: w.env(w.store)})
		p := w.must(rev, err)
		if p.Register.Seq != int64(seq)+2 || p.Landing.ID != cmd.Nonce || replayed != (loss == AnswerLost) {
			w.t.Fatalf("the receipt is of landing %d, replayed %v", p.Register.Seq, replayed)
		}
	}
	w.must(a.release())
}

func failure08(w *world) {
	a := w.agent("anna")
	lossy := NewLossy(a.store)
	lossy.Lose(AnswerLost)
	since, cmd := w.head().Ref(), a.acquisition()
	_, _, err := grant.Do(w.ctx, &afterSwap{Lossy: lossy}, grant.Request{Command: cmd, Env: w.env(lossy)})
	if grant.CodeOf(err) != grant.CodeUnknown {
		w.t.Fatalf("got %v, want UNKNOWN", err)
	}
	// Without the secret, nobody: another one under the same nonce is another command.
	thief := w.agent("anna")
	stolen := cmd
	stolen.Session = thief.session.Secret.Hash()
	w.fails(grant.CodeOpIDReused, func() (grant.Revision, error) {
		rev, _, err := grant.Do(w.ctx, thief.store, grant.Request{Command: stolen, Since: since, Env: w.env(thief.store)})
		return rev, err
	})
	thief.session.Grant = 1
	w.quarantined(grant.CodeNotHolder, thief, thief.landing("stolen"))
	// With it, the same process or a later one goes on.
	again := &agent{w: w, name: "anna", store: w.place.Open(), session: a.session}
	rev, replayed, err := grant.Do(w.ctx, again.store, grant.Request{Command: cmd, Since: since, Env: w.env(again.store)})
	again.session.Grant = w.must(rev, err).Grant
	if !replayed || again.session.Grant != 1 {
		w.t.Fatalf("replayed %v, grant %d", replayed, again.session.Grant)
	}
	again.landsAndReleases("anna's work")

	// Had it been lost for good, the grant would have ended by its expiry.
	w.holds("carl")
	w.fails(grant.CodeHeld, w.agent("dora").acquire)
	w.pass(extension)
	w.holds("dora")
}

func failure09(w *world) {
	a := w.holds("anna")
	cmd := a.landing("anna's work")
	first := w.must(w.do(a.store, cmd))
	again := w.must(w.do(w.place.Open(), cmd))
	if again.Rev != first.Rev || w.page().Register.Seq != 1 {
		w.t.Fatalf("delivered twice: revisions %d and %d, %d landings", first.Rev, again.Rev, w.page().Register.Seq)
	}
	w.must(a.heartbeat()) // not the head any more
	rev, replayed, err := grant.Do(w.ctx, a.store, grant.Request{Command: cmd, Anywhere: true, Env: w.env(a.store)})
	if p := w.must(rev, err); !replayed || p.Rev != first.Rev || w.page().Register.Seq != 1 {
		w.t.Fatalf("delivered later: revision %d, replayed %v", p.Rev, replayed)
	}
	w.must(a.release())
	if rev, _, err = grant.Do(w.ctx, a.store, grant.Request{Command: cmd, Anywhere: true, Env: w.env(a.store)}); rev.Ref().Rev != first.Rev {
		w.t.Fatalf("after the grant has ended: %v", err)
	}
}

func failure10(w *world) {
	a := w.holds("anna")
	cmd := a.landing("anna's work")
	w.must(w.do(a.store, cmd))
	other := a.landing("other work")
	other.Nonce, other.Base = cmd.Nonce, cmd.Base
	w.fails(grant.CodeOpIDReused, func() (grant.Revision, error) { return w.do(a.store, other) })
	w.must(a.heartbeat())
	w.fails(grant.CodeOpIDReused, func() (grant.Revision, error) {
		rev, _, err := grant.Do(w.ctx, a.store, grant.Request{Command: other, Anywhere: true, Env: w.env(a.store)})
		return rev, err
	})
}

func failure12(w *world) {
	a := w.holds("anna")
	late := a.landing("anna's work")
	w.pass(extension)
	p := w.must(w.clear("olga"))
	if p.State != grant.StateCleared || p.Grant != a.session.Grant+1 || p.Audit == nil || p.Audit.Operator != "olga" ||
		p.Audit.Reason != "olga saw it silent" || grant.BadgeOf(p, p.Stamp.T) != grant.BadgeHolderSilent {
		w.t.Fatalf("cleared: %+v", p)
	}
	r := w.refusal(grant.CodeFenced, a, late)
	if r.Ended == nil || r.Ended.How != grant.HowCleared || r.Ended.Reason != "olga saw it silent" || r.Ended.By.Name != "olga" {
		w.t.Errorf("the holder is told %+v", r.Ended)
	}
	b := w.holds("ben")
	if b.session.Grant != a.session.Grant+2 {
		w.t.Errorf("the next grant is %d: the clear burned no number", b.session.Grant)
	}
}

func failure13(w *world) {
	w.holds("anna")
	w.pass(extension - time.Second)
	w.fails(grant.CodeNotExpired, func() (grant.Revision, error) { return w.clear("olga") })
}

func failure17(w *world) {
	a := w.holds("anna")
	w.waits("ben") // and is never heard of again
	c := w.waits("carl")
	a.landsAndReleases("anna's work")
	w.pass(window - time.Second)
	w.fails(grant.CodeNotYourTurn, c.acquire)
	w.pass(time.Second)
	p := w.must(c.acquire())
	if len(p.Passed) != 1 || p.Passed[0].Agent != "ben" || p.Passed[0].Why != grant.WhyMissed {
		w.t.Errorf("passed: %+v", p.Passed)
	}
	if len(p.Queue) != 1 || p.Queue[0].Agent != "ben" {
		w.t.Errorf("the queue is %+v", p.Queue)
	}
}

func failure18(w *world) {
	a := w.holds("anna")
	w.waits("ben")
	c := w.waits("carl")
	a.landsAndReleases("anna's work")
	w.holds("ben")
	w.fails(grant.CodeHeld, c.acquire)
	w.pass(extension)
	now := grant.TimeOf(w.clock.Now())
	if b := grant.BadgeOf(w.page(), now); b != grant.BadgeHolderSilent {
		w.t.Errorf("past the expiry the badge is %s", b)
	}
	w.must(c.acquire())
	if b := grant.BadgeOf(w.page(), now); b != grant.BadgeCaution {
		w.t.Errorf("with the next lead the badge is %s", b)
	}
	c.landsAndReleases("carl's work")
	if b := grant.BadgeOf(w.page(), now); b != grant.BadgeFree {
		w.t.Errorf("after a landing and release the badge is %s", b)
	}
}

func failure20(w *world) {
	a := w.holds("anna")
	w.waits("ben")
	w.waits("carl")
	a.landsAndReleases("anna's work")
	w.fails(grant.CodeNotYourTurn, w.agent("dora").acquire)
	w.pass(8 * 24 * time.Hour)
	if p := w.page(); p.State != grant.StateFree {
		w.t.Fatalf("state %s", p.State)
	}
	d := w.waits("dora")
	w.must(d.acquire())
	if q := w.page().Queue; len(q) != 0 {
		w.t.Errorf("silent waiters stay in the queue: %+v", q)
	}
}

func failure21(w *world) {
	a := w.holds("anna")
	b := w.waits("ben")
	c := w.waits("carl")
	a.landsAndReleases("anna's work")
	w.must(w.do(b.store, grant.Withdraw{Meta: b.meta()}))
	if p := w.must(c.acquire()); len(p.Passed) != 0 {
		w.t.Errorf("a withdrawal counts as missed: %+v", p.Passed)
	}
	w.fails(grant.CodeGone, func() (grant.Revision, error) { return w.do(b.store, grant.Withdraw{Meta: b.meta()}) })
}

func failure28(w *world) {
	a := w.holds("anna")
	w.fails(grant.CodeNotPushed, a.release)
	w.must(a.land(a.landing("anna's work")))
	w.fails(grant.CodeNotPushed, func() (grant.Revision, error) { // not read back
		return w.do(a.store, grant.Release{Meta: a.meta(), Session: a.session})
	})
	lossy := NewLossy(a.store)
	lossy.Lose(AnswerLost)
	since, cmd := w.head().Ref(), grant.Release{Meta: a.meta(), Session: a.session, ReadBack: w.page().Register.Head}
	_, _, err := grant.Do(w.ctx, &afterSwap{Lossy: lossy}, grant.Request{Command: cmd, Env: w.env(lossy)})
	if grant.CodeOf(err) != grant.CodeUnknown {
		w.t.Fatalf("got %v, want UNKNOWN", err)
	}
	rev, replayed, err := grant.Do(w.ctx, w.place.Open(), grant.Request{Command: cmd, Since: since, Env: w.env(w.store)})
	if p := w.must(rev, err); !replayed || p.State != grant.StateFree {
		w.t.Fatalf("released: %s, replayed %v", p.State, replayed)
	}
}

func failure29(w *world) {
	a := w.holds("anna")
	w.must(w.do(a.store, grant.LeaseIDs{Meta: a.meta(), Session: a.session, Count: 10}))
	mine := w.page().IDs.Leases[0]
	dead := grant.Range{Lo: mine.Lo, Hi: mine.Hi}
	w.pass(extension)
	b := w.holds("ben")
	w.fails(grant.CodeBadIDs, func() (grant.Revision, error) { return b.land(b.landing("anna's ids", dead)) })
	for range 3 {
		p := w.must(w.do(b.store, grant.LeaseIDs{Meta: b.meta(), Session: b.session, Count: 4}))
		if slices.ContainsFunc(p.IDs.Leases, func(l grant.Lease) bool { return l.Lo <= dead.Hi && l.Hi >= dead.Lo }) {
			w.t.Fatalf("ids of a dead grant are leased again: %+v", p.IDs.Leases)
		}
	}
	l := w.page().IDs.Leases[0]
	w.must(b.land(b.landing("ben's ids", grant.Range{Lo: l.Lo, Hi: l.Lo})))
	w.fails(grant.CodeBadIDs, func() (grant.Revision, error) { // of a lease that the landing closed
		return b.land(b.landing("again", grant.Range{Lo: l.Lo, Hi: l.Lo}))
	})
}
