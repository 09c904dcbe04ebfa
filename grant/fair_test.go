package grant

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQueueBound plays queues of waiters who are prompt, slow or silent, under leads who release or die: who
// stands at place k and acquires when it may waits at most k grants and k windows, whoever comes later.
func TestQueueBound(t *testing.T) {
	checks(t, 1_000)
	longest := 0
	rapid.Check(t, func(rt *rapid.T) {
		e := newEstate(planted{})
		e.agents = nil
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		join := func() string {
			who := fmt.Sprintf("w%d", len(e.agents))
			e.agents = append(e.agents, who)
			must(e.apply(Petition{e.meta(Agent(who))}, Env{}))
			return who
		}
		// How long after its turn has come a waiter acquires; a silent one never does.
		delay := map[string]time.Duration{}
		window := smallParams.Window.Duration()
		must(e.acquire("lead", e.meta(Agent("lead")).Nonce, Env{}, false))
		place := rapid.IntRange(1, 7).Draw(rt, "place")
		for range place - 1 {
			who := join()
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 1:
				delay[who] = window / 100 * time.Duration(rapid.IntRange(0, 100).Draw(rt, "delay"))
			case 2:
				delay[who] = -1
			}
		}
		me := join()
		longest = max(longest, place)
		grants, waited := 1, time.Duration(0) // the grant that runs when the wait begins counts
		for {
			open := e.now
			if rapid.Bool().Draw(rt, "dies") {
				e.now = e.page().Expiry
				open = e.now
			} else {
				must(e.apply(Land{Meta: e.meta(Agent(e.page().Holder.Agent)), Session: e.sessions[len(e.sessions)-1], Base: e.page().Register.Head, Manifest: e.page().Digest}, Env{}))
				must(e.apply(Release{e.meta(Agent(e.page().Holder.Agent)), e.sessions[len(e.sessions)-1], e.page().Register.Head}, Env{}))
			}
			for range rapid.IntRange(0, 2).Draw(rt, "newcomers") {
				join()
			}
			next, at := "", Time(0)
			for _, w := range e.page().Queue {
				late := delay[w.Agent]
				turn, ok := TurnOf(e.page(), w.Agent, Env{Now: Stamp{T: open}})
				if !ok || late < 0 {
					continue
				}
				if from := max(turn.From, open).Add(late); next == "" || from < at {
					next, at = w.Agent, from
				}
			}
			waited += at.Sub(open)
			e.now = at
			before := e.page().Grant
			must(e.acquire(next, e.meta(Agent(next)).Nonce, Env{}, false))
			if e.page().Grant != before+1 {
				rt.Fatalf("%s could not acquire when its turn had come", next)
			}
			if next == me {
				break
			}
			grants++
			if rapid.Bool().Draw(rt, "again") {
				must(e.apply(Petition{e.meta(Agent(next))}, Env{}))
			}
			if grants > place {
				break
			}
		}
		if grants > place || waited > time.Duration(place)*window {
			rt.Fatalf("place %d waited %d grants and %s, %d windows", place, grants, waited, waited/window)
		}
	})
	t.Logf("up to place %d", longest)
}
