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

// needs are what a kind of store must be able to, for a test of its own kind to mean anything.
var needs = map[string]func(*world) (there bool, what string){
	"Watch": func(w *world) (bool, string) {
		_, ok := w.store.(grant.Watcher)
		return ok, "watch"
	},
	"Failure03ContendersClockAhead": func(w *world) (bool, string) {
		_, shared := w.store.(grant.Clock)
		return !shared, "have a clock for each contender"
	},
	"Failure23TornPage": func(w *world) (bool, string) { return w.place.Overwrite != nil && w.place.Restore != nil, "be damaged" },
	"Failure24PowerCut": func(w *world) (bool, string) { return w.place.PowerCuts != nil, "lose power" },
	"Failure25OldBackup": func(w *world) (bool, string) {
		return w.place.Backup != nil && w.place.Restore != nil, "be restored from a backup"
	},
	"Failure26PageDeleted": func(w *world) (bool, string) { return w.place.Lose != nil && w.place.Restore != nil, "lose its pages" },
	"Failure27OutsiderWrites": func(w *world) (bool, string) {
		return w.place.Overwrite != nil && w.place.Restore != nil, "be written by others"
	},
	"PageMissingInTheMiddle": func(w *world) (bool, string) { return w.place.Miss != nil && w.place.Restore != nil, "lose one page" },
}

// Run holds a kind of store against the whole suite. What cannot happen to it is not run, and is logged.
func Run(t *testing.T, factory Factory) {
	probe, met := newWorld(t, factory), 0
	for _, list := range [][]test{storeTests, failureTests, damageTests, raceTests} {
		for _, c := range list {
			if need := needs[c.name]; need != nil {
				met++
				if there, what := need(probe); !there {
					t.Logf("%s is not run: this kind of store cannot %s", c.name, what)
					continue
				}
			}
			t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, factory)) })
		}
	}
	if met != len(needs) {
		t.Errorf("%d tests have needs, and %d of them were met with", len(needs), met)
	}
}
