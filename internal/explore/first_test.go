package explore

import (
	"testing"
	"testing/synctest"
	"time"
)

func search(t *testing.T, w *World) (r Result, v *Violation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r, v = New(w).Run() })
	return r, v
}

func TestFirst(t *testing.T) {
	for _, w := range []*World{
		{Name: "two writers", jobs: "ww", deaths: 1, bound: -1},
		{Name: "writer+unlock", jobs: "wu", deaths: 1, bound: -1},
		{Name: "writer+force", jobs: "wf", deaths: 1, bound: -1},
		{Name: "two breakers", jobs: "ww", deadLock: true, deaths: 1, bound: -1},
		{Name: "three writers", jobs: "www", deaths: 1, bound: 3},
	} {
		for _, links := range []bool{true, false} {
			w := *w
			w.hardLinks = links
			begin := time.Now()
			r, v := search(t, &w)
			t.Logf("%s %.2fs", r, time.Since(begin).Seconds())
			for k, n := range r.Counts {
				t.Logf("   %s: %d", k, n)
			}
			if v != nil {
				t.Error(v)
				for _, s := range v.Schedule {
					t.Logf("   %s %s", s.Actor, s.What)
				}
			}
		}
	}
}
