package explore

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// residual is something that may go wrong after a forced unlock, and only then. The explorer counts
// each by this name; what breaks and has no such name is a violation.
type residual struct {
	finds string
	// noLinksOnly: there is no such step where the put-back is a link().
	noLinksOnly bool
	world       string
	// after is another residual, with whose schedule, until the lock is taken in it, the search for this
	// one begins: from the beginning it would be long.
	after string
	until string // cut that schedule off at another step
}

var residualTable = []residual{
	// The forced holder's whole remaining hold.
	{finds: "a live holder's lock moved, forced out", world: "a writer and a forced unlock"},
	{finds: "commit after the lock was lost inside fence to rename, forced out", world: "a writer and a forced unlock"},
	{finds: "a record dropped by a commit whose lock was lost, forced out", world: "two writers and a forced unlock"},
	{finds: "a record committed after the lock was lost, and dropped by the next, forced out", world: "two writers and a forced unlock"},
	// Its release moves a newer holder's lock.
	{finds: "a live holder's lock moved, by a release", world: "two writers and a forced unlock"},
	{finds: "a moved lock dropped, its name taken, at release:mismatch", world: "three writers and a forced unlock", after: "a live holder's lock moved, by a release"},
	{finds: "commit after the lock was lost inside fence to rename, by a release", world: "two writers and a forced unlock"},
	{finds: "a record dropped by a commit whose lock was lost, by a release", world: "three writers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by a release"},
	{finds: "a record committed after the lock was lost, and dropped by the next, by a release", world: "three writers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by a release"},
	{finds: "killed at release:mismatch", world: "two writers and a forced unlock"},
	{finds: "killed at release:put-back-opened", noLinksOnly: true, world: "two writers and a forced unlock"},
	// A breaker moves a newer holder's lock: forced unlock inside its confirm-to-rename window.
	{finds: "a live holder's lock moved, by a breaker", world: "two breakers and a forced unlock"},
	{finds: "a moved lock dropped, its name taken, at break:mismatch of a writer", world: "three breakers and a forced unlock", after: "a live holder's lock moved, by a breaker"},
	{finds: "commit after the lock was lost inside fence to rename, by a breaker", world: "two breakers and a forced unlock"},
	{finds: "a record dropped by a commit whose lock was lost, by a breaker", world: "three breakers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by a breaker"},
	{finds: "a record committed after the lock was lost, and dropped by the next, by a breaker", world: "three breakers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by a breaker"},
	{finds: "killed at break:mismatch of a writer", world: "two breakers and a forced unlock"},
	{finds: "killed at break:put-back-opened of a writer", noLinksOnly: true, world: "two breakers and a forced unlock"},
	// The forced unlock is such a breaker itself.
	{finds: "a live holder's lock moved, by the unlock", world: "two writers and a forced unlock"},
	{finds: "a moved lock dropped, its name taken, at break:mismatch of the unlock", world: "three writers and a forced unlock", after: "a live holder's lock moved, by the unlock"},
	{finds: "commit after the lock was lost inside fence to rename, by the unlock", world: "two writers and a forced unlock"},
	{finds: "a record dropped by a commit whose lock was lost, by the unlock", world: "three writers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by the unlock"},
	{finds: "a record committed after the lock was lost, and dropped by the next, by the unlock", world: "three writers and a forced unlock", after: "commit after the lock was lost inside fence to rename, by the unlock"},
	{finds: "killed at break:mismatch of the unlock", world: "two writers and a forced unlock"},
	{finds: "killed at break:put-back-opened of the unlock", noLinksOnly: true, world: "two writers and a forced unlock"},
	// A moved lock comes back when another has come, committed and gone meanwhile: its fence passes.
	{finds: "a record dropped by a commit whose lock was lost and came back, by a release", world: "three writers and a forced unlock", after: "a live holder's lock moved, by a release"},
	{finds: "a record dropped by a commit whose lock was lost and came back, by a breaker", world: "three breakers and a forced unlock", after: "a live holder's lock moved, by a breaker"},
	{finds: "a record dropped by a commit whose lock was lost and came back, by the unlock", world: "three writers and a forced unlock", after: "a live holder's lock moved, by the unlock", until: "link pending lock"},
	// What decision 12 leaves.
	{finds: "blocked: a lock put back after its hold had ended, its process alive", world: "two writers and a forced unlock"},
}

func residuals() []string {
	var list []string
	for _, r := range residualTable {
		list = append(list, r.finds)
	}
	return list
}

// TestResidualsAreReproduced shows that each of them can happen: a schedule is kept for it, which
// TestSavedSchedules replays.
func TestResidualsAreReproduced(t *testing.T) {
	for _, r := range residualTable {
		for _, class := range Classes {
			if r.noLinksOnly && class == Classes[0] {
				continue
			}
			t.Run(r.finds+", "+class, func(t *testing.T) {
				if !*saving {
					if kept(t, r.finds, class) == nil {
						t.Error("no schedule is kept")
					}
					return
				}
				v := first(t, r.world, class, nil, func(x *Explorer) {
					x.Goal = r.finds
					if strings.HasPrefix(r.finds, "killed") {
						x.world.deaths = 1
					}
					if r.after != "" {
						x.Lead = before(kept(t, r.after, class).Steps, cmp.Or(r.until, "rename lock broken"))
					}
				})
				if v == nil {
					t.Errorf("not found in %s", r.world)
				}
			})
		}
	}
}

// kept returns the saved schedule that finds this, in this class; nil when there is none.
func kept(t *testing.T, finds, class string) *Saved {
	t.Helper()
	files, err := filepath.Glob(schedules + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := ParseSaved(string(text)); err == nil && s.Class == class && s.Finds == finds {
			return s
		}
	}
	return nil
}

// before cuts a schedule off before the last time that a step is taken in it.
func before(steps []Step, what string) []Step {
	for i := range slices.Backward(steps) {
		if steps[i].What == what {
			return steps[:i]
		}
	}
	return steps
}
