package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
)

// state is the whole world between two steps. It is a value, apart from the nodes, which never change.
type state struct {
	disk  disk
	at    []*node
	dead  uint32 // bit i: actor i has been killed
	kills int    // that may still happen
	// last is the actor that took the last step, and switched how often an actor that could have gone
	// on was left for another. Both count only in a search with a bound.
	last, switched int
	marks          marks
}

func (s *state) clone() *state {
	c := *s
	c.disk = s.disk.clone()
	c.at = slices.Clone(s.at)
	c.marks = s.marks.clone()
	return &c
}

func (s *state) isDead(actor int) bool { return s.dead&(1<<actor) != 0 }

// over tells whether the actor takes no more steps.
func (s *state) over(actor int) bool { return s.isDead(actor) || s.at[actor].at.op.kind == opEnd }

// key identifies a state. It is a hash of 128 bits of everything that is in it: of 10^8 states, two
// share one with a chance of 10^-23.
type key [16]byte

func (x *Explorer) key(s *state) key {
	b := x.buf[:0]
	num := func(n int) { b = binary.AppendVarint(b, int64(n)) }
	str := func(t string) { num(len(t)); b = append(b, t...) }
	for i, n := range s.at {
		switch {
		case s.isDead(i):
			num(-1) // what it has lived through does nothing any more
		case n.at.op.kind == opEnd && !x.world.forced():
			num(-2 - int(n.at.local.outcome)) // nobody asks it to go on, and none of its locks can come back
		default:
			num(n.id)
		}
	}
	num(int(s.dead))
	num(s.kills)
	if x.world.bound >= 0 {
		num(s.last)
	}
	num(len(s.disk.names))
	for _, e := range s.disk.names {
		str(e.name)
		num(e.id)
	}
	for _, n := range s.disk.inodes {
		num(n.id)
		str(n.data)
		num(int(n.mode))
		if n.writing {
			num(1)
		}
	}
	b = s.marks.append(b)
	x.buf = b
	sum := sha256.Sum256(b)
	return key(sum[:16])
}

// do takes the step that the actor is at, and returns its result. It changes s.
func (x *Explorer) do(s *state, actor int) obs {
	n := s.at[actor]
	o, d := n.at.op, &s.disk
	var r obs
	switch o.kind {
	case opCreate:
		id := actor*1000 + n.creates
		if r.errno = d.create(o.name, id, o.mode); r.errno == 0 {
			r.file = id
		}
	case opOpen:
		id := d.id(o.name)
		if id < 0 {
			r.errno = syscall.ENOENT
		}
		r.file = id
	case opLink:
		r.errno = d.link(o.name, o.to, x.world.hardLinks)
	case opRename:
		r.errno = d.rename(o.name, o.to)
	case opRemove:
		r.errno = d.remove(o.name)
	case opLstat:
		if id := d.id(o.name); id < 0 {
			r.errno = syscall.ENOENT
		} else {
			r.describe(d.inode(id))
		}
	case opReadlink:
		r.errno = syscall.EINVAL
	case opList:
		r.data = d.list(o.data)
	case opRead:
		h := n.files[o.file]
		data := d.inode(h.id).data[h.at:]
		r.data = data[:min(len(data), o.n)]
	case opWrite:
		d.inode(n.files[o.file].id).data += o.data
	case opStat:
		r.describe(d.inode(n.files[o.file].id))
	case opChmod:
		d.inode(n.files[o.file].id).mode = o.mode
	case opClose:
		if h := n.files[o.file]; h.write {
			d.inode(h.id).writing = false
		}
	case opJudge:
		r.judge = x.lives(s, actor, o)
	}
	return r
}

func (r *obs) describe(n *inode) { r.file, r.mode, r.size = n.id, n.mode, int64(len(n.data)) }

