package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/register"
)

const container = "atlas"

// setClock is a clock that tests set, and that lets the world's time pass while somebody sleeps.
type setClock struct{ *granttest.Clock }

func (setClock) Sleep(ctx context.Context, d time.Duration) error {
	return (*seam.Set)(nil).Or().Clock.Sleep(ctx, d)
}

// place is an estate with one container, a user's state, and a clock.
type place struct {
	t           *testing.T
	clock       *granttest.Clock
	estate, dir string
	state       string
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, clock: granttest.NewClock(), estate: t.TempDir(), dir: t.TempDir(), state: t.TempDir()}
	if _, err := p.client("olga").Create(t.Context(), container, "", grant.DefaultParams()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		chain, err := grant.Chain(context.Background(), p.store(), container)
		if err := errors.Join(err, grant.Verify(chain)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// store is a store as a process that has just started has it.
func (p *place) store() *local.Store {
	p.t.Helper()
	s, err := local.Open(p.estate, local.Options{State: p.state, Seams: &seam.Set{Clock: setClock{p.clock}}})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *place) client(agent string) *Client { return &Client{Store: p.store(), Agent: agent} }

func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// tree is one of files, under their last names.
func (p *place) tree(files ...string) *register.Tree {
	p.t.Helper()
	tree := &register.Tree{}
	for _, file := range files {
		if err := tree.AddAs(filepath.Base(file), file); err != nil {
			p.t.Fatal(err)
		}
	}
	return tree
}

func (p *place) acquire(agent string) *local.Session {
	p.t.Helper()
	x, _, err := p.client(agent).Acquire(p.t.Context(), container, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return x
}

func (p *place) head() *grant.Page {
	p.t.Helper()
	head, err := p.store().Head(p.t.Context(), container)
	if err != nil {
		p.t.Fatal(err)
	}
	return head.Page()
}

func refused(t *testing.T, err error, code grant.Code) *grant.Refusal {
	t.Helper()
	var r *grant.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return r
}

func wants(t *testing.T, err error, code grant.Code) {
	t.Helper()
	_ = refused(t, err, code)
}

// lossy loses answers of whole commands: after they were done, or before.
type lossy struct {
	*local.Store
	after, before int
	op            grant.Op // of which; empty: of all
}

func (l *lossy) Do(ctx context.Context, r grant.Request) (grant.Revision, bool, error) {
	switch hit := l.op == "" || r.Command.Op() == l.op; {
	case hit && l.before > 0:
		l.before--
		return grant.Revision{}, false, grant.ErrUnknown
	case hit && l.after > 0:
		l.after--
		if _, _, err := l.Store.Do(ctx, r); err != nil {
			return grant.Revision{}, false, err
		}
		return grant.Revision{}, false, grant.ErrUnknown
	}
	return l.Store.Do(ctx, r)
}

// The whole way, each step by a process of its own.
func TestFromAcquireToRelease(t *testing.T) {
	p := newPlace(t)
	ctx := t.Context()
	x := p.acquire("ada")
	if x.Grant != 1 {
		t.Fatalf("grant %d", x.Grant)
	}
	_, err := p.client("ada").Release(ctx, x, "")
	wants(t, err, grant.CodeNotPushed)
	r, err := p.client("ada").LeaseIDs(ctx, x, "", 5, 0, "")
	if err != nil || len(r.Revision.Page().IDs.Leases) != 1 {
		t.Fatal(r, err)
	}
	landed, err := p.client("ada").Land(ctx, container, "", Landing{Tree: p.tree(p.file("a", "one"), p.file("b", "two")), IDs: []grant.Range{{Lo: 2, Hi: 3}}, Note: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.head(); got.Register.Seq != 1 || got.Landing.SHA256 != landed.Receipt.Manifest || len(got.IDs.Free) != 2 {
		t.Errorf("page %+v", got)
	}
	found, _, err := p.client("ada").Find(ctx, grant.OpRelease, container, "")
	if err != nil || found.Path != x.Path || found.Grant != 1 {
		t.Fatal(found, err)
	}
	if _, err := p.client("ada").Release(ctx, found, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(x.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session is still there: %v", err)
	}
}

// Failure 8 and case 40: the answer is lost, the process dies, and the next one has the same grant.
func TestAcquireAnswerLost(t *testing.T) {
	for name, loss := range map[string]lossy{"after": {after: 1}, "before": {before: 1}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			loss.Store = p.store()
			_, _, err := (&Client{Store: &loss, Agent: "ada"}).Acquire(t.Context(), container, "")
			if !errors.Is(err, grant.ErrUnknown) {
				t.Fatal(err)
			}
			x, r, err := p.client("ada").Acquire(t.Context(), container, "")
			if err != nil || x.Grant != 1 || r.Replayed != (name == "after") {
				t.Fatal(x, r, err)
			}
			if got := p.head(); got.Grant != 1 || got.Holder.Session != x.Secret.Hash() {
				t.Errorf("page %+v", got)
			}
			all, err := p.store().Sessions(container)
			if err != nil || len(all) != 1 {
				t.Errorf("%d sessions, %v", len(all), err)
			}
		})
	}
}

// A lost acquire that is found too late says so, and the next attempt is a fresh one.
func TestAcquireFoundTooLate(t *testing.T) {
	p := newPlace(t)
	loss := &lossy{Store: p.store(), after: 1}
	if _, _, err := (&Client{Store: loss, Agent: "ada"}).Acquire(t.Context(), container, ""); !errors.Is(err, grant.ErrUnknown) {
		t.Fatal(err)
	}
	p.clock.Step(25 * time.Hour)
	bob := p.acquire("bob")
	_, _, err := p.client("ada").Acquire(t.Context(), container, "")
	wants(t, err, grant.CodeHeld) // its lost grant has ended, and bob's lives
	if bob.Grant != 2 || p.head().Grant != 2 {
		t.Errorf("grant %d", p.head().Grant)
	}
}

// With an id of the caller's the first result comes again; for other work it is refused.
func TestIDs(t *testing.T) {
	p := newPlace(t)
	x, r, err := p.client("ada").Acquire(t.Context(), container, "my-own-id")
	if err != nil || r.Replayed {
		t.Fatal(r, err)
	}
	again, r, err := p.client("ada").Acquire(t.Context(), container, "my-own-id")
	if err != nil || !r.Replayed || again.Path != x.Path || again.Grant != 1 {
		t.Fatal(again, r, err)
	}
	first, err := p.client("ada").Land(t.Context(), container, "", Landing{Empty: "none", ID: "landing-1"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.client("ada").Land(t.Context(), container, "", Landing{Empty: "none", ID: "landing-1"})
	if err != nil || !second.Replayed || second.Revision.Ref() != first.Revision.Ref() {
		t.Fatal(second, err)
	}
	_, err = p.client("ada").Land(t.Context(), container, "", Landing{Empty: "other", ID: "landing-1"})
	wants(t, err, grant.CodeOpIDReused)
	_, _, err = p.client("bob").Acquire(t.Context(), container, "my-own-id")
	wants(t, err, grant.CodeOpIDReused)
	if p.head().Register.Seq != 1 {
		t.Errorf("%d landings", p.head().Register.Seq)
	}
	if _, err := p.client("ada").Release(t.Context(), x, "release-1"); err != nil {
		t.Fatal(err)
	}
	if r, ok, err := p.client("ada").Released(t.Context(), container, "release-1"); err != nil || !ok || r.Revision.Page().Op != grant.OpRelease {
		t.Error(r, ok, err)
	}
	for agent, id := range map[string]string{"bob": "release-1", "ada": "landing-1"} {
		if _, ok, err := p.client(agent).Released(t.Context(), container, id); ok || err != nil {
			t.Error(agent, ok, err)
		}
	}
}

// Failure 7: a landing's answer is lost; the same landing again gives the first receipt, another one lands.
func TestLandingAnswerLost(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	a := p.file("a", "one")
	lose := func(l Landing, loss lossy) {
		t.Helper()
		loss.Store, loss.op = p.store(), grant.OpLand
		if _, err := (&Client{Store: &loss, Agent: "ada"}).Land(t.Context(), container, x.Path, l); !errors.Is(err, grant.ErrUnknown) {
			t.Fatal(err)
		}
	}
	lose(Landing{Tree: p.tree(a)}, lossy{after: 1})
	got, err := p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(a)})
	if err != nil || !got.Replayed || p.head().Register.Seq != 1 {
		t.Fatal(got, err, p.head().Register)
	}
	lose(Landing{Tree: p.tree(a)}, lossy{before: 1})
	got, err = p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(a)})
	if err != nil || got.Replayed || p.head().Register.Seq != 2 {
		t.Fatal(got, err, p.head().Register)
	}
	lose(Landing{Tree: p.tree(a), Note: "third"}, lossy{after: 1})
	got, err = p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(a), Note: "fourth"})
	if err != nil || got.Replayed || got.Earlier == nil || p.head().Register.Seq != 4 {
		t.Fatal(got, err, p.head().Register)
	}
	loss := &lossy{Store: p.store(), after: 1, op: grant.OpRelease}
	if _, err := (&Client{Store: loss, Agent: "ada"}).Release(t.Context(), x, ""); !errors.Is(err, grant.ErrUnknown) {
		t.Fatal(err)
	}
	if r, err := p.client("ada").Release(t.Context(), x, ""); err != nil || !r.Replayed || p.head().State != grant.StateFree {
		t.Fatal(r, err)
	}
}

