package vfstest

import (
	"errors"
	"sync"
)

// ErrKilled is what every operation of a killed process gets.
var ErrKilled = errors.New("process killed")

// Injector is a hook for Wrap that lets operations through until the one numbered At (from 0), and
// then does what its other fields say.
type Injector struct {
	At int
	// Err is what the operation fails with. With Onward, so do all later ones.
	Err    error
	Onward bool
	// Kill ends the process at the operation: it and all later ones do nothing and fail with
	// ErrKilled. Code that goes on after that can change nothing, as a dead process cannot. A write
	// does its first half, because a process may die in the middle of one.
	Kill bool
	// Only, when set, says which operations count.
	Only func(Op) bool

	mu   sync.Mutex
	n    int
	hits []Op
}

// Before is the hook.
func (in *Injector) Before(op Op) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.Only != nil && !in.Only(op) && !(in.Kill && len(in.hits) > 0) {
		return nil
	}
	n := in.n
	in.n++
	if n < in.At || n > in.At && !in.Onward && !in.Kill {
		return nil
	}
	in.hits = append(in.hits, op)
	if !in.Kill {
		return in.Err
	}
	if op.Kind == "write" && n == in.At {
		return &Short{N: len(op.Data) / 2, Err: ErrKilled}
	}
	return ErrKilled
}

// Hits returns the operations that were failed. None means that the run had fewer than At+1.
func (in *Injector) Hits() []Op {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hits
}
