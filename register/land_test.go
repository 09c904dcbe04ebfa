package register

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

func TestLandAndRead(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	first, err := a.land(tree(t, "notes/one.txt", "one", "empty", ""))
	w.must(err)
	if first.Seq != 1 || first.N != 1 || first.Grant != 1 || first.Agent != "a" || first.Base != "" || first.Head != w.page().Register.Head || first.Replayed {
		t.Errorf("%+v", first)
	}
	l := a.landing(tree(t, "notes/two.txt", "two"))
	l.Command.Note = "second"
	second, err := w.reg.Land(ctx, l)
	w.must(err)
	l = a.landing(nil)
	l.Command.Empty = "nothing found"
	third, err := w.reg.Land(ctx, l)
	w.must(err)

	var seqs []string
	for l, err := range w.reg.All(ctx) {
		w.must(err)
		seqs = append(seqs, fmt.Sprintf("%d %q %q", l.Seq, l.Note, l.Empty))
	}
	if got := strings.Join(seqs, "; "); got != `3 "" "nothing found"; 2 "second" ""; 1 "" ""` {
		t.Error(got)
	}
	// An empty landing changes nothing of the content.
	if got := w.cat("", "notes/two.txt"); got != "two" {
		t.Errorf("%q", got)
	}
	for _, which := range []string{"1", first.ID, string(first.Head), string(first.Head[:8]), string(first.Manifest)} {
		if got := w.cat(which, "notes/one.txt"); got != "one" {
			t.Errorf("%s: %q", which, got)
		}
	}
	for _, which := range []string{"0", "4", "nothing-here", string(first.Head[:7]), "99999999"} {
		if _, err := w.reg.At(ctx, which); !errors.Is(err, ErrNoLanding) {
			t.Errorf("%s: %v", which, err)
		}
	}
	if second.Base != first.Head || third.Base != second.Head {
		t.Error("a base is not the head before")
	}
	w.must(a.release())
	w.verify()
}

func TestNothingToLand(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	for _, l := range []Landing{a.landing(nil), a.landing(&Tree{})} {
		if _, err := w.reg.Land(context.Background(), l); !errors.Is(err, ErrNothing) {
			t.Error(err)
		}
	}
	if w.page().Register.Seq != 0 {
		t.Error("something landed")
	}
	if err := a.release(); !codeIs(err, grant.CodeNotPushed) {
		t.Errorf("released: %v", err)
	}
}

// Failures 9 and 10: the same landing delivered twice, and another under its id.
func TestSameLandingTwice(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	l := a.landing(tree(t, "a", "1"))
	l.Anywhere = true
	first, err := w.reg.Land(ctx, l)
	w.must(err)
	again, err := w.reg.Land(ctx, l)
	w.must(err)
	if !again.Replayed || again.Head != first.Head || w.page().Register.Seq != 1 {
		t.Errorf("%+v, then %+v", first, again)
	}
	l.Tree = tree(t, "a", "2")
	if _, err := w.reg.Land(ctx, l); !codeIs(err, grant.CodeOpIDReused) {
		t.Errorf("other bytes under one id: %v", err)
	}
	// An empty one as well, whose manifest names what stood before it.
	e := a.landing(nil)
	e.Command.Empty, e.Anywhere = "none", true
	_, err = w.reg.Land(ctx, e)
	w.must(err)
	if again, err = w.reg.Land(ctx, e); err != nil || !again.Replayed {
		t.Errorf("%+v, %v", again, err)
	}
	if got := w.cat("", "a"); got != "1" {
		t.Errorf("%q", got)
	}
	w.verify()
}

