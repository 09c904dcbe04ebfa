package service

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
)

// Everything that changes something heeds If-Match: stale, it is 412 and nothing is changed; and a key that can be none
// is told. Each route and each command that is not named here is a failure.
func TestPreconditions(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.wants(w.lands("ada", "one"), 200, "")
	w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
	w.clock.Step(day)
	w.holds("bob")
	late := w.wants(w.lands("ada", "late"), 409, "FENCED")
	there := digestOf("one")
	w.wants(w.ask("ada", "POST", atlas+"/objects/staging", []byte("one")), 201, "")

	bodies := map[grant.Op]struct {
		who  string
		body fields
	}{
		grant.OpAcquire:    {"carl", fields{"secret": strings.Repeat("c", 64)}},
		grant.OpHeartbeat:  {"bob", w.proved("bob", nil)},
		grant.OpRelease:    {"bob", w.proved("bob", nil)},
		grant.OpLand:       {"bob", w.proved("bob", fields{"base": w.head().Register.Head, "entries": []fields{{"name": "a", "sha256": there, "size": 3}}})},
		grant.OpIDs:        {"bob", w.proved("bob", fields{"count": 1})},
		grant.OpBlock:      {"bob", w.proved("bob", fields{"worker": "dora"})},
		grant.OpCloseBlock: {"bob", w.proved("bob", fields{"block": 1})},
		grant.OpCommission: {"bob", w.proved("bob", fields{"record": "1:work.txt", "deriver": "carl", "kernel": digestOf("k"), "assumptions": digestOf("k")})},
		grant.OpDerive:     {"carl", fields{"block": 1}},
		grant.OpStage:      {"carl", fields{"block": 1, "result": there}},
		grant.OpJudge:      {"carl", fields{"block": 1, "verdict": "match", "reason": "the same"}},
		grant.OpClear:      {"olga", fields{"reason": "gone", "seen": 1}},
		grant.OpRestore:    {"olga", fields{"reason": "pages lost"}},
		grant.OpResolve:    {"bob", w.proved("bob", fields{"id": "x", "done": false, "reason": "it ended"})},
	}
	w.wants(w.ask("bob", "POST", atlas+"/objects/artifacts", []byte("k")), 201, "")
	head, err := w.store.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	type request struct {
		who, method, path string
		body              any
	}
	var all []request
	for _, op := range granthttp.Ops() {
		c, ok := bodies[op]
		switch {
		case op == grant.OpCreate:
			continue // on a container that is there it is no other than the others; on none there is no page to match
		case op == grant.OpPetition || op == grant.OpWithdraw || op == grant.OpTouch:
			c.who, c.body = "carl", fields{}
		case !ok:
			t.Errorf("%s is not tried", op)
		}
		all = append(all, request{c.who, "POST", atlas + "/" + string(op), c.body})
	}
	refused := atlas + "/refused/" + string(late.problem.Quarantine) + "/discard"
	all = append(all,
		request{"ada", "POST", refused, fields{"reason": "landed anew"}},
		request{"ada", "POST", atlas + "/objects/artifacts", []byte("new")},
		request{"ada", "PUT", atlas + "/objects/artifacts/" + digestOf("new"), []byte("new")},
		request{"carl", "POST", atlas + "/reproductions/1/result", []byte("new")},
	)
	// The routes that write: the commands' one, those above, and the form, which has its revision in it.
	// A store's swap, whose base must be the page's own, has a test of its own.
	tried := map[string]bool{"POST /c/{container}/clear": true, "PUT /v1/containers/{container}/revisions/{place}": true}
	for _, c := range all {
		req, err := http.NewRequest(c.method, "http://localhost"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := w.server.mux.Handler(req)
		tried[pattern] = true
		a := w.ask(c.who, c.method, c.path, c.body, "If-Match", `"1.1.`+strings.Repeat("0", 64)+`"`)
		if a.status != 412 || a.problem.Code != "STALE" || a.problem.Page == nil || a.header.Get("ETag") == "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
		if a := w.ask(c.who, c.method, c.path, c.body, "If-Match", "nonsense"); a.status != 400 || a.problem.Code != "BAD_INPUT" {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
		if a := w.ask(c.who, c.method, c.path, c.body, "Idempotency-Key", "a b"); a.status != 400 || a.problem.Code != "BAD_INPUT" {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
	}
	for _, r := range w.server.patterns {
		if !strings.HasPrefix(r, "GET ") && !tried[r] {
			t.Errorf("%s is not tried", r)
		}
	}
	after, err := w.store.Head(t.Context(), "atlas")
	if err != nil || after.Hash() != head.Hash() {
		t.Errorf("the page is another: %v", err)
	}
	if a := w.ask("ada", "GET", atlas+"/objects/artifacts/"+digestOf("new"), nil); a.status != 404 {
		t.Errorf("it was stored: %d", a.status)
	}
	if a := w.ask("nobody", "GET", strings.TrimSuffix(refused, "/discard"), nil); !strings.Contains(string(a.body), `"gone":false`) {
		t.Errorf("%s", a.body)
	}
	// The same on the present page are carried out.
	tag := granthttp.Tag(after.Page())
	w.wants(w.ask("ada", "POST", refused, fields{"reason": "landed anew"}, "If-Match", tag), 200, "")
	w.wants(w.ask("ada", "POST", refused, fields{"reason": "landed anew"}, "If-Match", `"1.1"`), 200, "") // done before
	w.wants(w.ask("ada", "POST", atlas+"/objects/artifacts", []byte("new"), "If-Match", tag), 201, "")
	w.wants(w.command("bob", grant.OpHeartbeat, bodies[grant.OpHeartbeat].body, "If-Match", tag), 200, "")
}

// A store's swap on another base than the head is 412, and changes nothing.
func TestStaleSwap(t *testing.T) {
	w := newWorld(t)
	w.created()
	base, err := w.store.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	now, err := w.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := grant.Petition{Meta: grant.Meta{Container: "atlas", Nonce: "a-late-one", By: grant.Agent("carl")}}
	next, err := grant.Apply(base, cmd, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
	if err != nil {
		t.Fatal(err)
	}
	w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
	before := w.head().Nonce
	tag := `"` + granthttp.Place(base.Page().Epoch, base.Page().Rev) + "." + string(base.Hash()) + `"`
	a := w.wants(w.ask("olga", "PUT", atlas+"/revisions/1.2", string(next.Bytes()), "If-Match", tag), 412, "STALE")
	if a.header.Get("ETag") != `"1.2"` || w.head().Nonce != before {
		t.Errorf("%v", a.header)
	}
}

// A restore heeds If-Match before it sets anything aside, and a repetition of it is found first.
func TestRestoreIfMatch(t *testing.T) {
	w := newWorld(t)
	w.created()
	for range 3 {
		w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
		w.wants(w.command("bob", grant.OpWithdraw, nil), 200, "")
	}
	before := w.head()
	names := func() string {
		t.Helper()
		var list []string
		err := filepath.Walk(filepath.Join(w.estate, "containers", "atlas"), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && !strings.Contains(path, ".lock") {
				list = append(list, fmt.Sprintf("%s %d", path, info.Size()))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, "\n")
	}
	w.damage(before)
	is := names()
	body := fields{"reason": "the disk was damaged"}
	for _, tag := range []string{granthttp.Tag(before), `"1.1"`} {
		a := w.wants(w.command("olga", grant.OpRestore, body, "If-Match", tag), 412, "STALE")
		if !bytes.Contains(a.body, []byte("no page can be read")) {
			t.Errorf("%s", a.body)
		}
	}
	if now := names(); now != is {
		t.Errorf("files were\n%s\nand are\n%s", is, now)
	}
	first := w.wants(w.command("olga", grant.OpRestore, body, "Idempotency-Key", "restore-1"), 200, "")
	again := w.wants(w.command("olga", grant.OpRestore, body, "Idempotency-Key", "restore-1", "If-Match", `"1.1"`), 200, "")
	if !bytes.Equal(first.body, again.body) {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	w.wants(w.command("olga", grant.OpRestore, body, "If-Match", `"1.1"`), 412, "STALE")
}

// damage makes the highest page one that cannot be read.
func (w *world) damage(p *grant.Page) {
	w.t.Helper()
	var found string
	err := filepath.Walk(filepath.Join(w.estate, "containers", "atlas"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			data, rerr := os.ReadFile(path)
			if rev, oerr := grant.Open(data); rerr == nil && oerr == nil && rev.Page().Rev == p.Rev {
				found = path
			}
		}
		return err
	})
	if err != nil || found == "" {
		w.t.Fatal(found, err)
	}
	if err := os.Chmod(found, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(found, []byte("{"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
