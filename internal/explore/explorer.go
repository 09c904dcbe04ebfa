package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/format"
)

// Explorer searches one world.
type Explorer struct {
	world  *World
	drv    *driver
	seen   map[key]visit
	parsed map[string]int
	locks  map[string]*format.Lock
	buf    []byte
	trail  []trace
	found  *Violation
	// Want, when set, is part of the message of the only violation that counts. Others are passed over.
	Want string
	// Lead is how every schedule begins; the search is of what can follow.
	Lead []Step
	// Goal, when set, is a count at whose first mark the search ends, as at a violation.
	Goal   string
	result Result
}

// visit is what is known of a state that was searched.
type visit struct {
	schedules float64 // from there to an end
	switched  int
}

// Result is what a search has seen.
type Result struct {
	World     string
	States    int     // distinct
	Ends      int     // states in which all actors were through or dead
	Schedules float64 // distinct ways from the beginning to an end, of those that the reduction leaves
	Histories int     // distinct histories of single actors, for each of which the shipped code ran
	Runs      int     // programs started for that
	Gates     int     // steps of the shipped code
	Counts    map[string]int
	// Outcomes are the ends that differ in the log, in what lies beside it or in what was reported.
	Outcomes map[string]int
}

// Step is one move of a schedule.
type Step struct {
	Actor string
	What  string // "dies", "gives up", or the step taken
}

// trace is a Step as it is kept during a search.
type trace struct {
	at *node
	move
}

func (x *Explorer) steps() []Step {
	var list []Step
	for _, t := range x.trail {
		what := t.at.at.op.String()
		switch t.kind {
		case dies:
			what = "dies before " + what
		case givesUp:
			what = "gives up"
		}
		list = append(list, Step{x.name(t.actor), what})
	}
	return list
}

type moveKind uint8

const (
	moves   moveKind = iota
	dies             // the process is killed instead of taking its step
	givesUp          // nothing will wake it: its time runs out
)

type move struct {
	actor int
	kind  moveKind
}

// New prepares a search of the world.
func New(w *World) *Explorer {
	return &Explorer{
		world: w, drv: newDriver(w.actors()), seen: map[key]visit{},
		parsed: map[string]int{}, locks: map[string]*format.Lock{},
		result: Result{World: w.String(), Counts: map[string]int{}, Outcomes: map[string]int{}},
	}
}

// Run searches until everything is seen or a violation is found. It must be called in a
// testing/synctest bubble.
func (x *Explorer) Run() (Result, *Violation) {
	defer x.drv.close()
	s := x.first()
	if len(x.Lead) > 0 {
		s.kills += len(x.Lead)
		for _, step := range x.Lead {
			i := slices.IndexFunc(x.drv.actors, func(a *actor) bool { return a.name == step.Actor })
			next, ok, v := x.follow(s, i, step.What)
			if v != nil || !ok {
				return x.result, v
			}
			s = next
		}
		s.kills, s.switched = x.world.deaths, 0
	}
	x.result.Schedules = x.visit(s)
	x.result.States = len(x.seen)
	x.result.Histories, x.result.Runs, x.result.Gates = x.drv.nodes, x.drv.runs, x.drv.steps
	return x.result, x.found
}

func (x *Explorer) first() *state {
	s := &state{disk: x.world.disk(), at: append([]*node(nil), x.drv.roots...), kills: x.world.deaths, last: -1}
	return s
}

// count notes that something happened that may, but is worth knowing of.
func (x *Explorer) count(what string) {
	x.result.Counts[what]++
	if what == x.Goal && x.found == nil {
		x.found = &Violation{Kind: what, Schedule: x.steps()}
	}
}

// visit searches everything that can come after s, and returns in how many ways it can come about.
func (x *Explorer) visit(s *state) float64 {
	k := x.key(s)
	// A state that was reached with fewer switches has had all that can come after it, and more.
	if v, ok := x.seen[k]; ok && v.switched <= s.switched {
		return v.schedules
	}
	x.seen[k] = visit{0, s.switched}
	if x.world.limit > 0 && len(x.seen) > x.world.limit {
		x.fail(violation(tooLarge, "more than %d states", x.world.limit))
		return 0
	}
	todo := x.moves(s)
	if len(todo) == 0 {
		x.result.Ends++
		x.result.Outcomes[x.end(s)]++
		if v := x.finish(s); v != nil {
			x.fail(v)
		}
		x.seen[k] = visit{1, s.switched}
		return 1
	}
	var n float64
	for _, m := range todo {
		depth := len(x.trail)
		next, v := x.apply(s, m)
		if v != nil {
			x.fail(v)
		}
		if x.found == nil {
			n += x.visit(next)
		}
		x.trail = x.trail[:depth]
		if x.found != nil {
			return n
		}
	}
	x.seen[k] = visit{n, s.switched}
	return n
}