// Failures 1 and 12: a late landing is refused, and all of it comes back.
func TestRefusedLandingComesBack(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		code grant.Code
		how  grant.How
		then func(w *world)
	}{
		{"expired", grant.CodeExpired, "", func(*world) {}},
		{"taken over", grant.CodeFenced, grant.HowTakenOver, func(w *world) {
			b := w.acquire("b")
			_, err := b.land(tree(w.t, "b", "of b"))
			w.must(err)
		}},
		{"cleared", grant.CodeFenced, grant.HowCleared, func(w *world) {
			w.must(w.do(grant.Clear{Meta: w.meta(grant.Operator("op")), Reason: "no answer since noon", Seen: w.page().Rev}))
		}},
		{"long ago", grant.CodeFenced, grant.HowTakenOver, func(w *world) {
			for i := range 4 {
				b := w.acquire(fmt.Sprint("b", i))
				_, err := b.land(tree(w.t, "b", fmt.Sprint(i)))
				w.must(err)
				w.must(b.release())
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.acquire("a")
			src := t.TempDir()
			files := map[string]string{"big": strings.Repeat("stile\x00", 200_000), "sub/script": "#!/bin/sh\n", "empty": ""}
			for name, data := range files {
				w.must(os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o777))
				w.must(os.WriteFile(filepath.Join(src, name), []byte(data), 0o600))
			}
			w.must(os.Chmod(filepath.Join(src, "sub/script"), 0o755))
			w.clock.advance(5 * time.Hour)
			c.then(w)
			before := w.page()
			tr := &Tree{}
			w.must(tr.AddDir(src))
			l := a.landing(tr)
			_, err := w.reg.Land(ctx, l)
			var refused *RefusedError
			if !errors.As(err, &refused) || !codeIs(err, c.code) {
				t.Fatal(err)
			}
			if after := w.page(); after.Rev != before.Rev {
				t.Error("the page has moved")
			}
			said := refused.Kept.Refusal
			if said.Code != c.code || said.Yours != 1 || said.Grant != before.Grant || len(said.ToDo) != 3 || said.Next == "" {
				t.Errorf("%+v", said)
			}
			if c.how == "" && said.Ended != nil || c.how != "" && (said.Ended == nil || said.Ended.How != c.how || said.Ended.Grant != 1) {
				t.Errorf("ended %+v", said.Ended)
			}
			if c.how == grant.HowCleared && said.Ended.Reason != "no answer since noon" {
				t.Errorf("the audit line is not there: %+v", said.Ended)
			}
			data, err := os.ReadFile(w.object(grant.KindQuarantine, refused.Kept.Name))
			w.must(err)
			if strings.Contains(string(data), fmt.Sprintf("%x", a.s.Secret[:])) || strings.Contains(string(data), string(a.s.Secret[:])) {
				t.Error("the secret is kept with it")
			}

			// Refused again it is the same one, and its bytes come back.
			_, err = w.reg.Land(ctx, l)
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			list, err := w.reg.Kept(ctx, false)
			w.must(err)
			if len(list) != 1 || list[0].Name != refused.Kept.Name {
				t.Fatalf("%+v", list)
			}
			k, err := w.reg.Find(ctx, list[0].Short())
			w.must(err)
			m, err := w.reg.Manifest(ctx, k.Manifest)
			w.must(err)
			out := filepath.Join(t.TempDir(), "out")
			w.must(w.reg.Export(ctx, m, out, false))
			same(t, src, out)
			w.verify()
		})
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, y := folder(t, a), folder(t, b)
	for name := range x {
		if x[name] != y[name] {
			t.Errorf("%s: %.60q became %.60q", name, x[name], y[name])
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			t.Errorf("%s came from nowhere", name)
		}
	}
}

