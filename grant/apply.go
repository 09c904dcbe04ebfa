package grant

import (
	"crypto/subtle"
	"fmt"
)

// Apply evaluates a command on the head of a container and returns the next revision, or a *Refusal: then
// nothing is to be done. The head is the zero Revision for Create and for Restore of a lost page; for any
// other command that is LOCK_MISSING. It changes neither head nor cmd, and depends on nothing else.
//
// A command whose nonce is the head's own has been done: Apply then returns the head itself (the first
// result), or OP_ID_REUSED when its content is another's. Whether an older revision has the nonce it cannot
// see: who tries a command again looks for that first, as Do does.
func Apply(head Revision, cmd Command, env Env) (Revision, error) {
	return apply(head, cmd, env, planted{})
}

// planted are bugs that tests put into the machine, to see that the checks find them.
type planted struct {
	reissue          bool // a dead grant's remainder goes to the free ones
	releaseUnlanded  bool // release asks for no landing
	clearKeepsNumber bool // clear burns no number
	ignoreQueue      bool // acquire asks for no turn
	expiryFalls      bool // a heartbeat may bring the expiry nearer
	landLate         bool // a landing asks only that its number is not too high
	silentForgets    bool // an acquire ends the silence
	plainMisses      bool // a missed offer is not recorded
}

// step is one command on its way to the next revision.
type step struct {
	head Revision
	old  *Page // nil for the first page
	next *Page
	cmd  Command
	meta Meta
	env  Env
	now  Time
	bug  planted
}

func apply(head Revision, cmd Command, env Env, bug planted) (Revision, error) {
	s := &step{head: head, old: head.page, cmd: cmd, meta: cmd.meta(), env: env, now: env.Now.T, bug: bug}
	if r := s.input(); r != nil {
		return Revision{}, s.name(r)
	}
	if s.old != nil && s.old.Nonce == s.meta.Nonce {
		if err := SameCommand(head, cmd); err != nil {
			return Revision{}, s.name(err)
		}
		return head, nil
	}
	if r := s.prepare(); r != nil {
		return Revision{}, s.name(r)
	}
	if r := s.run(); r != nil {
		return Revision{}, s.name(r)
	}
	s.openOffer()
	next, err := Seal(s.next)
	if err != nil { // a bug of this package: nothing is published, and it is not called a refusal
		return Revision{}, fmt.Errorf("%s %s: %w", cmd.Op(), s.meta.Container, err)
	}
	return next, nil
}

// SameCommand tells whether a revision that has a command's nonce was made by that command: nil, and the
// revision is its result; else OP_ID_REUSED.
func SameCommand(at Revision, cmd Command) *Refusal {
	p := at.page
	if p.Op == cmd.Op() && p.Digest == CommandDigest(cmd) {
		return nil
	}
	r := &Refusal{
		Code: CodeOpIDReused, Op: cmd.Op(), Rev: p.Rev, State: p.State, Grant: p.Grant, Holder: copyOf(p.Holder), Expiry: p.Expiry,
		Container: p.Container,
		Cause:     fmt.Sprintf("the id %s was used for another command: %s, revision %d", cmd.meta().Nonce, p.Op, p.Rev),
		Next:      "grant history " + word(p.Container), Hint: "repeat that command exactly, or leave the id out",
	}
	return r
}

// input refuses what can never work.
func (s *step) input() *Refusal {
	if fault := nameFault(s.meta.Container); fault != "" {
		return s.bad("container: " + fault)
	}
	if fault := nameFault(s.meta.By.Name); fault != "" {
		return s.bad(string(s.meta.By.Role) + ": " + fault)
	}
	if fault := nonceFault(s.meta.Nonce); fault != "" {
		return s.bad(fault)
	}
	switch s.cmd.(type) {
	case Clear, Restore:
		if s.meta.By.Role != RoleOperator {
			return s.bad(string(s.cmd.Op()) + " is an operator's")
		}
	case Create:
	default:
		if s.meta.By.Role != RoleAgent {
			return s.bad(string(s.cmd.Op()) + " is an agent's")
		}
	}
	if !s.meta.By.valid() {
		return s.bad("neither agent nor operator")
	}
	if !s.env.Now.valid() {
		return s.bad("the clock's time is not of the years 1970 to 9999")
	}
	return nil
}

