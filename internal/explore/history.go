package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
)

// node is what one actor has lived through: the results of all its steps so far. The code is
// deterministic, so a node decides the step that comes next, and stands for the actor's whole inside:
// its stack, its variables, its memory of earlier holds. Two states of the world with equal disks and
// equal nodes have equal futures.
type node struct {
	id     int
	actor  int
	parent *node
	via    obs
	at     request // the step that comes next
	kids   map[obs]*node
	run    *instance // stopped here; nil when it has gone on, or was given up

	// What follows from the results, kept so that it need not be found again.
	files   []handle // by op.file
	creates int
	read    string // the log as last read
	log     int    // which file the log was when it was last looked at
	seen    sight
	looked  seam.Step // the last named step when it last opened the lock
}

// handle is an open file.
type handle struct {
	id    int // inode
	name  string
	at    int // offset
	write bool
	open  bool
}

// sight is the world as an actor that waits knows it: the lock as last looked at, whom it has asked
// about since, and the claims it has found since.
type sight struct {
	there  bool
	id     int
	data   string
	asked  []answer
	prefix string // of the claims; empty when none were listed
	claims string
}

type answer struct {
	ask  op
	said proc.Judgement
}

// driver unfolds the actors' histories by running the shipped code. It runs each distinct history of
// each actor once, however many states of the world it occurs in.
type driver struct {
	actors []*actor
	roots  []*node
	nodes  int
	runs   int     // programs started
	steps  int     // gates passed
	kept   []*node // a ring of those that may have a run
	next   int
}

// maxRuns is how many stopped programs are kept to be continued.
const maxRuns = 2000

func newDriver(actors []*actor) *driver {
	d := &driver{actors: actors, kept: make([]*node, maxRuns), roots: make([]*node, len(actors))}
	for i := range actors {
		d.roots[i] = d.node(i, nil, obs{}, d.start(i))
	}
	return d
}

func (d *driver) start(actor int) *instance {
	d.runs++
	return start(d.actors[actor].run)
}

func (d *driver) node(actor int, parent *node, via obs, run *instance) *node {
	n := &node{id: d.nodes, actor: actor, parent: parent, via: via, at: run.at, run: run}
	d.nodes++
	if old := d.kept[d.next]; old != nil && old.run != nil {
		old.run.stop()
		old.run = nil
	}
	d.kept[d.next] = n
	d.next = (d.next + 1) % maxRuns
	if parent != nil {
		n.log = parent.log
		n.files, n.creates, n.read, n.seen, n.looked = parent.files, parent.creates, parent.read, parent.seen, parent.looked
		n.learn(parent.at.op, via)
	}
	return n
}

// close ends all programs.
func (d *driver) close() {
	for _, n := range d.kept {
		if n != nil && n.run != nil {
			n.run.stop()
			n.run = nil
		}
	}
}

// after is the history n with one more result.
func (d *driver) after(n *node, r obs) *node {
	if k := n.kids[r]; k != nil {
		return k
	}
	run := n.run
	n.run = nil
	if run == nil {
		run = d.again(n)
	}
	run.step(r)
	d.steps++
	if n.kids == nil {
		n.kids = map[obs]*node{}
	}
	k := d.node(n.actor, n, r, run)
	n.kids[r] = k
	return k
}

// again runs the program once more as far as n.
func (d *driver) again(n *node) *instance {
	var path []*node
	for m := n; m.parent != nil; m = m.parent {
		path = append(path, m)
	}
	run := d.start(n.actor)
	for _, m := range slices.Backward(path) {
		if run.at.op != m.parent.at.op {
			panic(fmt.Sprintf("actor %s is not deterministic: after the same results it does %v, and did %v",
				d.actors[n.actor].name, run.at.op, m.parent.at.op))
		}
		run.step(m.via)
		d.steps++
	}
	return run
}

// learn notes what the result of a step says.
func (n *node) learn(o op, r obs) {
	if r.errno != 0 {
		if o.kind == opOpen && o.name == lockName {
			n.seen = sight{}
		}
		return
	}
	change := func() *handle {
		n.files = slices.Clone(n.files)
		return &n.files[o.file]
	}
	switch o.kind {
	case opCreate:
		n.files = append(slices.Clip(n.files), handle{id: r.file, name: o.name, write: true, open: true})
		n.creates++
	case opOpen:
		n.files = append(slices.Clip(n.files), handle{id: r.file, name: o.name, open: true})
		if o.name == lockName {
			n.seen = sight{there: true, id: r.file}
			n.looked = n.parent.at.local.step
		}
		if o.name == logName {
			n.read = ""
		}
	case opRead:
		change().at += len(r.data)
		switch o.name {
		case lockName:
			n.seen.data += r.data
		case logName:
			n.read += r.data
		}
	case opLstat:
		if o.name == logName {
			n.log = r.file
		}
	case opClose:
		change().open = false
	case opJudge:
		n.seen.asked = append(slices.Clip(n.seen.asked), answer{o, r.judge})
	case opList:
		if strings.HasPrefix(o.data, lockName+".claim-") {
			n.seen.prefix, n.seen.claims = o.data, r.data
		}
	}
}

// opens tells whether the actor has the inode open.
func (n *node) opens(id int) bool {
	return slices.ContainsFunc(n.files, func(h handle) bool { return h.open && h.id == id })
}
