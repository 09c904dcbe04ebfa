package explore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func actors(do ...Actor) []Actor { return do }

var (
	writer   = Actor{Update}
	unlocker = Actor{Unlock}
	forcer   = Actor{ForceUnlock}
)

// searchBoth explores a world in both classes, inside a bubble: a goroutine that is left would be found.
func searchBoth(t *testing.T, w World, check func(t *testing.T, r *Result)) {
	for _, w.NoLinks = range []bool{false, true} {
		name := "hard links"
		if w.NoLinks {
			name = "no hard links"
		}
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			var r *Result
			synctest.Test(t, func(*testing.T) { r = Explore(w) })
			t.Logf("%v in %v", r, time.Since(start).Round(time.Millisecond))
			check(t, r)
		})
	}
}

func noFaults(t *testing.T, r *Result) {
	for kind, f := range r.Faults {
		t.Errorf("%d times %s: %s", f.Count, kind, f.Schedule)
	}
	if !r.Complete {
		t.Log("not every schedule")
	}
}

// Every schedule of the small worlds, with a death anywhere: without force both guarantees hold.
func TestEverySchedule(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    World
	}{
		{"two writers", World{Actors: actors(writer, writer), Waits: 2}},
		{"two breakers of a dead lock", World{Actors: actors(writer, writer), DeadLock: true, Waits: 1}},
		{"a writer and an unlock", World{Actors: actors(writer, unlocker), DeadLock: true, Waits: 1}},
		{"two unlocks", World{Actors: actors(unlocker, unlocker), DeadLock: true, Waits: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.w.Deaths, tt.w.Preemptions = 1, -1
			searchBoth(t, tt.w, noFaults)
		})
	}
}

// Three writers, up to three preemptions.
func TestThreeWriters(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead lock %v", dead), func(t *testing.T) {
			searchBoth(t, World{Actors: actors(writer, writer, writer), DeadLock: dead, Preemptions: 3, Waits: 2}, noFaults)
		})
	}
}

// With force only what the specification names may happen: a record lost, or a live holder's lock moved,
// after the removal. Nobody is left waiting for ever, no lock is overwritten, and the next write finds
// its way.
func TestForced(t *testing.T) {
	for _, tt := range []struct {
		name     string
		w        World
		residual bool // the world is large enough to show them
	}{
		{"a writer and a forced unlock", World{Actors: actors(writer, forcer), Deaths: 1, Preemptions: -1, Waits: 2}, false},
		{"a breaker and a forced unlock", World{Actors: actors(writer, forcer), DeadLock: true, Deaths: 1, Preemptions: -1, Waits: 1}, false},
		{"two writers and a forced unlock", World{Actors: actors(writer, writer, forcer), Preemptions: 3, Waits: 2}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			searchBoth(t, tt.w, func(t *testing.T, r *Result) {
				for kind, f := range r.Faults {
					if kind != LostRecord && kind != MovedLive {
						t.Errorf("%d times %s: %s", f.Count, kind, f.Schedule)
					}
				}
				if tt.residual && (r.Faults[LostRecord] == nil || r.Faults[MovedLive] == nil) {
					t.Error("the residuals do not show: the search is too small to prove anything")
				}
			})
		})
	}
}
