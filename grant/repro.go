package grant

import "fmt"

// ReproState is how far a reproduction is. CLOSED is not among them: a closed block has left the page.
type ReproState string

// The states of a reproduction on a page.
const (
	ReproCommissioned ReproState = "COMMISSIONED" // record, kernel and assumptions are frozen
	ReproDeriving     ReproState = "DERIVING"     // the deriver has them, and not the result
	ReproStaged       ReproState = "STAGED"       // a result, stamped, that can no longer change
	ReproJudged       ReproState = "JUDGED"
)

// Verdict is the judgement of a reproduction.
type Verdict string

// The verdicts.
const (
	VerdictMatch    Verdict = "match"
	VerdictMismatch Verdict = "mismatch"
	VerdictVoid     Verdict = "void"
)

// Reproduction is a second derivation of a record by another worker. The original result is not in it.
type Reproduction struct {
	Assumptions Digest     `json:"assumptions"` // of the record's assumptions
	Author      string     `json:"author"`      // of the record: never the deriver
	Judge       string     `json:"judge"`       // never the deriver; empty before JUDGED
	Kernel      Digest     `json:"kernel"`
	Record      string     `json:"record"` // its name
	Result      Digest     `json:"result"` // empty before STAGED
	StagedAt    Stamp      `json:"staged_at"`
	State       ReproState `json:"state"`
	Verdict     Verdict    `json:"verdict"` // empty before JUDGED
}

func (s *step) commission(c Commission) *Refusal {
	if r := s.leads(c.Session); r != nil {
		return r
	}
	if fault := nameFault(c.Author); fault != "" {
		return s.bad("author: " + fault)
	}
	if !c.Kernel.valid() || !c.Assumptions.valid() {
		return s.bad("kernel and assumptions are named by their SHA-256")
	}
	if c.Record == "" || textFault("record", c.Record) != "" {
		return s.bad("a record has a name, of one line that can be shown")
	}
	if c.Deriver == c.Author {
		return s.sameAgent("the deriver is the record's author, " + c.Author)
	}
	return s.addBlock(Block{Worker: c.Deriver, Repro: &Reproduction{
		Assumptions: c.Assumptions, Author: c.Author, Kernel: c.Kernel, Record: c.Record, State: ReproCommissioned,
	}})
}

func (s *step) sameAgent(cause string) *Refusal {
	return s.refuse(CodeSameAgent, cause, "repro list "+word(s.old.Container), "shows who has which part")
}

// reproduction finds one on the old page, and the next page's to change.
func (s *step) reproduction(id int64) (old Block, next *Reproduction, r *Refusal) {
	i := s.old.block(id)
	if i < 0 || s.old.Blocks[i].Repro == nil {
		return Block{}, nil, s.refuse(CodeNoBlock, fmt.Sprintf("there is no open reproduction %d", id), "repro list "+word(s.old.Container), "lists them")
	}
	return s.old.Blocks[i], s.next.Blocks[i].Repro, nil
}

func (s *step) derive(c Derive) *Refusal {
	b, next, r := s.reproduction(c.Block)
	switch {
	case r != nil:
		return r
	case b.Worker != s.meta.By.Name:
		return s.sameAgent(fmt.Sprintf("the deriver of %d is %s", b.ID, b.Worker))
	case b.Repro.State != ReproCommissioned:
		return s.refuse(CodeConflict, fmt.Sprintf("reproduction %d is %s already", b.ID, b.Repro.State), "repro list "+word(s.old.Container), "shows it")
	}
	next.State = ReproDeriving
	return nil
}

func (s *step) stage(c Stage) *Refusal {
	b, next, r := s.reproduction(c.Block)
	switch {
	case r != nil:
		return r
	case !c.Result.valid():
		return s.bad("a result is named by its SHA-256")
	case b.Worker != s.meta.By.Name:
		return s.sameAgent(fmt.Sprintf("the deriver of %d is %s", b.ID, b.Worker))
	case b.Repro.State == ReproCommissioned:
		return s.refuse(CodeNotDeriving, fmt.Sprintf("the derivation of %d has not begun", b.ID), "repro list "+word(s.old.Container), "shows what it is made from")
	case b.Repro.State != ReproDeriving:
		return s.refuse(CodeAlreadyStaged, fmt.Sprintf("reproduction %d has a result, of %s", b.ID, b.Repro.StagedAt.T), "repro list "+word(s.old.Container), "shows it; it cannot change")
	}
	next.State, next.Result, next.StagedAt = ReproStaged, c.Result, s.env.Now
	return nil
}

func (s *step) judge(c Judge) *Refusal {
	b, next, r := s.reproduction(c.Block)
	switch {
	case r != nil:
		return r
	case c.Verdict != VerdictMatch && c.Verdict != VerdictMismatch && c.Verdict != VerdictVoid:
		return s.bad("a verdict is match, mismatch or void")
	case b.Worker == s.meta.By.Name:
		return s.sameAgent("the deriver does not judge")
	case b.Repro.State == ReproCommissioned || b.Repro.State == ReproDeriving:
		return s.refuse(CodeNotStaged, fmt.Sprintf("reproduction %d has no result yet", b.ID), "repro list "+word(s.old.Container), "shows how far it is")
	case b.Repro.State == ReproJudged:
		return s.refuse(CodeConflict, fmt.Sprintf("reproduction %d is judged: %s, by %s", b.ID, b.Repro.Verdict, b.Repro.Judge), "repro list "+word(s.old.Container), "shows it")
	}
	if fault := textFault("reason", c.Reason); fault != "" {
		return s.bad(fault)
	}
	next.State, next.Verdict, next.Judge = ReproJudged, c.Verdict, s.meta.By.Name
	s.next.Note = c.Reason
	return nil
}
