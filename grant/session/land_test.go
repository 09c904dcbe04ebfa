package session

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/register"
)

// A landing after the grant's end is kept byte for byte, with how the grant ended, and the register stays.
func TestLateLandingIsKept(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	p.clock.Step(5 * time.Hour)
	bob := p.acquire("bob")
	_, err := p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(p.file("late", "precious"))})
	r := refused(t, err, grant.CodeFenced)
	var kept *register.RefusedError
	if !errors.As(err, &kept) || kept.Err != nil || r.Ended == nil || r.Ended.How != grant.HowTakenOver {
		t.Fatalf("%+v", err)
	}
	if p.head().Register.Seq != 0 {
		t.Error("it landed")
	}
	reg := register.Of(p.store(), container)
	list, err := reg.Kept(t.Context(), false)
	if err != nil || len(list) != 1 || list[0].Refusal.Ended == nil || list[0].Refusal.Ended.How != grant.HowTakenOver || list[0].Refusal.Yours != 1 || list[0].ID == "" {
		t.Fatalf("%+v, %v", list, err)
	}
	m, err := reg.Manifest(t.Context(), list[0].Manifest)
	if err != nil {
		t.Fatal(err)
	}
	f, err := reg.Open(t.Context(), m.Entries[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	// Long after, when the page itself no longer knows how that grant ended.
	p.release(bob)
	p.acquire("carl")
	_, err = p.client("ada").Land(t.Context(), container, "", Landing{Empty: "too late"})
	if r := refused(t, err, grant.CodeFenced); r.Ended == nil || r.Ended.Grant != 1 || r.Ended.By.Name != "bob" || r.Holder.Agent != "carl" {
		t.Errorf("%+v", r)
	}
	// Whoever has no session at all is refused as well, and its work is kept.
	_, err = p.client("dora").Land(t.Context(), container, "", Landing{Empty: "none"})
	wants(t, err, grant.CodeNotHolder)
	if !errors.As(err, &kept) || kept.Kept.Name == "" {
		t.Errorf("not kept: %v", err)
	}
}

// Nothing is released that cannot be read back.
func TestReadBack(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	landed, err := p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(p.file("a", "one"))})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(p.estate, "containers", container, "objects", "artifacts", string(landed.Receipt.Tree.Entries[0].SHA256))
	for what, damage := range map[string]func() error{
		"damaged": func() error { return os.WriteFile(name, []byte("ONE"), 0o600) },
		"gone":    func() error { return os.Remove(name) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := p.client("ada").Release(t.Context(), x, "")
		wants(t, err, grant.CodeNotPushed)
		if p.head().State != grant.StateHeld {
			t.Fatalf("%s: released", what)
		}
	}
	if _, err := p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(filepath.Join(p.dir, "a"))}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client("ada").Release(t.Context(), x, ""); err != nil {
		t.Error(err)
	}
}

// What can never land is refused.
func TestBadLandings(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	a := p.file("a", "one")
	for name, l := range map[string]Landing{
		"nothing":   {},
		"no files":  {Tree: &register.Tree{}},
		"blank":     {Empty: "  "},
		"ids empty": {Empty: "none", IDs: []grant.Range{{Lo: 1, Hi: 1}}},
	} {
		_, err := p.client("ada").Land(t.Context(), container, "", l)
		if r := refused(t, err, grant.CodeBadInput); r.Holder == nil || r.Container != container {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if _, err := p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(a), Empty: "none"}); !errors.Is(err, grant.CodeBadInput) {
		t.Error(err)
	}
	if _, err := p.client("ada").Land(t.Context(), container, "", Landing{Empty: "a\nb"}); err == nil {
		t.Error("a reason of two lines")
	}
	all, err := p.store().Objects(t.Context(), container, grant.KindQuarantine)
	if err != nil || len(all) != 0 || p.head().Register.Seq != 0 {
		t.Error(all, err)
	}
	base := grant.Digest(strings.Repeat("0", 64)) // from yesterday
	_, err = p.client("ada").Land(t.Context(), container, "", Landing{Tree: p.tree(a), Base: &base})
	wants(t, err, grant.CodeRegisterMoved)
}

// A process that dies with its answer in its hands has not landed for nothing: the same landing again, without an
// id, gives the first receipt, and as often as it dies over that. Once told, the same content may land again.
func TestKilledBeforeTelling(t *testing.T) {
	p := newPlace(t)
	x := p.acquire("ada")
	for round := range 3 {
		died := make(chan bool)
		go func() {
			defer close(died)
			_, _ = p.client("ada").Land(t.Context(), container, x.Path, Landing{Empty: "none", Tell: func(l Landed) error {
				died <- l.Replayed
				runtime.Goexit()
				return nil
			}})
		}()
		if replayed := <-died; replayed != (round > 0) {
			t.Errorf("round %d: replayed: %v", round, replayed)
		}
		<-died
	}
	for want := range 2 {
		l, err := p.client("ada").Land(t.Context(), container, x.Path, Landing{Empty: "none"})
		if err != nil || l.Replayed != (want == 0) || p.head().Register.Seq != int64(want+1) {
			t.Errorf("%v, %v, %+v", l.Replayed, err, p.head().Register)
		}
	}
}
