package explore

import (
	"fmt"
	"strings"

	"github.com/stile-lock/stile/internal/seam"
)

// checkWait judges a wait that nothing will end: everybody else is through, dead or waiting too.
func (x *Explorer) checkWait(s *state, actor int) *Violation {
	why, owner := x.block(s, x.drv.actors[actor].ns)
	if why == "" {
		lock, _ := s.disk.content(lockName)
		return violation(Stuck, "%s waits for %q", x.name(actor), lock)
	}
	if owner == actor {
		return violation(SelfWait, "%s waits for a lock of its own ended hold", x.name(actor))
	}
	x.count("blocked: " + why)
	return nil
}

// block says what blocks every writer of a pid namespace in this state, where the specification or a decision names it,
// and whose lock it is; "" when nothing that may block does.
func (x *Explorer) block(s *state, ns uint64) (why string, owner int) {
	id := s.disk.id(lockName)
	if id < 0 {
		return "", -1
	}
	n := s.disk.inode(id)
	l := x.lock(n.data)
	if l == nil {
		// Only a kill between the exclusive create and the write leaves one.
		if maker := id / 1000; n.data == "" && !x.world.hardLinks && s.isDead(maker) {
			return "an empty lock, its maker killed", -1
		}
		return "", -1
	}
	i := x.drawer(l.Token)
	if x.world.forced() && i >= 0 && !s.isDead(i) && strings.Contains(s.at[i].at.local.ended, l.Token) {
		return "a lock put back after its hold had ended, its process alive", i
	}
	if (i < 0 || s.isDead(i)) && l.Proc.PidNS != ns {
		return "a holder of another pid namespace, dead there", -1
	}
	return "", -1
}

// checkDeath counts deaths in the places that the specification names as residuals.
func (x *Explorer) checkDeath(s *state, actor int) {
	switch step := s.at[actor].at.local.step; step {
	case seam.BreakMismatch, seam.ReleaseMismatch, seam.BreakPutBackOpened, seam.ReleasePutBackOpened:
		x.count("killed at " + x.place(step, actor))
	}
}

// finish judges a state in which all actors are through or dead: what is in the log, what lies beside
// it, and that a clean writer is through at once, or is blocked where it may be until the block is
// cleared as it should be.
func (x *Explorer) finish(s *state) *Violation {
	if v := x.checkRecords(s); v != nil {
		return v
	}
	why, owner := x.block(s, 1)
	if s.dead == 0 && !x.world.dirty() && why == "" {
		if v := x.checkLeft(s); v != nil {
			return v
		}
	}
	first, second := x.world.mains(), x.world.mains()+1
	if why == "" {
		s, v := x.solo(s, first, true)
		if v != nil {
			return v
		}
		return x.checkEnd(s, first)
	}
	x.count("at the end: " + why)
	s, v := x.solo(s, first, false)
	if v != nil {
		return v
	}
	if s.at[first].at.local.outcome != blocked {
		return violation(NotAtOnce, "%s is through although there is %s", x.name(first), why)
	}
	if owner >= 0 {
		// The process that has done with this lock meets it when it writes again.
		next := s.clone()
		next.at[owner] = x.drv.after(s.at[owner], obs{})
		if s, v = x.solo(next, owner, true); v != nil {
			return v
		}
		if s.at[owner].at.local.outcome != done {
			return violation(SelfWait, "%s writes again, and is %v", x.name(owner), s.at[owner].at.local.outcome)
		}
	} else if s, v = x.solo(s, x.world.operator(), true); v != nil {
		return v
	}
	if s, v = x.solo(s, second, true); v != nil {
		v.Detail = fmt.Sprintf("after %s was cleared: %s", why, v.Detail)
		return v
	}
	return x.checkEnd(s, second)
}

// solo runs one actor to its end with nobody else about. With atOnce it must not have to wait.
func (x *Explorer) solo(s *state, actor int, atOnce bool) (*state, *Violation) {
	for s.at[actor].at.op.kind != opEnd {
		m := move{actor, moves}
		if s.at[actor].at.op.kind == opSleep {
			if atOnce {
				lock, _ := s.disk.content(lockName)
				return s, violation(NotAtOnce, "%s waits for %q", x.name(actor), lock)
			}
			m.kind = givesUp
		}
		next, v := x.apply(s, m)
		if v != nil {
			return next, v
		}
		s = next
	}
	return s, nil
}

// checkEnd judges the state after the clean writer.
func (x *Explorer) checkEnd(s *state, writer int) *Violation {
	if out := s.at[writer].at.local.outcome; out != done {
		return violation(NotAtOnce, "%s is %v", x.name(writer), out)
	}
	if v := x.checkRecords(s); v != nil {
		return v
	}
	return x.checkLeft(s)
}

// checkLeft judges what lies beside the log: nothing may, when no process is at work.
func (x *Explorer) checkLeft(s *state) *Violation {
	for _, e := range s.disk.names {
		if e.name != logName && !x.world.stays(e.name) {
			return violation(LeftOver, "%s", e.name)
		}
	}
	return nil
}
