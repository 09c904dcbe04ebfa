package granttest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

// Factory makes an empty place. Its stores' clock is the one given, where they have one.
type Factory func(t *testing.T, clock *Clock) Place

// Place is where stores of one kind keep their containers, as a test can have it.
type Place struct {
	// Open gives the store as a process that has just started has it: it shares with others what is stored,
	// and nothing else. Required.
	Open func() grant.Store

	// Backup keeps all there is, and gives a function that puts just that back.
	Backup func() (restore func())
	// Lose takes a container's pages away.
	Lose func(container string)
	// Overwrite puts other bytes in the place of a revision, or where the one after the head would be.
	Overwrite func(container string, at grant.Ref, data []byte)
	// Miss takes one page away and leaves the others.
	Miss func(container string, at grant.Ref)
	// Restore is the operator's one command for what Lose, Overwrite, Miss and Backup have done.
	Restore func(ctx context.Context, s grant.Store, cmd grant.Restore) (grant.Revision, error)
	// PowerCuts gives stores as they may be found when the power fails now.
	PowerCuts func(yield func(grant.Store) bool)
}

// Clock is a clock that tests set.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock is a clock at the moment when tests begin.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Step moves the clock, either way.
func (c *Clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type test struct {
	name string
	run  func(*world)
}

// Run holds a kind of store against the whole suite.
func Run(t *testing.T, factory Factory) {
	for _, list := range [][]test{storeTests, failureTests, damageTests, raceTests} {
		for _, c := range list {
			t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, factory)) })
		}
	}
}
