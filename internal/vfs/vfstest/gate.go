package vfstest

import (
	"sync"

	"github.com/stile-lock/stile/internal/vfs"
)

// Gate holds each operation of each actor until the scheduler lets it through. Give every actor a
// file system of its own from Wrap.
//
// It blocks on channels only, so that actors held at it count as blocked inside a testing/synctest
// bubble.
type Gate struct {
	mu   sync.Mutex
	held map[string]*Held
	wake chan struct{}
}

// Held is an actor's operation that waits at the gate.
type Held struct {
	Actor string
	Op    Op
	pass  chan error
	over  chan struct{} // closed when the operation is over; nil for a Stop
}

// NewGate returns a gate with nobody at it.
func NewGate() *Gate { return &Gate{held: map[string]*Held{}, wake: make(chan struct{}, 1)} }

// Wrap returns base as the actor sees it: each operation stops at the gate first.
func (g *Gate) Wrap(base vfs.FS, actor string) vfs.FS {
	return &hooked{base, func(op Op) (func(), error) {
		h := &Held{Actor: actor, Op: op, pass: make(chan error), over: make(chan struct{})}
		return func() { close(h.over) }, g.stop(h)
	}}
}

// Stop holds the actor at the gate for something that is no file operation, and returns what Pass
// was given.
func (g *Gate) Stop(actor string, op Op) error {
	return g.stop(&Held{Actor: actor, Op: op, pass: make(chan error)})
}

func (g *Gate) stop(h *Held) error {
	g.mu.Lock()
	g.held[h.Actor] = h
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	return <-h.pass
}

// At returns the operation at which the actor is held, or nil.
func (g *Gate) At(actor string) *Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held[actor]
}

// Await returns once the actor is held at an operation. One goroutine, the scheduler, calls it.
func (g *Gate) Await(actor string) *Held {
	for {
		if h := g.At(actor); h != nil {
			return h
		}
		<-g.wake
	}
}

// Pass lets the actor's operation happen, or fail with err when that is not nil, and returns when it
// has.
func (g *Gate) Pass(h *Held, err error) {
	g.mu.Lock()
	delete(g.held, h.Actor)
	g.mu.Unlock()
	h.pass <- err
	if h.over != nil {
		<-h.over
	}
}
