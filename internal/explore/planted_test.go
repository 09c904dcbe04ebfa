package explore

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

var saving = flag.Bool("save", false, "save the schedules of planted bugs and residuals anew")

// planted says in which world each planted bug shows, and as what. Want is a part of the message, where
// the bug would first show as something lesser.
var planted = []struct {
	fault       *fault
	world, kind string
	want        string
}{
	{fault: releaseByUnlink, world: "two writers and a forced unlock", kind: Unlinked},
	{fault: breakWithoutConfirm, world: "two breakers of one dead lock", kind: LiveTaken},
	{fault: breakWithoutClaim, world: "two breakers of one dead lock", kind: LiveTaken},
	{fault: putBackByRename, world: "two writers and a forced unlock", kind: Overwritten},
	{fault: fenceSkipped, world: "a writer and a forced unlock", kind: Unfenced},
	// A lock that is lost to nobody's fault but the missing fence costs a record.
	{fault: fenceSkipped, world: "two writers and a forced unlock", kind: RecordLost, want: RecordLost},
	{fault: sweepByAge, world: "two writers", kind: NameTaken},
	// What that does in the end: a writer whose file is gone under it fails.
	{fault: sweepByAge, world: "two writers", kind: Failed, want: Failed},
	{fault: claimNameReused, world: "two writers of one process at a dead lock", kind: Failed},
	{fault: neighbourSwept, world: "two pid namespaces at a dead lock", kind: NameTaken, want: "claim"},
	// What that does in the end: two breakers at once.
	{fault: neighbourSwept, world: "two breakers and a neighbour", kind: LiveTaken, want: LiveTaken},
	{fault: staleCommitted, world: "two writers and a forced unlock", kind: RecordLost},
	{fault: endedForgotten, world: "two writers and a forced unlock", kind: SelfWait, want: SelfWait},
}

// maxBound is as many preemptions as a planted bug may need.
const maxBound = 4

// TestPlantedBugs shows that each check sees what it is for.
func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the planted bugs' schedules are replayed, not searched for")
	}
	for _, p := range planted {
		for _, class := range Classes {
			t.Run(p.fault.name+", "+p.kind+", "+class, func(t *testing.T) {
				t.Parallel()
				v := first(t, p.world, class, p.fault, func(x *Explorer) { x.Want = p.want })
				if v == nil {
					t.Fatalf("not found in %s", p.world)
				}
				if v.Kind != p.kind {
					t.Fatalf("found %v; want %s", v, p.kind)
				}
				t.Log(v)
			})
		}
	}
}

// first looks for a schedule with as few switches as it takes, and saves it when asked to.
func first(t *testing.T, name, class string, f *fault, set func(*Explorer)) *Violation {
	t.Helper()
	for bound := range maxBound + 1 {
		w := world(t, name, class)
		w.fault, w.bound, w.deaths, w.limit = f, bound, 0, 3_000_000
		var v *Violation
		synctest.Test(t, func(*testing.T) {
			x := New(w)
			set(x)
			_, v = x.Run()
		})
		if v != nil && v.Kind != tooLarge {
			if *saving {
				t.Log("saved as", save(t, w, v))
			}
			return v
		}
	}
	return nil
}

// TestSavedSchedules replays every schedule that ever broke something. With the bug planted again it
// must break as it did; without, nothing may break.
func TestSavedSchedules(t *testing.T) {
	files, err := filepath.Glob(schedules + "/*.txt")
	if err != nil || len(files) < len(planted) {
		t.Fatalf("only %d saved schedules, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := ParseSaved(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if again := s.String(); again != string(text) {
				t.Fatalf("reads back as\n%s", again)
			}
			w := world(t, s.World, s.Class)
			if slices.Contains(residuals(), s.Finds) {
				x, passed, v := replay(t, w, s)
				if x.result.Counts[s.Finds] == 0 || passed > 0 || v != nil {
					t.Errorf("shows %v (%v, %d lines passed over)", x.result.Counts, v, passed)
				}
				return
			}
			if s.Fault != "" {
				i := slices.IndexFunc(faults, func(f *fault) bool { return f.name == s.Fault })
				if i < 0 {
					t.Fatalf("no fault %q", s.Fault)
				}
				w.fault = faults[i]
				if _, passed, v := replay(t, w, s); v == nil || v.Kind != s.Finds || passed > 0 {
					t.Errorf("with the bug: %v, %d lines passed over", v, passed)
				}
				w.fault = nil
			}
			if _, _, v := replay(t, w, s); v != nil {
				t.Errorf("without the bug: %v", v)
			}
		})
	}
}

func replay(t *testing.T, w *World, s *Saved) (x *Explorer, passed int, v *Violation) {
	w.full = false
	synctest.Test(t, func(*testing.T) {
		x = New(w)
		x.Want = s.Finds
		if w.fault == nil {
			x.Want = ""
		}
		passed, v = x.Replay(s.Steps)
	})
	return x, passed, v
}
