package grant

import (
	"fmt"
	"slices"
	"strings"
)

func (s *step) acquire(c Acquire) *Refusal {
	p, n, agent := s.old, s.next, s.meta.By.Name
	if !c.Session.valid() {
		return s.bad("a session is the SHA-256 of its secret")
	}
	if p.Holder != nil && p.Holder.Session == c.Session || p.Ended != nil && p.Ended.Holder.Session == c.Session {
		return s.bad("the session has had a grant already: draw a fresh secret")
	}
	for _, other := range s.env.Elsewhere {
		if other != p.Container {
			return s.refuse(CodeNested, fmt.Sprintf("%s holds a grant on %s", agent, clip(other, MaxName)), "grant release "+word(clip(other, MaxName)),
				"ends that one first: there are no nested locks")
		}
	}
	turn, queued := TurnOf(p, agent, s.env)
	if from, over := p.over(s.env); p.State == StateHeld && !over {
		cause := fmt.Sprintf("%s holds grant %d, for another %s unless it extends", p.Holder.Agent, p.Grant, holdsOn(p, s.now))
		if s.now >= p.Expiry {
			cause = fmt.Sprintf("grant %d of %s has expired by a clock that is not the store's; unless it is heard of, it is over at %s", p.Grant, p.Holder.Agent, from)
		}
		r := s.refuse(CodeHeld, cause, "grant petition "+word(p.Container), "joins the queue")
		if queued && turn.Petition != 0 {
			r.Next, r.Hint, r.Turn = "grant acquire "+word(p.Container), "again, when it has ended", &turn
		}
		return r
	}
	if !s.bug.ignoreQueue && (!queued || !turn.May(s.now)) {
		return s.notYourTurn(turn, queued)
	}
	if p.Grant >= MaxNumber {
		return s.refuse(CodeExhausted, "the last number has been granted", "", "")
	}
	if r := s.settle(); r != nil {
		return r
	}
	if p.State == StateHeld {
		s.end(HowTakenOver, "")
	}
	s.takeTurn(turn)
	n.State, n.Grant = StateHeld, p.Grant+1
	n.Holder = &Holder{Agent: agent, Session: c.Session}
	n.GrantTime, n.Heartbeat = s.now, s.now
	n.Expiry = s.reach(s.now)
	if s.bug.silentForgets {
		n.Silent = Silence{}
	}
	return nil
}

// reach is how far a grant that began at start can be extended now.
func (s *step) reach(start Time) Time {
	return min(s.now.Add(s.old.Params.Extension.Duration()), start.Add(s.old.Params.Cap.Duration()))
}

// end ends the present grant: what belonged to it goes, its leases are burned. Whoever ends it without a
// release turns the silence on, and a silence that is on already stays the older one.
func (s *step) end(how How, reason string) {
	p, n := s.old, s.next
	n.Ended = &End{At: s.now, By: s.meta.By, Grant: p.Grant, Holder: *p.Holder, How: how, Reason: reason, Rev: n.Rev}
	if how != HowReleased && !n.Silent.On {
		n.Silent = Silence{On: true, SinceGrant: p.Grant, Why: how}
	}
	if s.bug.reissue {
		for _, l := range p.IDs.Leases {
			n.IDs.Free = join(n.IDs.Free, []Range{{Lo: l.Lo, Hi: l.Hi}})
		}
	}
	n.IDs.Leases = list[Lease](nil)
	n.Holder, n.Landing, n.Running = nil, nil, nil
	n.GrantTime, n.Expiry, n.Heartbeat = 0, 0, 0
}

func (s *step) heartbeat(c Heartbeat) *Refusal {
	if r := s.live(c.Session); r != nil {
		return r
	}
	p, n := s.old, s.next
	reach := s.reach(p.GrantTime)
	if p.Expiry >= p.GrantTime.Add(p.Params.Cap.Duration()) {
		return s.refuse(CodePastCap, fmt.Sprintf("grant %d ends at %s and cannot be extended further", p.Grant, p.Expiry),
			"grant land "+word(p.Container)+" FILE…", "land what there is, and release")
	}
	n.Heartbeat = max(p.Heartbeat, s.now)
	n.Expiry = max(p.Expiry, reach)
	if s.bug.expiryFalls {
		n.Expiry = reach
	}
	return nil
}

func (s *step) land(c Land) *Refusal {
	if r := s.live(c.Session); r != nil {
		return r
	}
	if r := s.settle(); r != nil {
		return r
	}
	if c.Empty != "" && len(c.IDs) > 0 {
		return s.bad("an empty landing has no ids")
	}
	if c.Empty != "" {
		if r := s.reasonFor("an empty landing", c.Empty); r != nil {
			return r
		}
	}
	return s.moveHead(landing{c.Base, c.Manifest, s.meta.Nonce, c.Empty, c.Note, c.IDs, c.Keep})
}

