package grant

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The explorer goes through every order of what a few actors can do to one container. Two agents and an
// operator evaluate commands and swap; between the two anything may happen. An answer may be lost, its swap
// may come late or never; an agent may forget its session. Nobody has a clock: at each evaluation an actor is
// free to believe that it is early or that every deadline has passed.
//
// A page is known by what the machine's answers depend on, so that histories which come to the same are
// explored once: kin keeps one page for each. Every swap that succeeds is checked as Verify checks it.
type explorer struct {
	sameAgent  bool  // both sessions are of one agent
	nonceless  bool  // a bug: contenders take equal content for their own
	assertOnly bool  // a bug: a landing is checked, and then written whatever the page is
	unverified bool  // look at the world alone, not at what Verify says of each swap
	losses     uint8 // how many answers may be lost and sessions forgotten
	bug        planted

	kin    map[string]int16
	pages  []Revision
	memo   map[question]answer
	seen   map[situation]bool
	swaps  map[Op]int
	nonces int
	found  string // what was broken
}

const (
	agents    = 2
	clearer   = agents // the operator
	maxGrants = 3
	maxLanded = 2
)

type act uint8

const (
	actPetition act = iota
	actWithdraw
	actAcquire
	actBeat
	actLease
	actLand
	actRelease
	actClear
	acts
)

// What an actor believes of the time.
const (
	tooEarly = iota // that no time has passed
	halfway         // half of the extension
	pastAll         // that every deadline has passed
	beliefs
)

type phase uint8

const (
	idle     phase = iota
	prepared       // evaluated, not yet sent
	unknown        // sent, and no answer came
)

// local is what an actor knows.
type local struct {
	grant  uint8 // whose session it has; 0: none
	phase  phase
	act    act
	stale  bool  // the head is no longer the one that it evaluated on
	next   int16 // what it made, -1 when stale; the grant of its page when it has won
	flight bool  // its swap is on the way
	won    bool  // its swap succeeded, and it does not know
}

type situation struct {
	head   int16
	actors [agents + 1]local
	lost   uint8
}

type question struct {
	head   int16
	actor  uint8
	grant  uint8
	act    act
	belief uint8
}

type answer struct {
	next int16 // -1: refused
	bad  string
}

func (x *explorer) agent(i int) string {
	if x.sameAgent {
		return "anna"
	}
	return []string{"anna", "ben"}[i]
}

func (x *explorer) secret(actor int, grant int64) Secret {
	if x.nonceless {
		actor = 0 // nothing random in it: sessions of one agent are alike
	}
	return Secret{byte(actor + 1), byte(grant)}
}

// key is what the answers of the machine depend on, when beliefs are relative to the page's own times.
func (x *explorer) key(p *Page) string {
	var b strings.Builder
	fmt.Fprint(&b, p.State, p.Grant, p.Holder, p.Expiry-p.GrantTime, p.Register.Seq, p.Landing != nil, p.IDs.Next, p.IDs.Free, p.Silent)
	for _, l := range p.IDs.Leases {
		fmt.Fprint(&b, "L", l.Lo, l.Hi, l.Used)
	}
	for _, w := range p.Queue {
		fmt.Fprint(&b, "W", w.Agent, w.Misses)
	}
	if e := p.Ended; e != nil {
		fmt.Fprint(&b, "E", e.Grant, e.How, e.Holder)
	}
	return b.String()
}

func (x *explorer) keep(r Revision) int16 {
	k := x.key(r.page)
	if i, ok := x.kin[k]; ok {
		return i
	}
	i := int16(len(x.pages))
	x.kin[k] = i
	x.pages = append(x.pages, r)
	return i
}

// clock is the time that an actor believes in.
func clock(p *Page, belief uint8) Time {
	at := p.Stamp.T
	if p.State == StateHeld {
		at = p.GrantTime
	} else if p.Offer != nil {
		at = p.Offer.OpenedAt
	}
	switch belief {
	case halfway:
		return at.Add(p.Params.Extension.Duration() / 2)
	case pastAll:
		at = max(at, p.Expiry)
		for _, w := range p.Queue {
			at = max(at, w.Since)
		}
		return at.Add(10 * p.Params.Window.Duration())
	}
	return at
}

