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
	refused(t, err, grant.CodeNotPushed)
	r, err := p.client("ada").LeaseIDs(ctx, x, "", 5, 0, "")
	if err != nil || len(r.Revision.Page().IDs.Leases) != 1 {
		t.Fatal(r, err)
	}
	landed, err := p.client("ada").Land(ctx, container, "", Landing{Files: []string{p.file("a", "one"), p.file("b", "two")}, IDs: []grant.Range{{Lo: 2, Hi: 3}}, Note: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.head(); got.Register.Seq != 1 || got.Landing.SHA256 != landed.SHA256 || len(got.IDs.Free) != 2 {
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

// A manifest's bytes are a contract: they name what has landed.
func TestManifestBytes(t *testing.T) {
	m := &Manifest{V: 1, Note: "north <half>", Files: []File{{Name: "maps/a.svg", SHA256: grant.Digest(strings.Repeat("a", 64)), Size: 3}}}
	want := `{"empty":"","files":[{"name":"maps/a.svg","sha256":"` + strings.Repeat("a", 64) + `","size":3}],"note":"north <half>","v":1}` + "\n"
	got, err := m.encode()
	if err != nil || string(got) != want {
		t.Fatalf("%s, %v", got, err)
	}
	if back, err := parseManifest(got); err != nil || back.Files[0] != m.Files[0] {
		t.Fatal(back, err)
	}
	for _, bad := range []string{"", "{}", want[:len(want)-2], want + " ", strings.Replace(want, `"v":1`, `"v":2`, 1), strings.Replace(want, `"v"`, `"w"`, 1)} {
		if _, err := parseManifest([]byte(bad)); !errors.Is(err, errManifest) {
			t.Errorf("%q: %v", bad, err)
		}
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
	refused(t, err, grant.CodeHeld) // its lost grant has ended, and bob's lives
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
	refused(t, err, grant.CodeOpIDReused)
	_, _, err = p.client("bob").Acquire(t.Context(), container, "my-own-id")
	refused(t, err, grant.CodeOpIDReused)
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
	lose(Landing{Files: []string{a}}, lossy{after: 1})
	got, err := p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{a}})
	if err != nil || !got.Replayed || p.head().Register.Seq != 1 {
		t.Fatal(got, err, p.head().Register)
	}
	lose(Landing{Files: []string{a}}, lossy{before: 1})
	got, err = p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{a}})
	if err != nil || got.Replayed || p.head().Register.Seq != 2 {
		t.Fatal(got, err, p.head().Register)
	}
	lose(Landing{Files: []string{a}, Note: "third"}, lossy{after: 1})
	got, err = p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{a}, Note: "fourth"})
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

// A landing after the grant's end is kept byte for byte, with how the grant ended, and the register stays.
func TestLateLandingIsKept(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	p.clock.Step(5 * time.Hour)
	p.acquire("bob")
	_, err := p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{p.file("late", "precious")}})
	r := refused(t, err, grant.CodeFenced)
	var kept *RefusedLanding
	if !errors.As(err, &kept) || kept.Err != nil || r.Ended == nil || r.Ended.How != grant.HowTakenOver {
		t.Fatalf("%+v", err)
	}
	if p.head().Register.Seq != 0 {
		t.Error("it landed")
	}
	text, err := p.client("ada").object(t.Context(), container, grant.KindQuarantine, kept.Kept)
	if err != nil || !strings.Contains(string(text), `"how":"taken_over"`) || !strings.Contains(string(text), `"your_grant":1`) {
		t.Fatalf("%s, %v", text, err)
	}
	all, err := p.store().Objects(t.Context(), container, grant.KindQuarantine)
	if err != nil || len(all) != 3 { // the file, its manifest, and the refusal
		t.Fatal(all, err)
	}
	found := false
	for _, d := range all {
		data, err := p.client("ada").object(t.Context(), container, grant.KindQuarantine, d)
		found = found || err == nil && string(data) == "precious"
	}
	if !found {
		t.Error("the file was not kept")
	}
	// Whoever has no session at all is refused as well, and its work is kept.
	_, err = p.client("carl").Land(t.Context(), container, "", Landing{Empty: "none"})
	refused(t, err, grant.CodeNotHolder)
	if !errors.As(err, &kept) || kept.Kept == "" {
		t.Errorf("not kept: %v", err)
	}
}

// Nothing is released that cannot be read back.
func TestReadBack(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	landed, err := p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{p.file("a", "one")}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(p.estate, "containers", container, "objects", "artifacts", string(landed.Manifest.Files[0].SHA256))
	for what, damage := range map[string]func() error{
		"damaged": func() error { return os.WriteFile(name, []byte("ONE"), 0o600) },
		"gone":    func() error { return os.Remove(name) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := p.client("ada").Release(t.Context(), x, "")
		refused(t, err, grant.CodeNotPushed)
		if p.head().State != grant.StateHeld {
			t.Fatalf("%s: released", what)
		}
	}
	if _, err := p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{filepath.Join(p.dir, "a")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client("ada").Release(t.Context(), x, ""); err != nil {
		t.Error(err)
	}
}

// What can never land is refused before anything is stored.
func TestBadFiles(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	a := p.file("a", "one")
	if err := os.Mkdir(filepath.Join(p.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := p.file("sub/a", "two")
	for name, l := range map[string]Landing{
		"missing":    {Files: []string{filepath.Join(p.dir, "none")}},
		"a folder":   {Files: []string{a, p.dir}},
		"twice":      {Files: []string{a, a}},
		"same name":  {Files: []string{a, other}},
		"nothing":    {},
		"both":       {Files: []string{a}, Empty: "none"},
		"blank":      {Empty: "  "},
		"ids empty":  {Empty: "none", IDs: []grant.Range{{Lo: 1, Hi: 1}}},
		"odd reason": {Empty: "a\nb"},
	} {
		_, err := p.client("ada").Land(t.Context(), container, "", l)
		if r := refused(t, err, grant.CodeBadInput); r.Holder == nil || r.Container != container {
			t.Errorf("%s: %+v", name, r)
		}
	}
	all, err := p.store().Objects(t.Context(), container, grant.KindQuarantine)
	if err != nil || len(all) != 0 || p.head().Register.Seq != 0 {
		t.Error(all, err)
	}
	base := grant.Digest(strings.Repeat("0", 64)) // from yesterday
	_, err = p.client("ada").Land(t.Context(), container, "", Landing{Files: []string{a}, Base: &base})
	refused(t, err, grant.CodeRegisterMoved)
}

// A session is of one container and one agent.
func TestSessionOfAnother(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	if _, err := p.client("olga").Create(t.Context(), "other", "", grant.DefaultParams()); err != nil {
		t.Fatal(err)
	}
	_, _, err := p.client("ada").Find(t.Context(), grant.OpLand, "other", x.Path)
	refused(t, err, grant.CodeNotHolder)
	_, _, err = p.client("bob").Find(t.Context(), grant.OpLand, container, x.Path)
	refused(t, err, grant.CodeNotHolder)
	_, _, err = p.client("ada").Acquire(t.Context(), "other", "")
	refused(t, err, grant.CodeNested)
	if found, _, err := p.client("").Find(t.Context(), grant.OpLand, container, x.Path); err != nil || found.Agent != "ada" {
		t.Error(found, err)
	}
}
