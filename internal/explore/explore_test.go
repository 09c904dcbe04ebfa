package explore

import (
	"fmt"
	"os"
	"slices"
	"strings"
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

// full is the whole programme, which takes minutes. The default one takes the larger worlds up to fewer
// preemptions.
var full = os.Getenv("STILE_EXPLORE") == "full"

func bound(otherwise, whole int) int {
	if full {
		return whole
	}
	return otherwise
}

// Every schedule of the small worlds, with a death anywhere: without force both guarantees hold.
func TestEverySchedule(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    World
	}{
		{"two writers", World{Actors: actors(writer, writer), Preemptions: -1, Waits: 2}},
		{"two breakers of a dead lock", World{Actors: actors(writer, writer), DeadLock: true, Preemptions: bound(4, -1), Waits: 1}},
		{"a writer and an unlock", World{Actors: actors(writer, unlocker), DeadLock: true, Preemptions: -1, Waits: 1}},
		{"two unlocks", World{Actors: actors(unlocker, unlocker), DeadLock: true, Preemptions: -1, Waits: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.w.Deaths = 1
			searchBoth(t, tt.w, noFaults)
		})
	}
}

// Three writers, up to three preemptions.
func TestThreeWriters(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead lock %v", dead), func(t *testing.T) {
			searchBoth(t, World{Actors: actors(writer, writer, writer), DeadLock: dead, Preemptions: bound(2, 3), Waits: 2}, noFaults)
		})
	}
}

// With force only what the specification names may happen: a live holder's lock moved, or a record lost
// to a commit whose lock was taken away between its fence and its rename; or (a block) an old lock that
// comes back while its process does nothing. Nobody is left waiting for ever, no lock is overwritten, and
// the next write finds its way.
func TestForced(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    World
		must []string // what the world is large enough to show
	}{
		{"a writer and a forced unlock", World{Actors: actors(writer, forcer), Deaths: 1, Preemptions: -1}, []string{MovedLive}},
		{"a breaker and a forced unlock", World{Actors: actors(writer, forcer), DeadLock: true, Deaths: 1, Preemptions: -1}, []string{MovedLive}},
		{"two writers and a forced unlock", World{Actors: actors(writer, writer, forcer), Preemptions: 4, MaxStates: bound(250_000, 0)}, []string{MovedLive, LostInWindow, CameBack}},
		{"two breakers and a forced unlock", World{Actors: actors(writer, writer, forcer), DeadLock: true, Preemptions: bound(2, 3)}, []string{MovedLive}},
		{"three writers and a forced unlock", World{Actors: actors(writer, writer, writer, forcer), Preemptions: bound(2, 3), MaxStates: bound(150_000, 5_000_000)}, []string{MovedLive}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.w.Waits = 1
			searchBoth(t, tt.w, func(t *testing.T, r *Result) {
				for kind, f := range r.Faults {
					if kind != LostInWindow && kind != MovedLive && kind != CameBack {
						t.Errorf("%d times %s: %s", f.Count, kind, f.Schedule)
					}
				}
				for _, kind := range tt.must {
					if r.Faults[kind] == nil {
						t.Errorf("never %s: the search proves nothing", kind)
					}
				}
			})
		})
	}
}

// Schedules that showed a fault once, and what each of them must show now.
func TestReplay(t *testing.T) {
	for _, tt := range []struct {
		name     string
		w        World
		schedule string
		want     []string
	}{
		// A forced-out releaser puts back the old lock of a process that has long retried and committed.
		{"the old lock comes back", World{Actors: actors(writer, writer, forcer), Waits: 2},
			"aaaaaaabbcccccccbbbbbbbbbbaaaabaaaa", []string{MovedLive, CameBack}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var steps []string
			got, err := Replay(tt.w, tt.schedule, func(s string) { steps = append(steps, s) })
			slices.Sort(got)
			got = slices.Compact(got)
			slices.Sort(tt.want)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q, %v; want %q; the steps:\n%s", got, err, tt.want, strings.Join(steps, "\n"))
			}
		})
	}
}
