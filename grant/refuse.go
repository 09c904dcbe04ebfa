package grant

import (
	"fmt"
	"strings"
)

// refuse makes a refusal; name gives it what all have.
func (s *step) refuse(code Code, cause, next, hint string) *Refusal {
	return &Refusal{Code: code, Cause: cause, Next: next, Hint: hint}
}

func (s *step) bad(cause string) *Refusal {
	return &Refusal{Code: CodeBadInput, Cause: cause, Next: "grant " + string(s.cmd.Op()) + " --help", Hint: "shows what it takes"}
}

// name fills in what the refusal was judged on.
func (s *step) name(r *Refusal) error {
	r.Op, r.Container = s.cmd.Op(), clip(s.meta.Container, MaxName)
	if h, ok := sessionOf(s.cmd); ok {
		r.Yours = h.Grant
	}
	if p := s.old; p != nil {
		r.Rev, r.State, r.Grant, r.Holder, r.Expiry = p.Rev, p.State, p.Grant, copyOf(p.Holder), p.Expiry
		if p.Ended != nil && p.Ended.Grant == r.Yours {
			r.Ended = copyOf(p.Ended)
		}
	}
	if r.Next == "" && s.old != nil {
		r.Next, r.Hint = "grant status "+word(s.old.Container), "shows what there is"
	}
	return r
}

// sessionOf is the proof that a holder's command carries.
func sessionOf(cmd Command) (Session, bool) {
	switch c := cmd.(type) {
	case Heartbeat:
		return c.Session, true
	case LeaseIDs:
		return c.Session, true
	case AssignBlock:
		return c.Session, true
	case CloseBlock:
		return c.Session, true
	case Land:
		return c.Session, true
	case Release:
		return c.Session, true
	case Begin:
		return c.Session, true
	case Finish:
		return c.Session, true
	case Resolve:
		return c.Session, true
	case Commission:
		return c.Session, true
	}
	return Session{}, false
}

// reasonFor wants words where words are required.
func (s *step) reasonFor(what, reason string) *Refusal {
	if strings.TrimSpace(reason) == "" {
		return s.refuse(CodeReasonRequired, fmt.Sprintf("%s needs a reason", what),
			fmt.Sprintf("grant %s %s --reason WHY", s.cmd.Op(), word(s.meta.Container)), "it stands in the history")
	}
	if fault := textFault("reason", reason); fault != "" {
		return s.bad(fault)
	}
	return nil
}

// word is a name as a shell takes it.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:@+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
