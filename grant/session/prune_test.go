package session

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/register"
)

// Sessions whose grants ended without a release do not pile up: the last ones stay, and nobody's that is alive or
// unsettled goes. Who comes with one that went is refused, and its landing kept.
func TestPrunedSessions(t *testing.T) {
	p := newPlace(t)
	lost := &lossy{Store: p.store(), before: 1, op: grant.OpAcquire}
	if _, _, err := (&Client{Store: lost, Agent: "unsettled"}).Acquire(t.Context(), container, ""); !errors.Is(err, grant.ErrUnknown) {
		t.Fatal(err)
	}
	var all []*local.Session
	for i := range 20 {
		all = append(all, p.acquire(fmt.Sprint("agent", i)))
		p.clock.Step(5 * time.Hour)
	}
	// The locks of grant run: one whose session has gone, and whose command runs still; one that is free; and one
	// whose session is there.
	locked := func(x *local.Session) *kernlock.Lock {
		lock, _, err := kernlock.TryAcquire(x.RunTarget(), kernlock.Options{})
		if err != nil || lock == nil {
			t.Fatal(lock, err)
		}
		return lock
	}
	busy := locked(all[0])
	for _, x := range []*local.Session{all[1], all[19]} {
		if err := locked(x).Release(); err != nil {
			t.Fatal(err)
		}
	}
	last := p.acquire("zoe")
	left, err := p.store().Sessions(container)
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for _, x := range left {
		there[x.Grant] = true
	}
	if len(left) != 18 || !there[0] || there[4] || !there[5] || !there[20] || !there[last.Grant] {
		t.Errorf("%d sessions are left: %v", len(left), there)
	}
	for i, want := range map[int]bool{0: true, 1: false, 19: true} {
		if _, err := os.Lstat(all[i].RunTarget() + ".lock"); (err == nil) != want {
			t.Errorf("the lock of grant %d: %v", all[i].Grant, err)
		}
	}
	for _, i := range []int{0, 10} {
		_, err = p.client(all[i].Agent).Land(t.Context(), container, all[i].Path, Landing{Empty: "late"})
		code := grant.CodeNotHolder
		if i == 10 {
			code = grant.CodeFenced
		}
		wants(t, err, code)
		if kept := new(register.RefusedError); !errors.As(err, &kept) || kept.Kept.Name == "" {
			t.Errorf("not kept: %v", err)
		}
	}
	if err := busy.Release(); err != nil {
		t.Fatal(err)
	}
	p.release(last)
	p.acquire("yara")
	if _, err := os.Lstat(all[0].RunTarget() + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock that was busy is still there: %v", err)
	}
	if x, _, err := p.client("unsettled").Acquire(t.Context(), container, ""); grant.CodeOf(err) != grant.CodeHeld {
		t.Error(x, err)
	}
}
