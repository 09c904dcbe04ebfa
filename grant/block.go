package grant

import (
	"fmt"
	"slices"
)

func (p *Page) block(id int64) int {
	return slices.IndexFunc(p.Blocks, func(b Block) bool { return b.ID == id })
}

func (s *step) noBlock(id int64) *Refusal {
	return s.refuse(CodeNoBlock, fmt.Sprintf("there is no open block %d", id), "grant status "+word(s.old.Container), "lists the open ones")
}

// addBlock gives a block its number, which is its revision's.
func (s *step) addBlock(b Block) *Refusal {
	if fault := nameFault(b.Worker); fault != "" {
		return s.bad("worker: " + fault)
	}
	if fault := textFault("note", b.Note); fault != "" {
		return s.bad(fault)
	}
	if len(s.old.Blocks) >= MaxBlocks {
		return s.refuse(CodeLimit, fmt.Sprintf("%d blocks are open", MaxBlocks), "grant block "+word(s.old.Container)+" --close N", "closes one")
	}
	b.ID, b.Grant = s.next.Rev, s.old.Grant
	s.next.Blocks = append(s.next.Blocks, b)
	return nil
}

func (s *step) assignBlock(c AssignBlock) *Refusal {
	if r := s.leads(c.Session); r != nil {
		return r
	}
	return s.addBlock(Block{Note: c.Note, Worker: c.Worker})
}

func (s *step) closeBlock(c CloseBlock) *Refusal {
	if r := s.leads(c.Session); r != nil {
		return r
	}
	i := s.old.block(c.Block)
	if i < 0 {
		return s.noBlock(c.Block)
	}
	if rp := s.old.Blocks[i].Repro; rp != nil && rp.State != ReproJudged {
		if r := s.reasonFor("closing a reproduction that nobody has judged", c.Reason); r != nil {
			return r
		}
	}
	if fault := textFault("reason", c.Reason); fault != "" {
		return s.bad(fault)
	}
	s.next.Blocks = slices.Delete(s.next.Blocks, i, i+1)
	s.next.Note = c.Reason
	return nil
}
