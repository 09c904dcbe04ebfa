package grant

import (
	"fmt"
	"time"
)

// Turn is a waiter's place in the queue.
type Turn struct {
	Petition int64 `json:"petition"` // its number; 0: no petition, and nobody waits
	Place    int   `json:"place"`    // 1 is the head
	// Open tells whether the container can be had by who is next: it is FREE, CLEARED or HELD past its expiry.
	Open bool `json:"open"`
	// From is when the waiter may acquire, 0 for at once. While not Open it is the earliest moment that can
	// be told: when the grant expires as it now stands.
	From Time `json:"from"`
	// Passes are those ahead that would be passed over.
	Passes []Passed `json:"passes"`
}

// May tells whether the waiter may acquire now, as far as its turn goes.
func (t Turn) May(now Time) bool { return t.Open && now >= t.From }

// TurnOf is an agent's turn; false when it has no petition and others have. The head may acquire at once.
// Each waiter behind may when everybody ahead has had a window: of the offer, or of the expiry when that is
// a takeover, or since that waiter came, if it came later.
func TurnOf(p *Page, agent string, env Env) (Turn, bool) {
	now := env.Now.T
	t, base, floor := Turn{Open: true, Passes: list[Passed](nil)}, env.OfferSeen, Time(0)
	if p.State == StateHeld {
		var over Time
		over, t.Open = p.over(env)
		// Before it not even the head may.
		base, floor = max(base, over), over
	} else if p.Offer != nil {
		// On a store without a clock the stamp is another's: who waits by its own counts from what it saw itself.
		base = max(base, p.Offer.OpenedAt)
	}
	place, at := 0, base
	for _, w := range p.Queue {
		if w.Agent != agent && p.idle(w, now) {
			t.Passes = append(t.Passes, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyIdle})
			continue
		}
		place++
		if place == 1 {
			at = max(base, w.Since)
		} else {
			at = max(at.Add(p.Params.Window.Duration()), w.Since)
		}
		if w.Agent == agent {
			t.Petition, t.Place, t.From = w.Rev, place, at
			if place == 1 {
				t.From = floor
			}
			return t, true
		}
		why := WhyMissed
		if w.Misses > 0 {
			why = WhyEnded
		}
		t.Passes = append(t.Passes, Passed{Agent: w.Agent, Petition: w.Rev, Why: why})
	}
	if place > 0 {
		return Turn{}, false
	}
	t.Place, t.From = 1, floor
	return t, true
}

// over tells from when a held grant counts as expired, and whether that has come. By the store's clock it is the
// expiry. A contender that has only its own clock might be a day ahead of a living holder; so it must besides have
// watched, by that clock, for as long as the holder may be silent, and seen no heartbeat.
func (p *Page) over(env Env) (from Time, ok bool) {
	from = p.Expiry
	if env.Now.Source == SourceClient {
		if env.OfferSeen == 0 {
			return max(from, env.Now.T).Add(p.Expiry.Sub(p.Heartbeat)), false
		}
		from = max(from, env.OfferSeen.Add(p.Expiry.Sub(p.Heartbeat)))
	}
	return from, env.Now.T >= from
}

// idle tells whether nobody has heard of a waiter for so long that its petition ends with the next one that
// acquires or joins.
func (p *Page) idle(w Waiter, now Time) bool {
	return now.Sub(w.Touched) >= p.Params.PetitionIdle.Duration()
}

// openOffer keeps the offer what it must be: there while nobody holds and somebody waits, for the queue's
// head, from the moment when it became the head.
func (s *step) openOffer() {
	n := s.next
	switch {
	case n.State == StateHeld || len(n.Queue) == 0:
		n.Offer = nil
	case n.Offer == nil || n.Offer.Petition != n.Queue[0].Rev:
		n.Offer = &Offer{OpenedAt: s.now, OpenedRev: n.Rev, Petition: n.Queue[0].Rev}
	}
}

func (p *Page) waiter(agent string) int {
	for i, w := range p.Queue {
		if w.Agent == agent {
			return i
		}
	}
	return -1
}

func (s *step) petition() *Refusal {
	agent := s.meta.By.Name
	if i := s.old.waiter(agent); i >= 0 {
		r := s.refuse(CodeDuplicate, fmt.Sprintf("%s waits already, since revision %d, at place %d", agent, s.old.Queue[i].Rev, i+1),
			"grant acquire "+word(s.old.Container), "asks whether it is its turn")
		if t, ok := TurnOf(s.old, agent, s.env); ok {
			r.Turn = &t
		}
		return r
	}
	n := s.next
	n.Queue = n.Queue[:0]
	for _, w := range s.old.Queue {
		if s.old.idle(w, s.now) {
			n.Passed = append(n.Passed, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyIdle})
		} else {
			n.Queue = append(n.Queue, w)
		}
	}
	if len(n.Queue) >= MaxQueue {
		return s.refuse(CodeLimit, fmt.Sprintf("%d wait already", MaxQueue), "", "")
	}
	n.Queue = append(n.Queue, Waiter{Agent: agent, Rev: n.Rev, Since: s.now, Touched: s.now})
	return nil
}

func (s *step) gone() *Refusal {
	return s.refuse(CodeGone, s.meta.By.Name+" has no petition", "grant petition "+word(s.old.Container), "joins the queue at its end")
}

func (s *step) touch() *Refusal {
	i := s.old.waiter(s.meta.By.Name)
	if i < 0 {
		return s.gone()
	}
	w := &s.next.Queue[i]
	w.Touched = max(w.Touched, s.now)
	return nil
}

func (s *step) withdraw() *Refusal {
	i := s.old.waiter(s.meta.By.Name)
	if i < 0 {
		return s.gone()
	}
	s.next.Queue = append(s.next.Queue[:i], s.next.Queue[i+1:]...)
	return nil
}

// takeTurn consumes the caller's petition. Who was passed over has missed an offer: the first time it goes to
// the end of the queue, the second time its petition ends. So each petition ahead costs those behind it one
// grant or one window, and no more.
func (s *step) takeTurn(t Turn) {
	n := s.next
	why := map[int64]Why{}
	for _, p := range t.Passes {
		why[p.Petition] = p.Why
	}
	if s.bug.plainMisses {
		why = nil
	} else {
		n.Passed = append(n.Passed, t.Passes...)
	}
	var stay, back []Waiter
	for _, w := range n.Queue {
		switch {
		case w.Agent == s.meta.By.Name:
		case why[w.Rev] == WhyMissed:
			w.Misses++
			w.Since = s.now
			back = append(back, w)
		case why[w.Rev] == "":
			stay = append(stay, w)
		}
	}
	n.Queue = list(append(stay, back...))
}

func (s *step) notYourTurn(t Turn, queued bool) *Refusal {
	c, agent := word(s.old.Container), s.meta.By.Name
	if !queued {
		return s.refuse(CodeNotYourTurn, fmt.Sprintf("%d wait, and %s does not", len(s.old.Queue), agent), "grant petition "+c, "joins the queue at its end")
	}
	next := agent
	if len(s.old.Queue) > 0 {
		next = s.old.Queue[0].Agent
	}
	r := s.refuse(CodeNotYourTurn, fmt.Sprintf("%s is at place %d; %s is next", agent, t.Place, next),
		"grant acquire "+c, fmt.Sprintf("again, from %s on", t.From))
	r.Turn = &t
	return r
}

// holdsOn says how long the present holder still has, in words.
func holdsOn(p *Page, now Time) string {
	return p.Expiry.Sub(now).Round(time.Second).String()
}
