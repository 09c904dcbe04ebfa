package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The test binary is its own worker, as the bench is. It knows one contestant
// more: a lock that keeps nobody out.
func TestMain(m *testing.M) {
	contestants = append(contestants, contestant{id: "no-lock", about: "keeps nobody out", open: func(string) (passage, error) {
		nothing := func() error { return nil }
		return passage{lock: nothing, unlock: nothing}, nil
	}})
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := runWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testBench(t *testing.T) *bench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{quick: true, dir: t.TempDir(), mem: t.TempDir(), self: self, book: &book{}}
}

func TestCrowdSeesALockThatKeepsNobodyOut(t *testing.T) {
	got, err := testBench(t).crowd("no-lock", 4, time.Millisecond, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got.lost == 0 || got.overlaps == 0 {
		t.Errorf("%d steps lost, %d overlaps: the check is blind", got.lost, got.overlaps)
	}
}

func TestCrowdPassesFlock(t *testing.T) {
	got, err := testBench(t).crowd("flock-go", 4, time.Millisecond, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got.lost+got.overlaps != 0 {
		t.Errorf("%d steps lost, %d overlaps", got.lost, got.overlaps)
	}
	if got.rate <= 0 || got.max <= 0 {
		t.Errorf("rate %v, longest wait %v", got.rate, got.max)
	}
}

func TestAFailingWorkerIsAnError(t *testing.T) {
	b := testBench(t)
	j, err := b.fresh("no such job", "flock-go")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.startReady(j); err == nil {
		t.Error("a worker that knows no such job was ready")
	}
}

func TestMonoIsTheKernelsClock(t *testing.T) {
	before := systemClock()
	m := mono()
	after := systemClock()
	if m < before-int64(10*time.Microsecond) || m > after+int64(10*time.Microsecond) {
		t.Errorf("mono %d is not between %d and %d", m, before, after)
	}
}