// ask has the machine evaluate, once for each question, and checks what it made.
func (x *explorer) ask(q question) answer {
	if q.act < actBeat || q.act == actClear {
		q.grant = 0 // these bring no session
	}
	if a, ok := x.memo[q]; ok {
		return a
	}
	head := x.pages[q.head]
	p := head.page
	x.nonces++
	m := Meta{Container: name, Nonce: fmt.Sprintf("nonce-%d", x.nonces)}
	s := Session{Grant: int64(q.grant)}
	if q.actor == clearer {
		m.By = Operator("olga")
	} else {
		m.By = Agent(x.agent(int(q.actor)))
		s.Secret = x.secret(int(q.actor), s.Grant)
	}
	var cmd Command
	switch q.act {
	case actPetition:
		cmd = Petition{m}
	case actWithdraw:
		cmd = Withdraw{m}
	case actAcquire:
		cmd = Acquire{m, x.secret(int(q.actor), p.Grant+1).Hash()}
	case actBeat:
		cmd = Heartbeat{m, s}
	case actLease:
		cmd = LeaseIDs{Meta: m, Session: s, Count: 2}
	case actLand:
		l := Land{Meta: m, Session: s, Base: p.Register.Head, Manifest: p.Digest}
		for _, lease := range p.IDs.Leases {
			l.IDs = append(l.IDs, Range{Lo: lease.Lo, Hi: lease.Lo})
		}
		cmd = l
	case actRelease:
		cmd = Release{m, s, p.Register.Head}
	case actClear:
		cmd = Clear{Meta: m, Reason: "silent", Seen: p.Rev}
	}
	a := answer{next: -1}
	next, err := apply(head, cmd, Env{Now: Stamp{SourceStore, clock(p, q.belief)}}, x.bug)
	switch {
	case err == nil:
		if b := pageInvariant(next.page); b != nil {
			a.bad = b.Error()
		} else if b := transition(head, next); b != nil && !x.unverified {
			a.bad = b.Error()
		}
		a.next = x.keep(next)
	case CodeOf(err) == "":
		a.bad = err.Error()
	}
	x.memo[q] = a
	return a
}

// useful bounds the world: no more grants, landings and leases than these.
func (x *explorer) useful(p *Page, a act, at local) bool {
	switch a {
	case actAcquire:
		return p.Grant < maxGrants
	case actClear:
		return p.State == StateHeld && p.Grant < maxGrants
	case actLand:
		return p.Register.Seq < maxLanded && at.grant > 0
	case actLease:
		return len(p.IDs.Leases) == 0 && p.IDs.Next < 4 && at.grant > 0
	case actBeat, actRelease:
		return at.grant > 0
	}
	return true
}

// moved is the situation after the head became next, by a swap of an actor: all that others have made is stale.
func (x *explorer) moved(s situation, next int16) situation {
	s.head = next
	for i := range s.actors {
		a := &s.actors[i]
		a.flight = false // it will find another head
		switch {
		case a.phase == idle || a.won:
		case x.assertOnly || x.nonceless:
			a.stale, a.next = true, -1
		default: // its swap, or its look for it, can have one end alone: it evaluates again
			*a = local{grant: a.grant}
		}
	}
	return s
}

// learn is an actor that knows now that its swap succeeded.
func (x *explorer) learn(s *situation, i int) {
	a := s.actors[i]
	s.actors[i] = local{grant: a.grant}
	if a.act == actAcquire {
		s.actors[i].grant = uint8(a.next)
	}
}

func (x *explorer) violation(s situation) string {
	p := x.pages[s.head].page
	for i := range agents {
		g := s.actors[i].grant
		for j := range i {
			if g > 0 && s.actors[j].grant == g {
				return fmt.Sprintf("two sessions hold grant %d", g)
			}
		}
		// Whoever checks the number alone, "not lower", must refuse a holder who was cleared.
		if e := p.Ended; g > 0 && e != nil && e.How == HowCleared && e.Grant == int64(g) && int64(g) >= p.Grant {
			return fmt.Sprintf("grant %d was cleared, and its number still passes", g)
		}
	}
	return ""
}

// steps are the situations that can come next.
func (x *explorer) steps(s situation, to func(situation)) {
	p := x.pages[s.head].page
	for i := range s.actors {
		a := s.actors[i]
		if a.flight && !a.stale { // the swap arrives
			n := x.swap(s, i)
			n.actors[i].phase, n.actors[i].won = unknown, true
			to(n)
		}
		switch a.phase {
		case prepared:
			if a.stale && !(x.assertOnly && a.act == actLand) { // CONFLICT: evaluate again
				n := s
				n.actors[i] = local{grant: a.grant}
				if x.nonceless && a.act == actAcquire && p.Holder != nil && p.Holder.Agent == x.agent(i) {
					n.actors[i].grant = uint8(p.Grant) // "that is what I wrote"
				}
				to(n)
				continue
			}
			n := x.swap(s, i)
			x.learn(&n, i)
			to(n)
			if s.lost < x.losses && !a.stale {
				n := s
				n.lost++
				n.actors[i].phase, n.actors[i].flight = unknown, true
				to(n)
			}
		case unknown: // looks for its nonce
			n := s
			switch {
			case a.won:
				x.learn(&n, i)
				to(n)
			case a.stale: // it is not there, and can no longer come
				n.actors[i] = local{grant: a.grant}
				to(n)
			default: // once more, while the first may still come
				n.actors[i].phase = prepared
				to(n)
			}
		case idle:
			x.evaluate(s, i, to)
		}
		if a.grant > 0 && s.lost < x.losses && a.phase == idle {
			n := s
			n.lost++
			n.actors[i] = local{}
			to(n)
		}
	}
}

