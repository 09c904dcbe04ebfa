package session

import (
	"errors"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// An agent takes up the grant that it holds, as long as it lives, and nobody else's.
func TestResume(t *testing.T) {
	p := newPlace(t)
	resumes := func(agent string, want int64) {
		t.Helper()
		x, r, err := p.client(agent).Resume(t.Context(), container, func(*local.Session, grant.Revision) error { return nil })
		switch {
		case err != nil:
			t.Error(err)
		case want == 0 && x != nil:
			t.Errorf("%s has grant %d", agent, x.Grant)
		case want != 0 && (x == nil || x.Grant != want || r.Revision.Page().Holder.Agent != agent):
			t.Errorf("%s has %v, not grant %d", agent, x, want)
		}
	}
	resumes("ada", 0)
	x := p.acquire("ada")
	resumes("bob", 0)
	busy, before := errors.New("busy"), p.head().Rev
	if _, _, err := p.client("ada").Resume(t.Context(), container, func(*local.Session, grant.Revision) error { return busy }); !errors.Is(err, busy) || p.head().Rev != before {
		t.Errorf("while it is busy: %v, revision %d", err, p.head().Rev)
	}
	p.clock.Step(3 * time.Hour)
	resumes("ada", 1)
	if e := p.head().Expiry; e != p.head().Stamp.T.Add(4*time.Hour) {
		t.Errorf("it ends at %v", e)
	}
	p.release(x)
	resumes("ada", 0)

	// At its cap it lives still; past its end it does not.
	p.acquire("ada")
	for range 8 {
		resumes("ada", 2)
		p.clock.Step(3*time.Hour - time.Minute)
	}
	resumes("ada", 2)
	p.clock.Step(8 * time.Minute)
	resumes("ada", 0)

	// An acquire whose process died with the answer is one that it holds.
	p = newPlace(t)
	loss := &lossy{Store: p.store(), after: 1, op: grant.OpAcquire}
	if _, _, err := (&Client{Store: loss, Agent: "ada"}).Acquire(t.Context(), container, ""); !errors.Is(err, grant.ErrUnknown) {
		t.Fatal(err)
	}
	resumes("ada", 1)
}
