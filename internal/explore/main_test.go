package explore

import (
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain trades memory, which a search has little of that dies young, for time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

var nightly = os.Getenv("STILE_NIGHTLY") != ""

// world returns a world of the table in one class.
func world(t *testing.T, name, class string) *World {
	t.Helper()
	i := slices.IndexFunc(Worlds, func(w World) bool { return w.Name == name })
	if i < 0 || !slices.Contains(Classes[:], class) {
		t.Fatalf("no world %q, %q", name, class)
	}
	w := Worlds[i]
	w.hardLinks = class == Classes[0]
	return &w
}

// search looks at every schedule of the world, and prints what it has seen.
func search(t *testing.T, w *World, want string) (r Result, v *Violation) {
	t.Helper()
	begin := time.Now()
	synctest.Test(t, func(*testing.T) {
		x := New(w)
		x.Want = want
		r, v = x.Run()
	})
	t.Logf("%s; %.1f s", r, time.Since(begin).Seconds())
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		t.Logf("  %7d × %s", r.Counts[what], what)
	}
	return r, v
}

// clean searches a world in which nothing may break. What does is saved, to be replayed for ever.
func clean(t *testing.T, w *World) Result {
	t.Helper()
	r, v := search(t, w, "")
	if v != nil {
		where := "not saved: not run in its folder"
		if _, err := os.Stat(schedules); err == nil {
			where = "saved as " + save(t, w, v)
		}
		t.Errorf("%v\n%s:\n%s", v, where, lines(w, v))
	}
	if v == nil && r.Ends == 0 {
		t.Error("no schedule came to an end")
	}
	return r
}

func lines(w *World, v *Violation) string {
	s := &Saved{World: w.Name, Class: Classes[0], Finds: v.Kind, Steps: v.Schedule}
	if !w.hardLinks {
		s.Class = Classes[1]
	}
	if w.fault != nil {
		s.Fault = w.fault.name
	}
	return s.String()
}

const schedules = "testdata/schedules"

// save keeps a schedule that broke something.
func save(t *testing.T, w *World, v *Violation) string {
	t.Helper()
	what := v.Kind
	if w.fault != nil {
		what = w.fault.name + " " + what
	}
	if !w.hardLinks {
		what += " no hard links"
	}
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		if r == ' ' || r == ':' {
			return '-'
		}
		return -1
	}
	name := filepath.Join(schedules, strings.Map(plain, what)+".txt")
	if err := os.WriteFile(name, []byte(lines(w, v)), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestThreeWritersWhole searches three writers without a death: at night with hard links every schedule,
// without, where there are more than fit in memory, up to five preemptions; by day up to one.
func TestThreeWritersWhole(t *testing.T) {
	for _, class := range Classes {
		t.Run(class, func(t *testing.T) {
			w := world(t, "three writers", class)
			switch {
			case !nightly:
				w.bound = 1
			case w.hardLinks:
				w.bound = -1
			default:
				w.bound = 5
			}
			clean(t, w)
		})
	}
}

// TestEverySchedule searches all worlds: those of two exhaustively, with a death anywhere.
func TestEverySchedule(t *testing.T) {
	for _, w := range Worlds {
		for _, class := range Classes {
			t.Run(w.Name+", "+class, func(t *testing.T) {
				t.Parallel()
				w := world(t, w.Name, class)
				if testing.Short() && (w.mains() > 2 || w.deadLock) {
					t.Skip("many states: not with -short")
				}
				if nightly {
					w.deepen()
				}
				r := clean(t, w)
				if w.forced() && r.Counts["a live holder's lock moved, forced out"] == 0 {
					t.Error("no lock was ever forced out: the search shows nothing")
				}
			})
		}
	}
}
