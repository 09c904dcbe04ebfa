package vfstest

import "sync"

// Gate holds each operation of each actor until the scheduler lets it through. Give every actor its
// own hook from Actor and its own Wrap.
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
}

// NewGate returns a gate with nobody at it.
func NewGate() *Gate { return &Gate{held: map[string]*Held{}, wake: make(chan struct{}, 1)} }

// Actor returns the hook of the actor with that name.
func (g *Gate) Actor(name string) func(Op) error {
	return func(op Op) error { return g.Stop(name, op) }
}

// Stop holds the actor at the gate until it is let through, and returns what Pass was given.
func (g *Gate) Stop(actor string, op Op) error {
	h := &Held{Actor: actor, Op: op, pass: make(chan error)}
	g.mu.Lock()
	g.held[actor] = h
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

// Await returns once the actor is held at an operation.
func (g *Gate) Await(actor string) *Held {
	for {
		if h := g.At(actor); h != nil {
			return h
		}
		<-g.wake
	}
}

// Pass lets the actor's operation happen, or fail with err when that is not nil.
func (g *Gate) Pass(h *Held, err error) {
	g.mu.Lock()
	delete(g.held, h.Actor)
	g.mu.Unlock()
	h.pass <- err
}