// prepare looks at what there is, and begins the next page.
func (s *step) prepare() *Refusal {
	w := s.env.Witness
	_, creates := s.cmd.(Create)
	_, restores := s.cmd.(Restore)
	if s.old == nil {
		switch {
		case creates && w.Rev == 0, restores:
			s.next = (&Page{}).clone()
			s.sign(1, "")
			return nil
		case w.Rev > 0:
			return s.refuse(CodeLockMissing, fmt.Sprintf("the page is gone: revision %d of grant %d was seen", w.Rev, w.Grant),
				"grant restore "+word(s.meta.Container)+" --reason WHY", "an operator restores it, above every witness")
		}
		return s.refuse(CodeLockMissing, "there is no such container", "grant create "+word(s.meta.Container), "creates it")
	}
	if s.old.Container != s.meta.Container {
		return s.refuse(CodeBadPage, "the page is of the container "+s.old.Container, "", "")
	}
	if creates {
		return s.refuse(CodeExists, fmt.Sprintf("there is one, at revision %d", s.old.Rev), "grant status "+word(s.old.Container), "shows it")
	}
	if !restores {
		if err := CheckWitness(s.head, w); err != nil {
			return s.refuse(CodeRollback, err.Error(), "grant restore "+word(s.old.Container)+" --reason WHY",
				"the page was set back: an operator restores it, above every witness")
		}
	}
	if s.old.Rev >= MaxNumber {
		return s.refuse(CodeExhausted, "the page has had its last revision", "", "")
	}
	s.next = s.old.clone()
	s.sign(s.old.Rev+1, s.head.hash)
	return nil
}

// sign gives the next page what every revision has of its own.
func (s *step) sign(rev int64, prev Digest) {
	n := s.next
	n.V, n.Container, n.Rev, n.PrevHash = Version, s.meta.Container, rev, prev
	n.Nonce, n.Digest, n.Op, n.By, n.Stamp = s.meta.Nonce, CommandDigest(s.cmd), s.cmd.Op(), s.meta.By, s.env.Now
	n.Audit, n.Note, n.Passed = nil, "", list[Passed](nil)
}

func (s *step) run() *Refusal {
	switch c := s.cmd.(type) {
	case Create:
		return s.create(c)
	case Petition:
		return s.petition()
	case Touch:
		return s.touch()
	case Withdraw:
		return s.withdraw()
	case Acquire:
		return s.acquire(c)
	case Heartbeat:
		return s.heartbeat(c)
	case LeaseIDs:
		return s.leaseIDs(c)
	case AssignBlock:
		return s.assignBlock(c)
	case CloseBlock:
		return s.closeBlock(c)
	case Land:
		return s.land(c)
	case Release:
		return s.release(c)
	case Clear:
		return s.clear(c)
	case Restore:
		return s.restore(c)
	case Begin:
		return s.begin(c)
	case Finish:
		return s.finish(c)
	case Resolve:
		return s.resolve(c)
	case Commission:
		return s.commission(c)
	case Derive:
		return s.derive(c)
	case Stage:
		return s.stage(c)
	case Judge:
		return s.judge(c)
	}
	return s.bad("no command of this package")
}

func (s *step) create(c Create) *Refusal {
	params := c.Params.orDefault()
	if fault := paramsFault(params); fault != "" {
		return s.bad(fault)
	}
	n := s.next
	n.Epoch, n.Params, n.State, n.IDs.Next = 1, params, StateFree, 1
	return nil
}

