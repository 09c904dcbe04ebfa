package grant

import "fmt"

// CheckWitness tells whether a head could be later than what was seen: ErrRollback otherwise.
func CheckWitness(head Revision, w Witness) error {
	p := head.page
	if p == nil || w.Rev == 0 {
		return nil
	}
	switch {
	case p.Epoch < w.Epoch:
		return fmt.Errorf("%w: the page is of epoch %d, epoch %d was seen", ErrRollback, p.Epoch, w.Epoch)
	case p.Epoch == w.Epoch && p.Rev < w.Rev:
		return fmt.Errorf("%w: the page is at revision %d, revision %d was seen", ErrRollback, p.Rev, w.Rev)
	case p.Epoch == w.Epoch && p.Rev == w.Rev && w.Hash != "" && head.hash != w.Hash:
		return fmt.Errorf("%w: revision %d is another than the one that was seen", ErrRollback, p.Rev)
	case p.Grant < w.Grant:
		return fmt.Errorf("%w: the page is at grant %d, grant %d was seen", ErrRollback, p.Grant, w.Grant)
	case p.Register.Seq < w.Register.Seq:
		return fmt.Errorf("%w: the page has %d landings, %d were seen", ErrRollback, p.Register.Seq, w.Register.Seq)
	}
	return nil
}

// WitnessOf is what to remember of a head: the higher of both in each.
func WitnessOf(head Revision, before Witness) Witness {
	p := head.page
	if p == nil {
		return before
	}
	w := before
	if p.Epoch > w.Epoch || p.Epoch == w.Epoch && p.Rev >= w.Rev {
		w.Epoch, w.Rev, w.Hash = p.Epoch, p.Rev, head.hash
	}
	w.Grant, w.Next = max(w.Grant, p.Grant), max(w.Next, p.IDs.Next)
	if p.Register.Seq >= w.Register.Seq {
		w.Register = p.Register
	}
	return w
}

// restore makes the first revision of a new epoch. What it cannot know it takes from the safe side: the
// number that was last seen is burned, free identifiers are given up, and the silence is on.
func (s *step) restore(c Restore) *Refusal {
	p, n, w := s.old, s.next, c.Witness
	if r := s.reasonFor("a restore", c.Reason); r != nil {
		return r
	}
	if w.Rev < 0 || w.Rev > MaxNumber || w.Grant < 0 || w.Grant > MaxNumber || w.Epoch < 0 || w.Epoch > MaxNumber || w.Next < 0 || w.Next > MaxNumber+1 ||
		w.Register.Seq < 0 || w.Register.Seq > MaxNumber || (w.Register.Seq > 0) != w.Register.Head.valid() || w.Hash != "" && !w.Hash.valid() {
		return s.bad("what the witness saw is not within bounds")
	}
	if p == nil {
		if w.Rev == 0 {
			return s.refuse(CodeRollback, "there is no page, and no witness of one", "grant create "+word(s.meta.Container), "creates it")
		}
		n.Params = c.Params.orDefault()
		if fault := paramsFault(n.Params); fault != "" {
			return s.bad(fault)
		}
		p = &Page{}
	} else if CheckWitness(s.head, w) == nil {
		return s.refuse(CodeRollback, fmt.Sprintf("nothing shows a loss: the page is at revision %d, and the witness saw revision %d", p.Rev, w.Rev),
			"grant status "+word(p.Container), "shows the page")
	}
	grant := max(p.Grant, w.Grant)
	if grant >= MaxNumber || max(p.Rev, w.Rev) >= MaxNumber || max(p.Epoch, w.Epoch) >= MaxNumber {
		return s.refuse(CodeExhausted, "there is no number above every witness", "", "")
	}
	n.Audit = &Audit{Grant: p.Grant, Holder: copyOf(p.Holder), Operator: s.meta.By.Name, Reason: c.Reason, Seen: p.Rev, SeenEpoch: p.Epoch}
	if p.Running != nil {
		n.Doubts = append(n.Doubts, Doubt{Command: p.Running.Command, Grant: p.Grant, ID: p.Running.ID, Started: p.Running.Started})
		n.Doubts = n.Doubts[max(0, len(n.Doubts)-maxDoubts):]
	}
	if p.Holder != nil {
		n.Ended = &End{At: s.now, By: s.meta.By, Grant: p.Grant, Holder: *p.Holder, How: HowLost, Reason: c.Reason, Rev: max(p.Rev, w.Rev) + 1}
	}
	if !n.Silent.On {
		n.Silent = Silence{On: true, SinceGrant: max(grant, 1), Why: HowLost}
	}
	n.Epoch, n.Rev, n.Grant, n.State = max(p.Epoch, w.Epoch)+1, max(p.Rev, w.Rev)+1, grant+1, StateCleared
	n.Holder, n.Landing, n.Running = nil, nil, nil
	n.GrantTime, n.Expiry, n.Heartbeat = 0, 0, 0
	n.IDs = Identifiers{Free: list[Range](nil), Leases: list[Lease](nil), Next: max(p.IDs.Next, w.Next, 1)}
	if w.Register.Seq > p.Register.Seq {
		n.Register = w.Register
	}
	return nil
}
