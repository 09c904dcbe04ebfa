package grant

import (
	"fmt"
	"slices"
	"strings"
)

func (s *step) begin(c Begin) *Refusal {
	if r := s.live(c.Session); r != nil {
		return r
	}
	if !s.env.FenceHeld {
		return s.bad("a fenced command runs under the container's kernel lock, which the caller does not hold")
	}
	if r := s.settle(); r != nil {
		return r
	}
	p, n := s.old, s.next
	if len(n.Doubts) > 0 {
		d := n.Doubts[0]
		return s.refuse(CodeInDoubt, fmt.Sprintf("nobody knows whether %s was done: %s", d.ID, d.Command),
			"grant land "+word(p.Container)+" --resolve done|undone --reason WHY", "look, and say which")
	}
	if fault := textFault("command", c.Command); fault != "" {
		return s.bad(fault)
	}
	if strings.TrimSpace(c.Command) == "" {
		return s.bad("a command is needed")
	}
	if c.Base != p.Register.Head {
		return s.refuse(CodeRegisterMoved, fmt.Sprintf("the register's head is %s, the work began from %s", short(p.Register.Head), short(c.Base)),
			"register show "+word(p.Container), "look at what landed, and begin again on that head")
	}
	n.Running = &Running{Command: c.Command, ID: s.meta.Nonce, Started: s.now}
	return nil
}

// finish asks no clock: the command began before the expiry, and nothing could end the grant under it.
func (s *step) finish(c Finish) *Refusal {
	if r := s.proves(c.Session); r != nil {
		return r
	}
	p, n := s.old, s.next
	if p.Running == nil || p.Running.ID != c.ID {
		return s.refuse(CodeNotRunning, "no fenced command "+clip(c.ID, maxNonce)+" runs", "", "")
	}
	n.Running = nil
	if c.Done {
		return s.moveHead(landing{p.Register.Head, c.Manifest, c.ID, "", c.Note, c.IDs, c.Keep})
	}
	if fault := textFault("note", c.Note); fault != "" {
		return s.bad(fault)
	}
	if len(c.IDs) > 0 || len(c.Keep) > 0 || c.Manifest != "" {
		return s.bad("a command that failed lands nothing")
	}
	n.Note = c.Note
	return nil
}

func (s *step) resolve(c Resolve) *Refusal {
	if r := s.leads(c.Session); r != nil {
		return r
	}
	if r := s.settle(); r != nil {
		return r
	}
	n := s.next
	i := slices.IndexFunc(n.Doubts, func(d Doubt) bool { return d.ID == c.ID })
	if i < 0 {
		return s.refuse(CodeNotRunning, "no fenced command "+clip(c.ID, maxNonce)+" is in doubt", "", "")
	}
	if r := s.reasonFor("settling a doubt", c.Reason); r != nil {
		return r
	}
	n.Doubts = slices.Delete(n.Doubts, i, i+1)
	n.Note = c.Reason
	return nil
}