// proves is what every command of a holder needs: the current grant, not ended, and its secret. "Not lower"
// would let a holder in whose grant was released or cleared and whose number is still the last.
func (s *step) proves(h Session) *Refusal {
	p := s.old
	switch {
	case h.Grant < 1 || h.Grant > MaxNumber:
		return s.bad(fmt.Sprintf("there is no grant %d", h.Grant))
	case h.Grant > p.Grant:
		return s.refuse(CodeRollback, fmt.Sprintf("the page knows no grant %d, the last is %d", h.Grant, p.Grant),
			"grant restore "+word(p.Container)+" --reason WHY", "if the grant was real, the page was set back: an operator restores it")
	case s.bug.landLate && s.cmd.Op() == OpLand:
		return nil
	case h.Grant < p.Grant || p.State != StateHeld:
		return s.refuse(CodeFenced, fmt.Sprintf("grant %d has ended%s", h.Grant, s.howEnded(h.Grant)),
			"grant petition "+word(p.Container), "stop writing; queue again, and when granted land on the new head with new ids")
	case subtle.ConstantTimeCompare([]byte(h.Secret.Hash()), []byte(p.Holder.Session)) != 1:
		return s.refuse(CodeNotHolder, fmt.Sprintf("grant %d is another session's, of %s", p.Grant, p.Holder.Agent),
			"grant status "+word(p.Container), "only the session that acquired has its secret")
	}
	return nil
}

// live is proves for what a holder may do only before its expiry.
func (s *step) live(h Session) *Refusal {
	if r := s.proves(h); r != nil {
		return r
	}
	if s.old.State == StateHeld && s.now >= s.old.Expiry {
		r := s.refuse(CodeExpired, fmt.Sprintf("grant %d expired at %s", s.old.Grant, s.old.Expiry),
			"grant petition "+word(s.old.Container), "stop writing; queue again, and when granted land on the new head with new ids")
		if s.old.Landing != nil && len(s.old.IDs.Leases) == 0 {
			r.Next, r.Hint = "grant release "+word(s.old.Container), "stop writing; what has landed can still be released"
		}
		return r
	}
	return nil
}

// leads is live for what only the lead may do.
func (s *step) leads(h Session) *Refusal {
	r := s.live(h)
	if r != nil && (r.Code == CodeFenced || r.Code == CodeNotHolder) {
		r.Code = CodeNotLead
	}
	return r
}

func (s *step) howEnded(grant int64) string {
	e := s.old.Ended
	if e == nil || e.Grant != grant {
		return ""
	}
	switch e.How {
	case HowReleased:
		return fmt.Sprintf(": released at revision %d", e.Rev)
	case HowTakenOver:
		return fmt.Sprintf(": taken over by %s at revision %d", e.By.Name, e.Rev)
	case HowCleared:
		return fmt.Sprintf(": cleared by the operator %s at revision %d (%s)", e.By.Name, e.Rev, e.Reason)
	}
	return fmt.Sprintf(": its page was lost, restored at revision %d", e.Rev)
}

// settle refuses while a fenced command may run. When the caller holds the kernel lock none does: what the
// page still has as running ended unseen, and is in doubt from this revision on.
func (s *step) settle() *Refusal {
	r := s.old.Running
	if r == nil {
		return nil
	}
	if !s.env.FenceHeld {
		return s.refuse(CodeLandingRuns, fmt.Sprintf("the fenced command %s runs since %s: %s", r.ID, r.Started, r.Command),
			"grant status "+word(s.old.Container), "wait until it has ended")
	}
	if len(s.next.Doubts) >= maxDoubts {
		return s.refuse(CodeLimit, fmt.Sprintf("%d fenced commands are in doubt", maxDoubts),
			"grant land "+word(s.old.Container)+" --resolve done|undone --reason WHY", "settle them first")
	}
	s.next.Doubts = append(s.next.Doubts, Doubt{Command: r.Command, Grant: s.old.Grant, ID: r.ID, Started: r.Started})
	s.next.Running = nil
	return nil
}
