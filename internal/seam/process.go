package seam

import (
	"sync"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/vfs"
)

// Process is one process as the locks see it: its identity, and the two things it must remember from
// one call to the next. Tests run several in one.
type Process struct {
	self func() proc.Holder
	tag  func() string
	// hostlessOurs: names without a host part can be judged here.
	hostlessOurs bool

	mu     sync.Mutex
	ended  map[string]bool // tokens of holds that ended without seeing their lock go
	debris map[string]bool // names that are ours and could not be removed
}

// NewProcess returns a process that records itself as self says and marks names with tag. Names of
// the earlier shapes without a host part are only judged where hostlessOurs says that their pids are
// ours to probe: outside the initial pid namespace the number may be a neighbour's.
func NewProcess(self func() proc.Holder, tag func() string, hostlessOurs bool) *Process {
	return &Process{
		self: self, tag: tag, hostlessOurs: hostlessOurs,
		ended: map[string]bool{}, debris: map[string]bool{},
	}
}

// Self is this process as a record names it.
func (p *Process) Self() proc.Holder { return p.self() }

// Tag is the host part of the names this process makes.
func (p *Process) Tag() string { return p.tag() }

// Owns reports whether the owner of a name with this host part is of this host and pid namespace.
func (p *Process) Owns(tag string) bool {
	if tag == "" {
		return p.hostlessOurs
	}
	return tag == p.tag()
}

// maxEnded bounds the memory of ended holds. Each is a forced unlock or a failed release, so a
// process that has seen this many has other troubles.
const maxEnded = 4096

// EndUnseen remembers that the hold with this token has ended although its lock was not seen to go:
// it was lost, or its release failed. Whoever meets the token in the lock may release it.
func (p *Process) EndUnseen(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ended) >= maxEnded {
		clear(p.ended)
	}
	p.ended[token] = true
}

// TakeEnded reports whether the token is of a hold that ended unseen, and forgets it: of several
// goroutines that meet such a lock exactly one releases it. If that fails it calls EndUnseen again.
func (p *Process) TakeEnded(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended[token] {
		return false
	}
	delete(p.ended, token)
	return true
}

// Litter remembers a name of this process's own making that could not be removed. The name is unique,
// so nobody else can have made it since.
func (p *Process) Litter(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.debris[name] = true
}

// TakeLitter returns the remembered names in dir, and forgets them.
func (p *Process) TakeLitter(dir string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range p.debris {
		if d, _ := vfs.Split(name); d == dir {
			names = append(names, name)
			delete(p.debris, name)
		}
	}
	return names
}