// Failure 11 and case 30: many processes of one agent, and of many, acquire at once, and one has the grant.
func TestOneWinner(t *testing.T) {
	p := newPlace(t)
	for _, agents := range [][]string{{"ada", "ada", "ada", "ada"}, {"ada", "bob", "carl", "dora"}} {
		won := make(chan *local.Session, len(agents))
		for _, agent := range agents {
			c := p.client(agent)
			go func() {
				x, _, err := c.Acquire(t.Context(), container, "")
				if err != nil && !errors.Is(err, grant.CodeHeld) {
					t.Errorf("%s: %v", agent, err)
				}
				if err != nil {
					x = nil
				}
				won <- x
			}()
		}
		var winner *local.Session
		for range agents {
			if x := <-won; x != nil {
				if winner != nil {
					t.Errorf("%s and %s won", winner.Agent, x.Agent)
				}
				winner = x
			}
		}
		if winner == nil {
			t.Fatal("nobody won")
		}
		if all, err := p.store().Sessions(container); err != nil || len(all) != 1 {
			t.Errorf("%d sessions, %v", len(all), err)
		}
		if _, err := p.client(winner.Agent).Land(t.Context(), container, "", Landing{Empty: "none"}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.client(winner.Agent).Release(t.Context(), winner, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// Case 43: workers who share the lead's session take identifiers at once, with equal commands, and no two get
// the same.
func TestCase43WorkersOfOneSession(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	got := make(chan grant.Lease, 8)
	for range cap(got) {
		c := p.client("ada")
		go func() {
			r, err := c.LeaseIDs(t.Context(), x, "", 3, 0, "w")
			if err != nil {
				t.Error(err)
				got <- grant.Lease{}
				return
			}
			leases := r.Revision.Page().IDs.Leases
			got <- leases[len(leases)-1]
		}()
	}
	seen := map[int64]bool{}
	for range cap(got) {
		if l := <-got; seen[l.Lo] || l.Hi != l.Lo+2 {
			t.Errorf("lease %+v", l)
		} else {
			seen[l.Lo] = true
		}
	}
}

// What a process leaves that died over one of a session's files is in nobody's way.
func TestTornFiles(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	base := strings.TrimSuffix(x.Path, ".session.json")
	if err := os.WriteFile(base+"~landing-1.tried.json", []byte(`{"v":1,"op":"la`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(base+".granted.json", 3); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(filepath.Dir(x.Path), "again-12.session.json")
	if err := os.WriteFile(torn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client("ada").Land(t.Context(), container, "", Landing{Empty: "none"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"~landing-1.tried.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := p.client("ada").Land(t.Context(), container, "", Landing{Empty: "none", ID: "landing-1"}); err != nil || r.Replayed || p.head().Register.Seq != 2 {
		t.Fatal(r, err)
	}
	if _, err := p.client("ada").Release(t.Context(), x, ""); err != nil {
		t.Fatal(err)
	}
	if x, _, err := p.client("ada").Acquire(t.Context(), container, "again-12"); err != nil || x.Grant != 2 {
		t.Fatal(x, err)
	}
	left, err := filepath.Glob(base + "*")
	if err != nil || len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A session is of one container and one agent.
func TestSessionOfAnother(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	if _, err := p.client("olga").Create(t.Context(), "other", "", grant.DefaultParams()); err != nil {
		t.Fatal(err)
	}
	_, _, err := p.client("ada").Find(t.Context(), grant.OpLand, "other", x.Path)
	wants(t, err, grant.CodeNotHolder)
	_, _, err = p.client("bob").Find(t.Context(), grant.OpLand, container, x.Path)
	wants(t, err, grant.CodeNotHolder)
	_, _, err = p.client("ada").Acquire(t.Context(), "other", "")
	wants(t, err, grant.CodeNested)
	if all, err := p.store().Sessions("other"); err != nil || len(all) != 0 {
		t.Errorf("a session is left that was refused: %d, %v", len(all), err)
	}
	if found, _, err := p.client("").Find(t.Context(), grant.OpLand, container, x.Path); err != nil || found.Agent != "ada" {
		t.Error(found, err)
	}
}
