package explore

import (
	"fmt"
	"strings"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
)

// Worlds are those that are searched, by name.
var Worlds = []World{
	// Without force nothing may break, in any schedule.
	{Name: "two writers", jobs: "ww", deaths: 1, bound: -1},
	{Name: "a writer and an unlock", jobs: "wu", deaths: 1, bound: -1},
	{Name: "two breakers of one dead lock", jobs: "ww", deadLock: true, deaths: 1, bound: -1},
	{Name: "a breaker and an unlock", jobs: "wu", deadLock: true, deaths: 1, bound: -1},
	{Name: "two writers of one process at a dead lock", jobs: "wg", deadLock: true, deaths: 1, bound: -1},
	{Name: "two pid namespaces at a dead lock", jobs: "wn", deadLock: true, deaths: 1, bound: -1},
	{Name: "three writers", jobs: "www", bound: 3},
	{Name: "three breakers of one dead lock", jobs: "www", deadLock: true, bound: 2},
	{Name: "two breakers and a neighbour", jobs: "wwn", deadLock: true, bound: 2},

	// With force what breaks must be what the specification says.
	{Name: "a writer and a forced unlock", jobs: "wf", deaths: 1, bound: -1},
	{Name: "two writers and a forced unlock", jobs: "wwf", deaths: 1, bound: 2},
	{Name: "two breakers and a forced unlock", jobs: "wwf", deadLock: true, deaths: 1, bound: 1},
	{Name: "three writers and a forced unlock", jobs: "wwwf", bound: 1},
	{Name: "three breakers and a forced unlock", jobs: "wwwf", deadLock: true, bound: 1},
}

// World says who does what in which folder.
type World struct {
	Name string
	// jobs are the actors': "w" writes, "u" unlocks, "f" unlocks with force; "n" writes from another
	// pid namespace of the same host, "g" writes from the process of the first.
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

// deepen makes the world larger, for searches that may take minutes.
func (w *World) deepen() {
	switch {
	case w.bound >= 0 && w.mains() == 4:
		w.bound++
	case w.bound >= 0 && w.forced():
		w.bound++
	case w.bound == 2:
		w.bound = 3
	case w.bound >= 0:
		w.deaths = 1
	}
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

// stays tells whether a name may be there in the end: a leftover of another pid namespace, which the
// clean writer cannot judge.
func (w *World) stays(name string) bool {
	n, ok := format.Parse(name, logName)
	return ok && n.Tag == tags[1]
}

// actors are those at work and, after them, two clean writers and an operator for the end.
func (w *World) actors() []*actor {
	var list []*actor
	add := func(name string, j job, ns uint64) {
		i := len(list)
		tag := tags[ns-1]
		if w.fault != nil && w.fault.oneTag {
			tag = tags[0]
		}
		list = append(list, &actor{
			name: name, pid: int64(101 + i), born: uint64(1000 + i), ns: ns, tag: tag,
			job: j, fault: w.fault, index: uint32(i + 1),
		})
	}
	letter := 'A'
	for _, c := range w.jobs {
		switch c {
		case 'w', 'n', 'g':
			ns := uint64(1)
			if c == 'n' {
				ns = 2
			}
			add(string(letter), writes, ns)
			if c == 'g' {
				list[len(list)-1].pid, list[len(list)-1].born = list[0].pid, list[0].born
			}
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
		_ = d.create(name, id, regular) // into an empty folder
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
