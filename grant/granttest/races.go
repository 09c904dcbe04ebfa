package granttest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stile-lock/stile/grant"
)

// raceTests are those in which two come at once. What two processes do between their reading and their swap
// makes no difference to a store, so each is played in both orders; then with all at it together.
var raceTests = []test{
	{"Failure11TwoSessionsOfOneAgent", failure11},
	{"Failure14TwoOperatorsClear", failure14},
	{"Failure15ClearRacesAHeartbeat", failure15},
	{"Failure16ClearRacesATakeover", failure16},
	{"Failure19HeadReturnsAsTheNextAcquires", failure19},
	{"ConcurrentSwaps", concurrentSwaps},
	{"ConcurrentCommands", concurrentCommands},
}

// together runs n functions at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func failure11(w *world) {
	for range 10 {
		sessions := []*agent{w.agent("anna"), w.agent("anna")}
		cmds := []grant.Acquire{sessions[0].acquisition(), sessions[1].acquisition()}
		errs := make([]error, 2)
		revs := make([]grant.Revision, 2)
		together(2, func(i int) {
			s := sessions[i].store
			revs[i], _, errs[i] = grant.Do(w.ctx, s, grant.Request{Command: cmds[i], Env: w.env(s)})
		})
		won := 0
		if errs[0] != nil {
			won = 1
		}
		if errs[won] != nil || grant.CodeOf(errs[1-won]) != grant.CodeHeld {
			w.t.Fatalf("two sessions at once: %v, %v", errs[0], errs[1])
		}
		winner := sessions[won]
		winner.session.Grant = revs[won].Page().Grant
		if h := w.page().Holder; h == nil || h.Session != winner.session.Secret.Hash() {
			w.t.Fatalf("the page names %+v", h)
		}
		loser := sessions[1-won]
		loser.session.Grant = winner.session.Grant
		w.quarantined(grant.CodeNotHolder, loser, loser.landing("the loser's"))
		winner.landsAndReleases("the winner's")
	}
}

func failure14(w *world) {
	w.holds("anna")
	w.pass(extension)
	seen := w.page().Rev
	const n = 4
	errs := make([]error, n)
	cmds := make([]grant.Clear, n)
	for i := range n {
		cmds[i] = grant.Clear{Meta: w.meta(grant.Operator(fmt.Sprintf("olga%d", i))), Reason: "silent", Seen: seen}
	}
	together(n, func(i int) {
		s := w.place.Open()
		_, _, errs[i] = grant.Do(w.ctx, s, grant.Request{Command: cmds[i], Env: w.env(s)})
	})
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case grant.CodeOf(err) != grant.CodeAlreadyCleared:
			w.t.Errorf("an operator who came second: %v", err)
		}
	}
	audits := 0
	for _, r := range w.chain() {
		if r.Page().Audit != nil {
			audits++
		}
	}
	if done != 1 || audits != 1 {
		w.t.Errorf("%d clears, %d audit lines", done, audits)
	}
}

// duel prepares two commands on one head and swaps them in the order given: the second must conflict.
func (w *world) duel(clearFirst bool, clearing, other func() (grant.Ref, grant.Revision)) {
	w.t.Helper()
	first, second := other, clearing
	if clearFirst {
		first, second = clearing, other
	}
	b1, n1 := first()
	b2, n2 := second()
	if err := w.place.Open().Swap(w.ctx, b1, n1); err != nil {
		w.t.Fatal(err)
	}
	if err := w.place.Open().Swap(w.ctx, b2, n2); !errors.Is(err, grant.ErrConflict) {
		w.t.Fatalf("the second swap on one base: %v", err)
	}
}

func failure15(w *world) {
	for _, clearFirst := range []bool{true, false} {
		a := w.holds("anna")
		seen := w.page().Rev
		beat := func() (grant.Ref, grant.Revision) { // its clock says that there is still time
			w.pass(-1e6)
			defer w.pass(1e6)
			return w.prepare(grant.Heartbeat{Meta: a.meta(), Session: a.session})
		}
		clearing := grant.Clear{Meta: w.meta(grant.Operator("olga")), Reason: "silent", Seen: seen}
		w.pass(extension)
		w.duel(clearFirst, func() (grant.Ref, grant.Revision) { return w.prepare(clearing) }, beat)
		if clearFirst {
			w.fails(grant.CodeFenced, a.heartbeat)
			continue
		}
		w.fails(grant.CodeNotExpired, func() (grant.Revision, error) { return w.do(w.store, clearing) })
		a.landsAndReleases("anna's work")
	}
}

