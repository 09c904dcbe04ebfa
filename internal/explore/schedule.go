package explore

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
)

// Saved is a schedule that was found to break something, as it is kept in a file. Each line is what one
// actor does without another between:
//
//	world: two breakers
//	class: hard links
//	fault: break without the confirm
//	finds: live lock taken
//	A: lstat log, list log., open lock
//	B: dies before create pending
type Saved struct {
	World string
	Class string
	Fault string // empty: the shipped code, as it was then
	Finds string // kind of violation
	Steps []Step
}

// Classes are the two kinds of file system, as files and tests name them.
var Classes = [...]string{"hard links", "no hard links"}

func (s *Saved) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "world: %s\nclass: %s\n", s.World, s.Class)
	if s.Fault != "" {
		fmt.Fprintf(&b, "fault: %s\n", s.Fault)
	}
	fmt.Fprintf(&b, "finds: %s\n", s.Finds)
	last := ""
	for _, step := range s.Steps {
		if step.Actor != last {
			if last != "" {
				b.WriteByte('\n')
			}
			b.WriteString(step.Actor + ": " + step.What)
		} else {
			b.WriteString(", " + step.What)
		}
		last = step.Actor
	}
	b.WriteByte('\n')
	return b.String()
}

// ParseSaved reads what String has written.
func ParseSaved(text string) (*Saved, error) {
	s := &Saved{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), ": ")
		if !ok {
			return nil, fmt.Errorf("no schedule line: %q", lines.Text())
		}
		switch name {
		case "world":
			s.World = value
		case "class":
			s.Class = value
		case "fault":
			s.Fault = value
		case "finds":
			s.Finds = value
		default:
			for what := range strings.SplitSeq(value, ", ") {
				s.Steps = append(s.Steps, Step{name, what})
			}
		}
	}
	return s, nil
}

// Replay follows a saved schedule as far as the code still goes along, and then lets everybody finish,
// one after the other. An actor that is not at the step named goes on until it is; where it never comes
// to it, the line is passed over. It returns how many lines were, and what went wrong.
func (x *Explorer) Replay(steps []Step) (passed int, v *Violation) {
	defer x.drv.close()
	s := x.first()
	s.kills, x.world.bound = len(steps), -1
	for _, step := range steps {
		i := slices.IndexFunc(x.drv.actors, func(a *actor) bool { return a.name == step.Actor })
		if i < 0 || i >= x.world.mains() {
			continue // the clean writer's part is run below
		}
		next, ok, v := x.follow(s, i, step.What)
		if v != nil {
			return passed, v
		}
		if !ok {
			passed++
			continue
		}
		s = next
	}
	s.kills = 0
	for {
		todo := x.moves(s)
		if len(todo) == 0 {
			return passed, x.wanted(x.finish(s))
		}
		next, v := x.try(s, todo[0])
		if v != nil {
			return passed, v
		}
		s = next
	}
}

// follow lets an actor go on until it has done what the schedule says.
func (x *Explorer) follow(s *state, actor int, what string) (next *state, ok bool, v *Violation) {
	wanted, death := strings.CutPrefix(what, "dies before ")
	for before := s; ; {
		if s.over(actor) {
			return before, false, nil
		}
		o := s.at[actor].at.op
		m := move{actor, moves}
		switch here := o.String() == wanted; {
		case here && death:
			next, v := x.try(s, move{actor, dies})
			return next, true, v
		case o.kind == opSleep && what == "gives up" && slices.Contains(x.moves(s), move{actor, givesUp}):
			m.kind = givesUp
		case o.kind == opSleep && !x.awake(s, actor):
			return before, false, nil
		}
		at := o.String()
		if s, v = x.try(s, m); v != nil {
			return s, true, v
		}
		if at == what || m.kind == givesUp {
			return s, true, nil
		}
	}
}

// try makes a move, and passes over a violation that is not the one looked for.
func (x *Explorer) try(s *state, m move) (*state, *Violation) {
	next, v := x.apply(s, m)
	return next, x.wanted(v)
}

func (x *Explorer) wanted(v *Violation) *Violation {
	if v == nil || !strings.Contains(v.Error(), x.Want) {
		return nil
	}
	return v
}
