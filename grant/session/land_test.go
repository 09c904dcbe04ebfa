package session

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

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

// A landing after the grant's end is kept byte for byte, with how the grant ended, and the register stays.
func TestLateLandingIsKept(t *testing.T) {
	p := newPlace(t)
	p.acquire("ada")
	p.clock.Step(5 * time.Hour)
	bob := p.acquire("bob")
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
		wants(t, err, grant.CodeNotPushed)
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