// Other refusals are told, and keep nothing: the grant is still the caller's.
func TestOtherRefusalsAreNotKept(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	l := a.landing(tree(t, "a", "1"))
	_, err := a.land(tree(t, "a", "0"))
	w.must(err)
	if _, err := w.reg.Land(ctx, l); !codeIs(err, grant.CodeRegisterMoved) {
		t.Error(err)
	}
	l = a.landing(tree(t, "a", "1"))
	l.Command.IDs = []grant.Range{{Lo: 1, Hi: 1}}
	if _, err := w.reg.Land(ctx, l); !codeIs(err, grant.CodeBadIDs) {
		t.Error(err)
	}
	if list, err := w.reg.Kept(ctx, true); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// An empty landing says what stands, so it is not moved to another head: beside another landing under the same session
// it is refused, and lands when it is given again.
func TestEmptyLandingBesideAnother(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	l := a.landing(nil)
	l.Command.Empty = "nothing found"
	_, err := a.land(tree(t, "a", "1"))
	w.must(err)
	_, err = w.reg.Land(ctx, l)
	var refusal *grant.Refusal
	if !errors.As(err, &refusal) || refusal.Code != grant.CodeRegisterMoved || refusal.Next == "" || refusal.Quarantined() {
		t.Fatalf("%+v", err)
	}
	if got := w.page().Register.Seq; got != 1 {
		t.Errorf("%d landings", got)
	}
	l = a.landing(nil)
	l.Command.Empty = "nothing found"
	_, err = w.reg.Land(ctx, l)
	w.must(err)
	if got := w.cat("", "a"); got != "1" {
		t.Errorf("%q", got)
	}
	w.verify()
}

func TestDiscard(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	w.clock.advance(5 * time.Hour)
	_, err := a.land(tree(t, "a", "refused"))
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	k := refused.Kept
	for _, reason := range []string{"", " \t", "two\nlines"} {
		if _, err := w.reg.Discard(ctx, k, grant.Operator("op"), reason); !errors.Is(err, ErrReason) {
			t.Errorf("%q: %v", reason, err)
		}
	}
	if k, err = w.reg.Discard(ctx, k, grant.Operator("op"), "landed again by b"); err != nil || k.Gone == nil {
		t.Fatal(err)
	}
	if _, err = w.reg.Discard(ctx, k, grant.Operator("op"), "again"); err != nil {
		t.Error(err)
	}
	if list, err := w.reg.Kept(ctx, false); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	all, err := w.reg.Kept(ctx, true)
	w.must(err)
	if len(all) != 1 || all[0].Gone == nil || all[0].Gone.Discarded.Reason != "landed again by b" || all[0].Gone.By != grant.Operator("op") {
		t.Errorf("%+v", all)
	}
	for _, name := range []string{"", "abc", "zzzzzz", strings.Repeat("0", 64)} {
		if _, err := w.reg.Find(ctx, name); !errors.Is(err, ErrNotKept) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A damaged artifact, manifest or document is found when it is read, and named; landing it again mends it.
func TestDamageIsNamed(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	r, err := a.land(tree(t, "sub/a", "some content", "b", "else"))
	w.must(err)
	m, err := w.reg.Manifest(ctx, r.Manifest)
	w.must(err)
	e, _ := m.Find("sub/a")
	w.damage(e.SHA256)
	var bad *ObjectError
	out := filepath.Join(t.TempDir(), "out")
	for what, err := range map[string]error{
		"verify": w.reg.Verify(ctx), "export": w.reg.Export(ctx, m, out, false), "whole": w.reg.whole(ctx, e),
	} {
		if !errors.As(err, &bad) || !errors.Is(err, ErrDamaged) || bad.Name != "sub/a" || bad.SHA256 != e.SHA256 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := os.ReadDir(filepath.Dir(out)); err != nil || len(list) != 0 {
		t.Errorf("the export left %v", list)
	}
	if _, err := a.land(tree(t, "sub/a", "some content", "c", "new")); err != nil {
		t.Fatal(err)
	}
	w.verify()

	w.damage(r.Manifest)
	if _, err := w.reg.Manifest(ctx, r.Manifest); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	w.must(os.Remove(w.object(grant.KindArtifact, w.page().Landing.SHA256)))
	if _, err := w.reg.ReadBack(ctx, w.head()); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
}

// A manifest whose artifacts are there can be landed as it is; one that names others cannot.
func TestLandAManifest(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	r, err := a.land(tree(t, "a", "1"))
	w.must(err)
	m, err := w.reg.Manifest(ctx, r.Manifest)
	w.must(err)
	_, err = a.land(tree(t, "a", "2"))
	w.must(err)
	l := a.landing(nil)
	l.Manifest = m
	_, err = w.reg.Land(ctx, l)
	w.must(err)
	if got := w.cat("", "a"); got != "1" {
		t.Errorf("%q", got)
	}
	other := *m
	other.Entries = append([]Entry{}, m.Entries...)
	other.Entries[0].SHA256 = sumA
	l = a.landing(nil)
	l.Manifest = &other
	if _, err := w.reg.Land(ctx, l); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	other.Entries[0] = m.Entries[0]
	other.Entries[0].Size++
	if _, err := w.reg.Land(ctx, l); !errors.Is(err, ErrManifest) {
		t.Error(err)
	}
	w.damage(m.Entries[0].SHA256)
	l.Manifest = m
	if _, err := w.reg.Land(ctx, l); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if w.page().Register.Seq != 3 {
		t.Error("something landed")
	}
}
