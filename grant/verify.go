package grant

import "fmt"

// Broken says which invariant a chain breaks, and where.
type Broken struct {
	Invariant string // "I1" to "I14"
	Container string
	Epoch     int64
	Rev       int64 // the revision that broke it
	Op        Op
	Detail    string
}

func (b *Broken) Error() string {
	return fmt.Sprintf("%s is broken at revision %d (%s) of %s: %s", b.Invariant, b.Rev, clip(string(b.Op), 16), clip(b.Container, MaxName), b.Detail)
}

func broken(p *Page, invariant, format string, args ...any) *Broken {
	return &Broken{Invariant: invariant, Container: p.Container, Epoch: p.Epoch, Rev: p.Rev, Op: p.Op, Detail: fmt.Sprintf(format, args...)}
}

// Verify checks a container's chain from its first revision, as Chain reads it, against the invariants. It
// shares no code with the commands, so that it finds their bugs too. The error is a *Broken.
//
//	I1   revisions rise by one, each names the hash of the one before
//	I2   a grant number is one session's; it rises at each acquire and clear, and never else
//	I3   what lands lands under a grant that is live: the current one, held, before its expiry
//	I4   the register's head moves from head to head, each landing's base is the head before
//	I5   no identifier is in two leases, but through the free ones; Next never falls; none lands twice
//	I6   a release follows a landing of that grant, and leaves no lease
//	I7   grant_time ≤ expiry ≤ grant_time + cap; expiry never falls; nobody ends a grant before it
//	I8   what has landed stays
//	I9   a silence ends only by a release after a landing
//	I10  every clear has one audit line, and nothing else but a restore has any
//	I11  nobody is overtaken but past an offer that was let go by, and recorded
//	I12  a revision changes what its command may, and no attempt made two
//	I13  a result is stamped before it is judged, by others than its roles allow, and never changes
//	I14  a chain is of one container
//
// Of I8, that what a client saw acknowledged is there, see Persisted; of I14, that a session is in one
// container, VerifyEstate.
func Verify(chain []Revision) error {
	h := newHistory()
	var before Revision
	for i, r := range chain {
		p := r.page
		if p == nil {
			return &Broken{Invariant: "I1", Detail: "no page"}
		}
		if b := pageInvariant(p); b != nil {
			return b
		}
		if i == 0 {
			if b := firstPage(p); b != nil {
				return b
			}
		} else if b := transition(before, r); b != nil {
			return b
		}
		if b := h.add(p); b != nil {
			return b
		}
		before = r
	}
	return nil
}

// firstPage is how a chain begins: with a create, or with the restore of a page that was lost.
func firstPage(p *Page) *Broken {
	switch {
	case p.Op == OpCreate && p.Rev == 1 && p.Epoch == 1 && p.PrevHash == "":
		if p.State != StateFree || p.Grant != 0 || p.Register.Seq != 0 || p.IDs.Next != 1 || len(p.IDs.Free)+len(p.Queue)+len(p.Blocks)+len(p.Doubts) > 0 || p.Silent.On {
			return broken(p, "I2", "a container begins free, with grant 0 and nothing in it")
		}
		return nil
	case p.Op == OpRestore && p.PrevHash == "":
		return nil
	}
	return broken(p, "I1", "the chain does not begin here")
}

// history is what cannot be seen from one revision to the next.
type history struct {
	nonces   map[string]int64
	sessions map[int64]Digest
	landed   []Range
	seq      int64
}

func newHistory() *history {
	return &history{nonces: map[string]int64{}, sessions: map[int64]Digest{}}
}

func (h *history) add(p *Page) *Broken {
	if rev, ok := h.nonces[p.Nonce]; ok {
		return broken(p, "I12", "revision %d has the same nonce", rev)
	}
	h.nonces[p.Nonce] = p.Rev
	if p.Holder != nil {
		if was, ok := h.sessions[p.Grant]; ok && was != p.Holder.Session {
			return broken(p, "I2", "grant %d was another session's", p.Grant)
		}
		h.sessions[p.Grant] = p.Holder.Session
	}
	if p.Landing != nil && p.Register.Seq > h.seq {
		for _, r := range p.Landing.IDs {
			if overlaps(h.landed, r) {
				return broken(p, "I5", "of %d to %d some have landed before", r.Lo, r.Hi)
			}
		}
		h.landed = those(append(h.landed, p.Landing.IDs...), nil)
	}
	h.seq = max(h.seq, p.Register.Seq)
	return nil
}

// Persisted checks that revisions which were acknowledged are in a chain: I8.
func Persisted(chain []Revision, acknowledged ...Ref) error {
	at := map[Ref]bool{}
	for _, r := range chain {
		at[r.Ref()] = true
	}
	for _, a := range acknowledged {
		if !at[a] {
			return &Broken{Invariant: "I8", Epoch: a.Epoch, Rev: a.Rev, Detail: "acknowledged, and not in the chain"}
		}
	}
	return nil
}

// VerifyEstate checks the chains of an estate's containers, each with Verify, and that no two are of one
// container and no session had grants in two: I14.
func VerifyEstate(chains ...[]Revision) error {
	containers, sessions := map[string]bool{}, map[Digest]string{}
	for _, chain := range chains {
		if err := Verify(chain); err != nil {
			return err
		}
		for i, r := range chain {
			p := r.page
			if i == 0 {
				if containers[p.Container] {
					return broken(p, "I14", "there are two pages of it")
				}
				containers[p.Container] = true
			}
			if p.Holder == nil {
				continue
			}
			if other, ok := sessions[p.Holder.Session]; ok && other != p.Container {
				return broken(p, "I14", "its session has a grant of %s", other)
			}
			sessions[p.Holder.Session] = p.Container
		}
	}
	return nil
}

// pageInvariant checks what must hold on every page, whatever came before.
func pageInvariant(p *Page) *Broken {
	if p.Holder != nil && (p.Expiry < p.GrantTime || p.Expiry > p.GrantTime.Add(p.Params.Cap.Duration())) {
		return broken(p, "I7", "granted at %s, the grant expires at %s, and its cap is %s", p.GrantTime, p.Expiry, p.Params.Cap.Duration())
	}
	audited := p.Op == OpClear || p.Op == OpRestore
	if audited != (p.Audit != nil) {
		return broken(p, "I10", "audit line: %t, wanted: %t", p.Audit != nil, audited)
	}
	if p.Audit != nil && (p.By.Role != RoleOperator || p.Audit.Operator != p.By.Name) {
		return broken(p, "I10", "the audit line is not of the operator who made the revision")
	}
	if p.State == StateCleared && !p.Silent.On {
		return broken(p, "I9", "cleared, and not silent")
	}
	if l := p.Landing; l != nil && (l.New != p.Register.Head || l.N > p.Register.Seq) {
		return broken(p, "I4", "the last landing is not the register's head")
	}
	if b := disjoint(p); b != nil {
		return b
	}
	for _, b := range p.Blocks {
		if r := b.Repro; r != nil {
			switch {
			case r.Author == b.Worker:
				return broken(p, "I13", "the author of block %d derives it", b.ID)
			case r.Judge == b.Worker:
				return broken(p, "I13", "the deriver of block %d judged it", b.ID)
			}
		}
	}
	return nil
}