// lives answers for proc.Judge: what asker can know of the process that the step names.
func (x *Explorer) lives(s *state, asker int, o op) proc.Judgement {
	me := x.drv.actors[asker]
	switch {
	case o.holder.Host != "" && o.holder.Host != hostName:
		return proc.Judgement{Verdict: proc.Unknown, Reason: proc.OtherHost}
	case o.hasID && o.id.PidNS != me.ns:
		return proc.Judgement{Verdict: proc.Unknown, Reason: proc.OtherPIDNamespace}
	}
	for i, a := range x.drv.actors {
		if a.pid != o.holder.PID || a.ns != me.ns || s.isDead(i) {
			continue
		}
		if o.hasID && o.id.StartTime != 0 && o.id.StartTime != a.born { // a name does not say it
			return proc.Judgement{Verdict: proc.Dead, Reason: proc.PIDReused}
		}
		return proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
	}
	return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
}

// awake tells whether the actor, which waits, would find anything changed.
func (x *Explorer) awake(s *state, actor int) bool {
	n := s.at[actor]
	seen := &n.seen
	id := s.disk.id(lockName)
	if seen.there != (id >= 0) || id >= 0 && (id != seen.id || s.disk.inode(id).data != seen.data) {
		return true
	}
	if !seen.there { // it lost a race for a name that is free: nothing need change
		return true
	}
	for _, a := range seen.asked {
		if x.lives(s, actor, a.ask) != a.said {
			return true
		}
	}
	return seen.prefix != "" && x.others(actor, s.disk.list(seen.prefix)) != x.others(actor, seen.claims)
}

// others takes the actor's own claims out of a listing.
func (x *Explorer) others(actor int, names string) string {
	list := strings.Split(names, "\n")
	list = slices.DeleteFunc(list, func(name string) bool { return x.maker(name) == actor })
	return strings.Join(list, "\n")
}

// maker is the actor whose name stands in the name of a file beside the log, or -1.
func (x *Explorer) maker(name string) int {
	n, ok := x.parsed[name]
	if !ok {
		n = -1
		if p, ok := format.Parse(name, logName); ok {
			n = slices.IndexFunc(x.drv.actors, func(a *actor) bool { return a.pid == p.PID && a.tag == p.Tag })
			// Two actors may be of one process; what they drew tells them apart.
			if i := x.drawer(name[strings.LastIndexByte(name, '-')+1:]); n >= 0 && i >= 0 && x.drv.actors[i].pid == p.PID {
				n = i
			}
		}
		x.parsed[name] = n
	}
	return n
}

// private tells whether the step that the actor is at is independent of everything that the others
// can do before it is taken, and of whether the actor dies just before it or just before its next step
// that is not private. Then no other order need be looked at. See the package comment.
func (x *Explorer) private(s *state, actor int) bool {
	n := s.at[actor]
	o := n.at.op
	switch o.kind {
	case opClose, opSync, opSyncDir, opReadlink:
		return true
	case opOpen, opRead, opStat, opWrite, opChmod, opChown:
	case opJudge:
		return s.kills == 0 || x.lives(s, actor, o).Verdict != proc.Alive
	default:
		return false
	}
	if o.kind == opOpen {
		return x.maker(o.name) == actor
	}
	id := n.files[o.file].id
	for i, m := range s.at {
		if i == actor || s.isDead(i) || !m.opens(id) {
			continue
		}
		if o.kind == opWrite || o.kind == opChmod || o.kind == opChown {
			return false
		}
		for _, h := range m.files {
			if h.open && h.id == id && h.write {
				return false
			}
		}
	}
	if o.kind == opRead || o.kind == opStat {
		return true
	}
	for _, e := range s.disk.names {
		if e.id == id && x.maker(e.name) != actor {
			return false
		}
	}
	return true
}

// collect forgets the files that nobody can reach.
func (x *Explorer) collect(s *state) {
	s.disk.collect(func(id int) bool {
		for i, n := range s.at {
			if !s.isDead(i) && n.opens(id) {
				return true
			}
		}
		return false
	})
}

// kill ends the actor's process, and with it whoever else runs in it.
func (x *Explorer) kill(s *state, actor int) {
	s.kills--
	for i, a := range x.drv.actors {
		if a.pid != x.drv.actors[actor].pid {
			continue
		}
		s.dead |= 1 << i
		for _, h := range s.at[i].files {
			if n := s.disk.inode(h.id); h.open && h.write && n != nil {
				n.writing = false
			}
		}
	}
	x.collect(s)
}

const regular fs.FileMode = 0o600
