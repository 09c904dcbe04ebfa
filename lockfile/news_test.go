package lockfile

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
)

// hookClock calls a function instead of sleeping.
type hookClock struct {
	jumpClock
	sleeps int
	hook   func(n int)
}

func (c *hookClock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps++
	c.hook(c.sleeps)
	return c.jumpClock.Sleep(ctx, d)
}

// A lock that another was replaced by while a caller waits is judged at the second look at it: in a crowd its
// holder lives. When the caller's time is nearly up there may be no second look, so the first one judges.
func TestNewsIsJudgedAtTheNextLook(t *testing.T) {
	for _, test := range []struct {
		timeout time.Duration
		sleeps  int // until the dead holder's lock is broken
	}{{time.Minute, 2}, {2 * longestWait, 1}} {
		w := newWorld(t, classes[1])
		w.plant("log.lock", lockOf(41, testHost))
		w.dies(42)
		clock := &hookClock{}
		clock.hook = func(n int) {
			w.mu.Lock()
			early := slices.Contains(w.probed, 42)
			w.mu.Unlock()
			if early {
				t.Errorf("timeout %s: judged before sleep %d, and not broken", test.timeout, n)
			}
			if n == 1 {
				l := format.Lock{PID: 42, Host: testHost, Token: "89abcdef0123456701234567", AcquiredAt: "2026-01-02T03:04:05.678Z"}
				w.plant("log.lock", string(l.Encode()))
			}
		}
		o := w.actor(7)
		o.Timeout = test.timeout
		set := *o.Seams
		set.Clock = seam.Clock(clock)
		o.Seams = &set
		h, err := Acquire(t.Context(), w.path, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Error(err)
		}
		if clock.sleeps != test.sleeps {
			t.Errorf("timeout %s: broken after %d sleeps, want %d", test.timeout, clock.sleeps, test.sleeps)
		}
	}
}