// evaluate is every command of an idle actor, under every belief.
func (x *explorer) evaluate(s situation, i int, to func(situation)) {
	from, end := actPetition, actClear
	if i == clearer {
		from, end = actClear, acts
	}
	for c := from; c < end; c++ {
		if !x.useful(x.pages[s.head].page, c, s.actors[i]) {
			continue
		}
		for b := range uint8(beliefs) {
			if b == halfway && c != actBeat {
				continue
			}
			a := x.ask(question{s.head, uint8(i), s.actors[i].grant, c, b})
			if a.bad != "" && !x.assertOnly {
				x.found = a.bad
				return
			}
			if a.next < 0 {
				continue
			}
			n := s
			n.actors[i].phase, n.actors[i].act, n.actors[i].next = prepared, c, a.next
			to(n)
		}
	}
}

// swap is an actor's compare-and-swap, on the head that it evaluated on.
func (x *explorer) swap(s situation, i int) situation {
	a := s.actors[i]
	next := a.next
	if a.stale { // only with the planted bug: the write comes after the check, whatever the page is now
		head := x.pages[s.head]
		p := head.page.clone()
		x.nonces++
		p.Rev, p.PrevHash, p.Nonce, p.Op, p.By = p.Rev+1, head.hash, fmt.Sprintf("nonce-%d", x.nonces), OpLand, Agent(x.agent(i))
		p.Audit, p.Passed = nil, nil
		l := Landing{Base: p.Register.Head, ID: p.Nonce, N: 1, SHA256: p.Digest}
		if p.Landing != nil {
			l.N = p.Landing.N + 1
		}
		l.New = HeadAfter(name, l.Base, p.Register.Seq+1, p.Grant, l.ID, l.SHA256)
		p.Register, p.Landing, p.IDs.Leases = Register{Head: l.New, Seq: p.Register.Seq + 1}, &l, list[Lease](nil)
		for _, lease := range head.page.IDs.Leases {
			p.IDs.Free = join(p.IDs.Free, without(Range{Lo: lease.Lo, Hi: lease.Hi}, lease.Used))
		}
		r, err := seal(p)
		if err != nil {
			panic(err)
		}
		if b := transition(head, r); b != nil {
			x.found = b.Error()
		}
		next = s.head
	}
	x.swaps[x.pages[next].page.Op]++
	n := x.moved(s, next)
	n.actors[i] = a
	n.actors[i].flight, n.actors[i].next = false, int16(x.pages[next].page.Grant)
	return n
}

// run explores until everything was seen or something is broken.
func (x *explorer) run() {
	x.kin, x.memo, x.seen, x.swaps = map[string]int16{}, map[question]answer{}, map[situation]bool{}, map[Op]int{}
	first, err := Apply(Revision{}, Create{Meta{name, "nonce-0-create", Operator("olga")}, Params{Cap: 4, Extension: 2, Window: 1, PetitionIdle: 24 * 3600}},
		Env{Now: Stamp{SourceStore, start}})
	if err != nil {
		panic(err)
	}
	todo := []situation{{head: x.keep(first)}}
	x.seen[todo[0]] = true
	for len(todo) > 0 && x.found == "" {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x.steps(s, func(n situation) {
			if x.seen[n] {
				return
			}
			x.seen[n] = true
			if v := x.violation(n); v != "" {
				x.found = v
			}
			todo = append(todo, n)
		})
	}
}

// TestEveryOrder explores the worlds that must hold.
func TestEveryOrder(t *testing.T) {
	for _, same := range []bool{false, true} {
		began := time.Now()
		x := &explorer{sameAgent: same, losses: 1}
		if os.Getenv("STILE_NIGHTLY") != "" {
			x.losses = 2
		}
		if testing.Short() {
			x.losses = 0
		}
		x.run()
		t.Logf("one agent %t: %d situations, %d pages, %d evaluations, %.1f s; swaps %v", same, len(x.seen), len(x.pages), len(x.memo), time.Since(began).Seconds(), x.swaps)
		if x.found != "" {
			t.Errorf("one agent %t: %s", same, x.found)
		}
		for _, op := range []Op{OpPetition, OpWithdraw, OpAcquire, OpHeartbeat, OpIDs, OpLand, OpRelease, OpClear} {
			if x.swaps[op] == 0 {
				t.Errorf("one agent %t: nobody ever did %s", same, op)
			}
		}
	}
}