func (x *Explorer) fail(v *Violation) {
	if x.found == nil && strings.Contains(v.Error(), x.Want) {
		v.Schedule = x.steps()
		x.found = v
	}
}

// moves lists what may happen next.
func (x *Explorer) moves(s *state) []move {
	if !x.world.full {
		for i := range x.world.mains() {
			if !s.over(i) && x.private(s, i) {
				return []move{{i, moves}}
			}
		}
	}
	var list []move
	var ready, waiting []int
	for i := range x.world.mains() {
		switch {
		case s.over(i):
		case s.at[i].at.op.kind == opSleep && !x.awake(s, i):
			waiting = append(waiting, i)
		default:
			ready = append(ready, i)
		}
	}
	for _, i := range ready {
		if x.switches(s, i, ready) <= x.world.bound || x.world.bound < 0 {
			list = append(list, move{i, moves})
		}
	}
	if len(ready) == 0 {
		for _, i := range waiting {
			list = append(list, move{i, givesUp})
		}
	}
	if s.kills > 0 {
		for i := range x.world.mains() {
			if !s.over(i) {
				list = append(list, move{i, dies})
			}
		}
	}
	return list
}

// switches is how often an actor that could have gone on will have been left, when i goes on now.
func (x *Explorer) switches(s *state, i int, ready []int) int {
	if s.last >= 0 && s.last != i {
		for _, r := range ready {
			if r == s.last {
				return s.switched + 1
			}
		}
	}
	return s.switched
}

// apply makes a move. On a violation the state returned is the one in which it shows.
func (x *Explorer) apply(s *state, m move) (*state, *Violation) {
	x.trail = append(x.trail, trace{s.at[m.actor], m})
	next := s.clone()
	if m.kind == dies {
		x.kill(next, m.actor)
		x.checkDeath(s, m.actor)
		return next, nil
	}
	if x.world.bound >= 0 && !x.private(s, m.actor) {
		var ready []int
		for i := range x.world.mains() {
			if !s.over(i) && (s.at[i].at.op.kind != opSleep || x.awake(s, i)) {
				ready = append(ready, i)
			}
		}
		next.switched = x.switches(s, m.actor, ready)
		next.last = m.actor
	}
	var wait *Violation
	if m.kind == givesUp {
		wait = x.checkWait(s, m.actor)
	}
	if v := x.step(s, next, m.actor, m.kind == givesUp); v != nil {
		return next, v
	}
	return next, wait
}

// step takes the actor's step in next, a copy of s.
func (x *Explorer) step(s, next *state, actor int, giveUp bool) *Violation {
	n := s.at[actor]
	r := x.do(next, actor)
	if giveUp {
		r.how = late
	}
	next.at[actor] = x.drv.after(n, r)
	switch n.at.op.kind {
	case opRename, opRemove, opClose:
		x.collect(next)
	}
	if v := x.check(s, next, actor, n.at.op, r); v != nil {
		return v
	}
	at := next.at[actor].at
	if at.op.kind == opEnd && at.local.outcome == failed {
		return violation(Failed, "%s: %s", x.name(actor), at.local.fault)
	}
	if at.op.kind == opEnd && at.local.outcome == lost && !x.world.forced() {
		return violation(Failed, "%s: %s", x.name(actor), at.local.fault)
	}
	return nil
}

// end describes an end, for people and for comparing searches.
func (x *Explorer) end(s *state) string {
	data, _ := s.disk.content(logName)
	b := strings.Join(records(data), " ")
	for i := range x.world.mains() {
		b += fmt.Sprintf("; %s %v", x.name(i), s.at[i].at.local.outcome)
		if s.isDead(i) {
			b += " dead"
		}
	}
	for _, e := range s.disk.names {
		b += "; " + role(e.name)
	}
	return b
}

func (r Result) String() string {
	return fmt.Sprintf("%s: %d states, %d ends, %.3g schedules; %d histories, %d runs, %d gates",
		r.World, r.States, r.Ends, r.Schedules, r.Histories, r.Runs, r.Gates)
}
