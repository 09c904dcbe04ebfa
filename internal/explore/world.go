package explore

import (
	"fmt"
	"strings"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
)

// World says who does what in which folder.
type World struct {
	Name string
	// jobs are the actors': "w" writes, "u" unlocks, "f" unlocks with force; "n" writes from another
	// pid namespace of the same host.
	jobs      string
	hardLinks bool
	deadLock  bool     // a dead process's lock is there at first
	leftovers []string // and names of its making
	deaths    int      // that may happen, anywhere
	bound     int      // how often an actor that can go on may be left for another; -1: ever
	full      bool     // without the reduction
	limit     int      // states; a search that needs more is a failure
	fault     *fault
}

func (w *World) String() string {
	s := w.Name
	if w.hardLinks {
		s += ", hard links"
	} else {
		s += ", no hard links"
	}
	if w.bound >= 0 {
		s += fmt.Sprintf(", %d preemptions", w.bound)
	}
	if w.fault != nil {
		s += ", " + w.fault.name
	}
	return s
}

// deadPID is a process that is gone before anything begins.
const deadPID = 99

func (w *World) mains() int { return len(w.jobs) }

// operator is who forces the lock away when the clean writer is rightly blocked.
func (w *World) operator() int { return w.mains() + 2 }

// forced tells whether anybody uses force.
func (w *World) forced() bool { return strings.Contains(w.jobs, "f") }

// dirty tells whether something lies beside the log at first.
func (w *World) dirty() bool { return w.deadLock || len(w.leftovers) > 0 }

// stays tells whether a name may be there in the end.
func (w *World) stays(string) bool { return false }

// actors are those at work and, after them, two clean writers and an operator for the end.
func (w *World) actors() []*actor {
	var list []*actor
	add := func(name string, j job, ns uint64) {
		i := len(list)
		list = append(list, &actor{
			name: name, pid: int64(101 + i), born: uint64(1000 + i), ns: ns, tag: tags[ns-1],
			job: j, fault: w.fault, index: uint32(i + 1),
		})
	}
	letter := 'A'
	for _, c := range w.jobs {
		switch c {
		case 'w', 'n':
			ns := uint64(1)
			if c == 'n' {
				ns = 2
			}
			add(string(letter), writes, ns)
			letter++
		case 'u':
			add("U", unlocks, 1)
		case 'f':
			add("F", forces, 1)
		}
	}
	add("Y", writes, 1)
	add("Z", writes, 1)
	add("O", forces, 1)
	return list
}

// disk is the folder at first.
func (w *World) disk() disk {
	var d disk
	id := 1000 * 1000
	put := func(name, data string) {
		id++
		d.create(name, id, regular)
		n := d.inode(id)
		n.data, n.writing = data, false
	}
	put(logName, "0\n")
	if w.deadLock {
		put(lockName, w.deadContent())
	}
	for _, name := range w.leftovers {
		put(name, "")
	}
	return d
}

func (w *World) deadContent() string {
	l := format.Lock{
		PID: deadPID, Host: hostName, Token: "00000000000000000000dead",
		AcquiredAt: epoch.UTC().Format(format.TimeFormat), Proc: &proc.ID{PidNS: 1, StartTime: 1},
	}
	return string(l.Encode())
}

// role says what a name is for, without the numbers that make it unique.
func role(name string) string {
	switch name {
	case logName:
		return "log"
	case lockName:
		return "lock"
	}
	if n, ok := format.Parse(name, logName); ok {
		return string(n.Kind)
	}
	if strings.HasPrefix(name, lockName+".claim") {
		return "claims"
	}
	return name
}