// landing is what Land and Finish have in common.
type landing struct {
	base, manifest  Digest
	id, empty, note string
	ids             []Range
	keep            []int64
}

func (s *step) moveHead(l landing) *Refusal {
	p, n := s.old, s.next
	if fault := textFault("note", l.note); fault != "" {
		return s.bad(fault)
	}
	if !l.manifest.valid() {
		return s.bad("a manifest is named by its SHA-256")
	}
	if l.base != p.Register.Head {
		return s.refuse(CodeRegisterMoved, fmt.Sprintf("the register's head is %s, the work began from %s", short(p.Register.Head), short(l.base)),
			"register show "+word(p.Container), "look at what landed, and land again on that head")
	}
	if p.Register.Seq >= MaxNumber {
		return s.refuse(CodeExhausted, "the register is full", "", "")
	}
	ids, r := s.useIDs(l.ids, l.keep)
	if r != nil {
		return r
	}
	count := int64(1)
	if p.Landing != nil {
		count = p.Landing.N + 1
	}
	seq := p.Register.Seq + 1
	head := HeadAfter(p.Container, p.Register.Head, seq, p.Grant, l.id, l.manifest)
	n.Register = Register{Head: head, Seq: seq}
	n.Landing = &Landing{Base: p.Register.Head, Empty: l.empty, ID: l.id, IDs: ids, N: count, New: head, SHA256: l.manifest}
	n.Note = l.note
	return nil
}

func (s *step) release(c Release) *Refusal {
	if r := s.proves(c.Session); r != nil {
		return r
	}
	p, n := s.old, s.next
	if r := s.settle(); r != nil {
		return r
	}
	if !s.bug.releaseUnlanded {
		if p.Landing == nil {
			return s.refuse(CodeNotPushed, fmt.Sprintf("grant %d has landed nothing", p.Grant),
				"grant land "+word(p.Container)+" --empty REASON", "lands that there was nothing; or land files")
		}
		if c.ReadBack != p.Register.Head {
			return s.refuse(CodeNotPushed, fmt.Sprintf("the register was read back at %s, its head is %s", short(c.ReadBack), short(p.Register.Head)),
				"register show "+word(p.Container), "release when the landing can be read back")
		}
	}
	if len(p.IDs.Leases) > 0 && !s.bug.releaseUnlanded {
		return s.refuse(CodeLeasesOpen, fmt.Sprintf("%d leases of identifiers are open", len(p.IDs.Leases)),
			"grant land "+word(p.Container)+" --empty REASON", "a landing closes those that it does not keep")
	}
	s.end(HowReleased, "")
	n.State, n.Silent = StateFree, Silence{}
	return nil
}

func (s *step) clear(c Clear) *Refusal {
	p, n, name := s.old, s.next, word(s.old.Container)
	switch {
	case p.State == StateCleared:
		return s.refuse(CodeAlreadyCleared, "it is cleared already"+s.lastCleared(), "grant status "+name, "shows by whom")
	case p.State != StateHeld:
		return s.refuse(CodeNotHeld, "nobody holds it", "grant status "+name, "shows what there is")
	case slices.Contains(c.Own, p.Holder.Session):
		return s.refuse(CodeOwnGrant, "the grant is of the operator's own session", "grant release "+name, "ends it, after a landing")
	}
	if r := s.reasonFor("a clear", c.Reason); r != nil {
		return r
	}
	switch {
	case s.now < p.Expiry:
		return s.refuse(CodeNotExpired, fmt.Sprintf("%s holds grant %d for another %s", p.Holder.Agent, p.Grant, holdsOn(p, s.now)),
			"grant status "+name, "only a grant past its expiry can be cleared")
	case c.Seen != p.Rev:
		return s.refuse(CodeConflict, fmt.Sprintf("revision %d was looked at, the page is at %d", c.Seen, p.Rev), "grant status "+name, "look again first")
	case p.Grant >= MaxNumber:
		return s.refuse(CodeExhausted, "there is no number left to burn", "", "")
	}
	if r := s.settle(); r != nil {
		return r
	}
	n.Audit = &Audit{Grant: p.Grant, Holder: copyOf(p.Holder), Operator: s.meta.By.Name, Reason: c.Reason, Seen: c.Seen, SeenEpoch: p.Epoch}
	s.end(HowCleared, c.Reason)
	n.State, n.Grant = StateCleared, p.Grant+1
	if s.bug.clearKeepsNumber {
		n.Grant = p.Grant
	}
	return nil
}

func (s *step) lastCleared() string {
	e := s.old.Ended
	if e == nil || e.How != HowCleared {
		return ""
	}
	return fmt.Sprintf(": by %s at revision %d", e.By.Name, e.Rev)
}

// short is a digest as people compare it.
func short(d Digest) string {
	if d == "" {
		return "empty"
	}
	return clip(strings.TrimSpace(string(d)), 12)
}