func failure16(w *world) {
	for _, clearFirst := range []bool{true, false} {
		a := w.holds("anna")
		b := w.agent("ben")
		taking := b.acquisition()
		w.pass(extension)
		clearing := grant.Clear{Meta: w.meta(grant.Operator("olga")), Reason: "silent", Seen: w.page().Rev}
		w.duel(clearFirst, func() (grant.Ref, grant.Revision) { return w.prepare(clearing) },
			func() (grant.Ref, grant.Revision) { return w.prepare(taking) })
		if p := w.page(); p.Grant != a.session.Grant+1 {
			w.t.Fatalf("grant %d after one of both on grant %d", p.Grant, a.session.Grant)
		}
		if clearFirst {
			b.session.Grant = w.must(w.do(b.store, taking)).Grant
		} else {
			w.fails(grant.CodeNotExpired, func() (grant.Revision, error) { return w.do(w.store, clearing) })
			b.session.Grant = w.page().Grant
		}
		w.quarantined(grant.CodeFenced, a, a.landing("anna's work"))
		b.landsAndReleases("ben's work")
	}
}

func failure19(w *world) {
	for _, nextFirst := range []bool{true, false} {
		a := w.holds("anna")
		b, c := w.waits("ben"), w.waits("carl")
		w.pass(extension + window) // expired: ben's window is over, and he comes back now
		w.fails(grant.CodeNotYourTurn, w.agent("newcomer").acquire)
		w.duel(nextFirst, func() (grant.Ref, grant.Revision) { return w.prepare(c.acquisition()) },
			func() (grant.Ref, grant.Revision) { return w.prepare(b.acquisition()) })
		want, loser, winner := "ben", c, b
		if nextFirst {
			want, loser, winner = "carl", b, c
		}
		if h := w.page().Holder; h.Agent != want {
			w.t.Fatalf("%s holds", h.Agent)
		}
		w.fails(grant.CodeHeld, loser.acquire)
		winner.session.Grant = w.page().Grant
		w.quarantined(grant.CodeFenced, a, a.landing("anna's work"))
		winner.landsAndReleases(want)
		w.must(loser.acquire())
		loser.landsAndReleases("the other")
	}
}

// Of many swaps on one base one succeeds, and the page is that one's.
func concurrentSwaps(w *world) {
	const n, rounds = 8, 12
	for range rounds {
		base := w.head()
		nexts := make([]grant.Revision, n)
		for i := range n {
			who := fmt.Sprintf("agent%d-%d", i, w.n)
			_, nexts[i] = w.prepare(grant.Petition{Meta: w.meta(grant.Agent(who))})
		}
		errs := make([]error, n)
		together(n, func(i int) { errs[i] = w.place.Open().Swap(w.ctx, base.Ref(), nexts[i]) })
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won < 0:
				won = i
			case !errors.Is(err, grant.ErrConflict):
				w.t.Fatalf("swap %d of one base: %v", i, err)
			}
		}
		if won < 0 || w.head().Hash() != nexts[won].Hash() {
			w.t.Fatalf("swap %d succeeded, and is not the head", won)
		}
		w.acked = append(w.acked, nexts[won].Ref())
	}
}

// Many clients whose answers get lost now and then: each of their commands has its effect exactly once.
func concurrentCommands(w *world) {
	const n, each = 6, 8
	agents := make([]*agent, n)
	for i := range n {
		agents[i] = w.waits(fmt.Sprintf("agent%d", i))
	}
	var mu sync.Mutex
	made := map[string]grant.Ref{}
	together(n, func(i int) {
		s := NewLossy(w.place.Open())
		for k := range each {
			switch k % 4 {
			case 1:
				s.Lose(AnswerLost)
			case 3:
				s.Lose(RequestLost)
			}
			nonce := fmt.Sprintf("touch-%d-%d", i, k)
			cmd := grant.Touch{Meta: grant.Meta{Container: container, Nonce: nonce, By: grant.Agent(agents[i].name)}}
			rev, _, err := grant.Do(w.ctx, s, grant.Request{Command: cmd, Env: w.env(s)})
			if err != nil {
				w.t.Error(err)
				return
			}
			mu.Lock()
			made[nonce] = rev.Ref()
			mu.Unlock()
		}
	})
	count := map[string]int{}
	for _, r := range w.chain() {
		if ref, ok := made[r.Page().Nonce]; ok {
			if count[r.Page().Nonce]++; ref != r.Ref() {
				w.t.Errorf("%s was answered with %v, and is %v", r.Page().Nonce, ref, r.Ref())
			}
		}
	}
	for nonce := range made {
		if count[nonce] != 1 {
			w.t.Errorf("%s has its effect %d times", nonce, count[nonce])
		}
	}
	if len(made) != n*each {
		w.t.Errorf("%d of %d commands were answered", len(made), n*each)
	}
}
