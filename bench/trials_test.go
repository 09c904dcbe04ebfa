package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRecoverySeesDoubleHolders(t *testing.T) {
	got, err := testBench(t).recoverTrials("no-lock", 3)
	if err != nil || got.doubles == 0 {
		t.Errorf("no lock: %d double holders, %v: the check is blind", got.doubles, err)
	}
	got, err = testBench(t).recoverTrials("flock-go", 3)
	if err != nil || got.doubles != 0 || len(got.took) != 3 {
		t.Errorf("flock: %d double holders in %d trials, %v", got.doubles, len(got.took), err)
	}
}

func TestPauseSeesALateWrite(t *testing.T) {
	defer func(was time.Duration) { stopped = was }(stopped)
	stopped = 300 * time.Millisecond
	for _, c := range []struct {
		who     string
		cleared bool
		want    pause
	}{
		{"no-lock", false, pause{took: 1, lost: 1}},
		{"flock-go", false, pause{}},
		{"lockfile", true, pause{took: 1, refused: 1}},
	} {
		b := testBench(t)
		j, err := b.fresh("pause", c.who)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.pauseOnce(j, c.cleared)
		got.after = 0
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.who, got, err, c.want)
		}
	}
}

func TestPauseOfAGrant(t *testing.T) {
	if testing.Short() {
		t.Skip("a grant lives a second at least")
	}
	b := testBench(t)
	j, err := b.fresh("pause", "grant")
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.pauseOnce(j, false)
	if err != nil || got.took != 1 || got.refused != 1 || got.lost != 0 {
		t.Errorf("%+v, %v: want the late landing refused", got, err)
	}
}

func TestWrapSeesASecondCommand(t *testing.T) {
	for who, want := range map[string]float64{"no-lock": 1, "gofrs": 1} {
		got, err := testBench(t).wrapOnce(who, nil, 5*time.Second)
		if err != nil || got.second != want {
			t.Errorf("%s: %+v, %v", who, got, err)
		}
	}
	// The shell stands for a wrapper whose command inherits the lock.
	argv := []string{"flock", "LOCK"}
	got, err := testBench(t).wrapOnce("flock(1)", argv, 300*time.Millisecond)
	if err != nil && strings.Contains(err.Error(), "executable file not found") {
		t.Skip("no flock(1) here")
	}
	if err != nil || got.second != 0 {
		t.Errorf("flock(1): %+v, %v", got, err)
	}
}

func TestWaitersOfALockThatKeepsNobodyOut(t *testing.T) {
	for who, want := range map[string]string{"no-lock": "one held while the holder lived", "flock-go": ""} {
		b := testBench(t)
		j, err := b.fresh("enter", who)
		if err != nil {
			t.Fatal(err)
		}
		c, err := b.libraryCrowd(j, 5)
		if err != nil {
			t.Fatal(err)
		}
		c.let()
		served, err := c.through()
		slices.Sort(served)
		if err != nil || !slices.Equal(served, []int{0, 1, 2, 3, 4}) {
			t.Errorf("%s: %v, %v", who, served, err)
		}
		if got := strings.Join(b.book.Broken, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: broken: %q, want %q", who, got, want)
		}
	}
}

func TestOrderOfService(t *testing.T) {
	all := []hold{{ask: 30, enter: 70}, {ask: 10, enter: 80}, {ask: 20, enter: 60}, {ask: 40, enter: 90}}
	if got := ranks(all); !slices.Equal(got, []int{1, 2, 0, 3}) {
		t.Errorf("ranks: %v", got)
	}
	for _, c := range []struct {
		served      []int
		worst, mean float64
	}{
		{[]int{0, 1, 2, 3}, 0, 0}, {[]int{1, 0, 2, 3}, 0, 0}, {[]int{1, 2, 0, 3}, 0.5, 0.125}, {[]int{3, 2, 1, 0}, 0.75, 0.375},
	} {
		if worst, mean := displaced(c.served); worst != c.worst || mean != c.mean {
			t.Errorf("%v: displaced by %v, %v in the mean; want %v, %v", c.served, worst, mean, c.worst, c.mean)
		}
	}
}

// Every store counts what two processes have put there; those that keep the file to themselves, what one has.
func TestLinesAreCounted(t *testing.T) {
	for _, c := range contestants {
		if c.line == nil {
			continue
		}
		workers := 2
		if strings.HasPrefix(c.id, "bbolt-kept") {
			workers = 1
		}
		b := testBench(t)
		_, err := b.linesOnce(c.id, workers, 0, 100*time.Millisecond)
		if err != nil && strings.Contains(err.Error(), "requires cgo") {
			t.Logf("%s: not here: %v", c.id, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.id, err)
		}
	}
}
