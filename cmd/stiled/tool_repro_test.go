package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// Failure 30 with the tool, the service and its clients as processes: a result is judged after its stamp, and is none
// other than the one that was stamped.
func TestReproThroughService(t *testing.T) {
	e := newPlace(t)
	x := e.tool()
	e.tokens["eve"] = e.token("--agent", "eve")
	s := e.serve("--listen", "127.0.0.1:0")
	as := func(who string) []string {
		return []string{"STILE_SERVER=" + s.url, "STILE_AGENT=" + who, "STILE_TOKEN=" + e.tokens[who]}
	}
	for name, text := range map[string]string{"mass": "5.972e24", "kernel": "Newton's law", "assumptions": "G and g", "other": "5.97e24"} {
		if err := os.WriteFile(filepath.Join(x.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(code int, who, want string, args ...string) {
		t.Helper()
		if out := x.run(code, as(who), args...); !strings.Contains(out, want) {
			t.Errorf("stile %v: %q is not in: %s", args, want, out)
		}
	}
	commission := []string{"repro", "commission", "atlas", "mass", "--kernel", "kernel", "--assumptions", "assumptions", "--deriver", "bob"}
	wants(0, "ada", "made", "grant", "create", "atlas")
	wants(0, "ada", "grant 1", "grant", "acquire", "atlas")
	wants(0, "ada", "landed 1 file", "grant", "land", "atlas", "mass")
	wants(0, "ada", "no reproductions", "repro", "list", "atlas")
	wants(0, "ada", "reproduction 4 of atlas, for bob", commission...)
	// The answer of the first is told: another is another.
	wants(0, "ada", "reproduction 5 of atlas, for bob", commission...)
	wants(2, "bob", "NOT_DERIVING", "repro", "submit", "atlas", "4", "mass")
	wants(2, "eve", "SAME_AGENT", "repro", "derive", "atlas", "4")
	wants(0, "bob", "work", "repro", "derive", "atlas", "4", "--to", "work")
	if data, err := os.ReadFile(filepath.Join(x.dir, "work", "kernel")); err != nil || string(data) != "Newton's law" {
		t.Errorf("%s %v", data, err)
	}
	before := e.headOf("atlas")
	wants(2, "eve", "NOT_STAGED", "repro", "judge", "atlas", "4")
	if e.headOf("atlas").Hash() != before.Hash() {
		t.Error("a judgement before the stamp has changed the page")
	}
	wants(0, "bob", "STAGED", "repro", "submit", "atlas", "4", "other")
	staged := e.headOf("atlas")
	wants(2, "bob", "ALREADY_STAGED", "repro", "submit", "atlas", "4", "mass")
	wants(2, "bob", "SAME_AGENT", "repro", "judge", "atlas", "4")
	if e.headOf("atlas").Hash() != staged.Hash() {
		t.Error("a second result has changed the page")
	}
	// A server that is killed in between changes none of it.
	s.kill()
	s = e.serve("--listen", "127.0.0.1:0")
	wants(2, "bob", "ALREADY_STAGED", "repro", "submit", "atlas", "4", "mass")
	wants(0, "eve", "mismatch, by eve", "repro", "judge", "atlas", "4")
	wants(0, "eve", "mismatch", "repro", "list", "atlas", "--all")
	chain, err := grant.Chain(t.Context(), e.local(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	if err := grant.Verify(chain); err != nil {
		t.Error(err)
	}
}

// What works only where the estate is says so, says why, and names the way; nothing is run and nothing changed.
func TestNotThroughService(t *testing.T) {
	e := newPlace(t)
	x := e.tool()
	s := e.serve("--listen", "127.0.0.1:0")
	ada := []string{"STILE_SERVER=" + s.url, "STILE_AGENT=ada", "STILE_TOKEN=" + e.tokens["ada"]}
	x.run(0, ada, "grant", "create", "atlas")
	x.run(0, ada, "grant", "acquire", "atlas")
	before := e.headOf("atlas")
	mark := filepath.Join(x.dir, "ran")
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"grant", "land", "atlas", "--", "touch", mark}, []string{"not through a service", "kernel", "hint: stile grant land atlas -- COMMAND, where the estate is", "stile grant run"}},
		{[]string{"register", "gc", "atlas"}, []string{"not through a service", "hint: stile register gc atlas, where the estate is"}},
		{[]string{"register", "gc", "atlas", "--dry-run", "--json"}, []string{`"code":"not_through_server"`}},
	} {
		out := x.run(1, ada, c.args...)
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("stile %v: %q is not in: %s", c.args, want, out)
			}
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was run")
	}
	if e.headOf("atlas").Hash() != before.Hash() {
		t.Error("the page is another")
	}
	// On the estate both work while it is served.
	x.run(0, []string{"STILE_OPERATOR=olga"}, "register", "gc", "atlas", "--estate", e.dir)
}

func (e *place) headOf(name string) grant.Revision {
	e.t.Helper()
	head, err := e.local().Head(e.t.Context(), name)
	if err != nil {
		e.t.Fatal(err)
	}
	return head
}
