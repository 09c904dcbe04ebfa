package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

const day = 24 * time.Hour

// The spec's worked example: the lead dies, its grant expires, the queue's head goes on, and what the dead session
// brings later is refused and kept.
func TestWorkedExample(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
	badge := func(want string) {
		t.Helper()
		a := w.ask("nobody", "GET", atlas+"/badge.json", nil)
		if !strings.Contains(string(a.body), `"message":"`+want+`"`) {
			t.Fatalf("badge %s, want %s", a.body, want)
		}
		if a := w.ask("nobody", "GET", atlas+"/badge.svg", nil); !strings.Contains(string(a.body), want) || a.header.Get("Content-Type") != "image/svg+xml" {
			t.Fatalf("badge %s", a.body)
		}
	}
	badge("HELD")
	for range 5 {
		w.clock.Step(4*time.Hour - time.Minute)
		w.wants(w.command("ada", grant.OpHeartbeat, w.proved("ada", nil)), 200, "")
	}
	w.wants(w.command("bob", grant.OpAcquire, fields{"secret": strings.Repeat("b", 64)}), 409, "HELD")
	w.clock.Step(4*time.Hour + 5*time.Minute)
	badge("HOLDER SILENT")
	w.holds("bob")
	badge("CAUTION")
	a := w.wants(w.lands("ada", "late"), 409, "FENCED")
	if a.problem.Refusal == nil || a.problem.Refusal.Ended == nil || a.problem.Quarantine == "" || a.problem.Page == nil {
		t.Errorf("%s", a.body)
	}
	var now grant.Page
	if err := json.Unmarshal(a.problem.Page, &now); err != nil || now.Holder == nil || now.Holder.Agent != "bob" {
		t.Error("the present page is not in the answer", err)
	}
	if w.head().Register.Seq != 0 {
		t.Fatal("it reached the register")
	}
	w.wants(w.lands("bob", "work"), 200, "")
	w.wants(w.command("bob", grant.OpRelease, w.proved("bob", nil)), 200, "")
	badge("FREE")
	kept := w.ask("nobody", "GET", atlas+"/refused", nil)
	if !strings.Contains(string(kept.body), string(a.problem.Quarantine)) {
		t.Errorf("%s", kept.body)
	}
	if got := w.ask("ada", "GET", atlas+"/objects/artifacts/"+digestOf("late"), nil); string(got.body) != "late" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if one := w.ask("nobody", "GET", atlas+"/register/1", nil); !strings.Contains(string(one.body), "work.txt") {
		t.Errorf("%s", one.body)
	}
}

// A repetition with the same key gives the first result; other content under it is refused.
func TestIdempotency(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	first := w.wants(w.lands("ada", "one", "Idempotency-Key", "key-00001"), 200, "")
	e := w.uploaded("ada", "one")
	body := w.proved("ada", fields{"base": "", "entries": []fields{e}, "note": "one"})
	again := w.wants(w.command("ada", grant.OpLand, body, "Idempotency-Key", "key-00001"), 200, "")
	if again.header.Get("Stile-Replayed") != "true" || !bytes.Equal(again.body, first.body) {
		t.Errorf("%v\n%s\n%s", again.header, first.body, again.body)
	}
	// Also when the page has moved on, and the If-Match of the first attempt is stale by now.
	w.wants(w.command("ada", grant.OpHeartbeat, w.proved("ada", nil)), 200, "")
	w.wants(w.command("ada", grant.OpLand, body, "Idempotency-Key", "key-00001", "If-Match", `"1.2"`), 200, "")
	body["note"] = "two"
	w.wants(w.command("ada", grant.OpLand, body, "Idempotency-Key", "key-00001"), 409, "OP_ID_REUSED")
	if w.head().Register.Seq != 1 {
		t.Error("it landed twice")
	}
}

// If-Match is judged on the page that the command is evaluated on.
func TestIfMatch(t *testing.T) {
	w := newWorld(t)
	w.created()
	a := w.ask("nobody", "GET", atlas, nil)
	if a.header.Get("ETag") != `"1.1"` {
		t.Fatal(a.header)
	}
	w.wants(w.command("ada", grant.OpPetition, nil, "If-Match", `"1.1"`), 200, "")
	stale := w.wants(w.command("bob", grant.OpPetition, nil, "If-Match", `"1.1"`), 412, "STALE")
	if stale.header.Get("ETag") != `"1.2"` || stale.problem.Page == nil {
		t.Errorf("%v %s", stale.header, stale.body)
	}
	w.wants(w.command("bob", grant.OpPetition, nil, "If-Match", `nonsense`), 400, "BAD_INPUT")
	if a := w.ask("nobody", "GET", atlas, nil, "If-None-Match", `"1.2"`); a.status != 304 || len(a.body) != 0 {
		t.Error(a.status)
	}
	if len(w.head().Queue) != 1 {
		t.Error("a stale command was carried out")
	}
}

// The bad input of a stranger: each has its answer, and changes nothing.
func TestBadInput(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.MaxUpload = 1 << 16 })
	w.created()
	w.holds("ada")
	before := w.head().Rev
	entry := func(name, sum string) fields {
		return w.proved("ada", fields{"entries": []fields{{"name": name, "sha256": sum, "size": 3}}})
	}
	there := digestOf("abc")
	w.wants(w.ask("ada", "POST", atlas+"/objects/artifacts", []byte("abc")), 201, "")
	for name, c := range map[string]struct {
		a      *answer
		status int
		code   string
		field  string
	}{
		"no JSON":        {w.ask("ada", "POST", atlas+"/petition", "{"), 400, "BAD_INPUT", ""},
		"a list":         {w.ask("ada", "POST", atlas+"/petition", "[]"), 400, "BAD_INPUT", ""},
		"two objects":    {w.ask("ada", "POST", atlas+"/petition", "{}{}"), 400, "BAD_INPUT", ""},
		"unknown field":  {w.ask("ada", "POST", atlas+"/ids", `{"cuont":3}`), 400, "BAD_INPUT", "cuont"},
		"wrong type":     {w.ask("ada", "POST", atlas+"/ids", `{"count":"three"}`), 400, "BAD_INPUT", "count"},
		"nested unknown": {w.ask("olga", "POST", "/v1/containers/new/create", `{"params":{"cap":1,"cpa":2}}`), 400, "BAD_INPUT", "params"},
		"no secret":      {w.ask("ada", "POST", atlas+"/heartbeat", `{"grant":1}`), 400, "BAD_INPUT", "secret"},
		"no session":     {w.ask("bob", "POST", atlas+"/acquire", `{}`), 400, "BAD_INPUT", "session"},
		"huge body":      {w.ask("ada", "POST", atlas+"/petition", `{"by":"`+strings.Repeat("x", 2<<20)+`"}`), 413, "TOO_LARGE", ""},
		"huge upload":    {w.ask("ada", "POST", atlas+"/objects/artifacts", make([]byte, 1<<17)), 413, "TOO_LARGE", ""},
		"other hash":     {w.ask("ada", "PUT", atlas+"/objects/artifacts/"+strings.Repeat("0", 64), []byte("abc")), 422, "HASH", ""},
		"no hash":        {w.ask("ada", "PUT", atlas+"/objects/artifacts/xyz", []byte("abc")), 400, "BAD_INPUT", "sha256"},
		"no kind":        {w.ask("ada", "POST", atlas+"/objects/pages", []byte("abc")), 400, "BAD_INPUT", "kind"},
		"traversal":      {w.command("ada", grant.OpLand, entry("../../etc/passwd", there)), 400, "BAD_INPUT", "entries"},
		"absolute":       {w.command("ada", grant.OpLand, entry("/etc/passwd", there)), 400, "BAD_INPUT", "entries"},
		"missing blob":   {w.command("ada", grant.OpLand, entry("a", digestOf("never"))), 409, "MISSING", ""},
		"missing list":   {w.command("ada", grant.OpLand, w.proved("ada", fields{"manifest": digestOf("never")})), 409, "MISSING", ""},
		"nothing":        {w.command("ada", grant.OpLand, w.proved("ada", nil)), 400, "BAD_INPUT", ""},
		"other size":     {w.command("ada", grant.OpLand, w.proved("ada", fields{"entries": []fields{{"name": "a", "sha256": there, "size": 4}}})), 400, "BAD_INPUT", ""},
		"no container":   {w.ask("ada", "POST", "/v1/containers/none/petition", "{}"), 404, "LOCK_MISSING", ""},
		"no such page":   {w.ask("nobody", "GET", atlas+"/revisions/1.99", nil), 404, "LOCK_MISSING", ""},
		"no revision":    {w.ask("nobody", "GET", atlas+"/revisions/x", nil), 400, "BAD_INPUT", "place"},
		"no command":     {w.ask("ada", "POST", atlas+"/explode", "{}"), 400, "BAD_INPUT", ""},
		"fenced":         {w.ask("ada", "POST", atlas+"/begin", "{}"), 400, "BAD_INPUT", ""},
		"no path":        {w.ask("nobody", "GET", "/v2/x", nil), 404, "NOT_FOUND", ""},
		"no method":      {w.ask("nobody", "PUT", "/metrics", "{}"), 405, "METHOD", ""},
		"bad name":       {w.ask("ada", "POST", "/v1/containers/%2e%2e/petition", "{}"), 400, "BAD_INPUT", ""},
		"slash in name":  {w.ask("ada", "POST", "/v1/containers/a%2Fb/petition", "{}"), 400, "BAD_INPUT", ""},
		"bad key":        {w.ask("ada", "POST", atlas+"/petition", "{}", "Idempotency-Key", "a b"), 400, "BAD_INPUT", ""},
		"bad since":      {w.ask("ada", "POST", atlas+"/petition", "{}", "Stile-Since", "soon"), 400, "BAD_INPUT", "Stile-Since"},
		"wrong secret":   {w.command("ada", grant.OpHeartbeat, fields{"grant": 1, "secret": strings.Repeat("0", 64)}), 409, "NOT_HOLDER", ""},
		"stale base":     {w.command("ada", grant.OpLand, w.proved("ada", fields{"base": there, "entries": []fields{{"name": "a", "sha256": there, "size": 3}}})), 409, "REGISTER_MOVED", ""},
		"clear":          {w.command("olga", grant.OpClear, fields{"reason": "too early", "seen": before}), 409, "NOT_EXPIRED", ""},
	} {
		if c.a.status != c.status || c.a.problem.Code != c.code || c.a.problem.Field != c.field || c.a.problem.Status != c.status {
			t.Errorf("%s: %d %s", name, c.a.status, c.a.body)
		}
		if c.a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", name, c.a.header.Get("Content-Type"))
		}
	}
	if a := w.ask("nobody", "PUT", "/metrics", "{}"); a.header.Get("Allow") != "GET" {
		t.Errorf("the method that is allowed is not told: %v", a.header)
	}
	if a := w.ask("ada", "POST", "/v1/containers/a%00b/petition", "{}"); a.status != 400 || !strings.HasPrefix(a.problem.Detail, "a name ") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if p := w.head(); p.Rev != before {
		t.Errorf("revision %d: %s", p.Rev, p.Op)
	}
	if list, err := w.store.Objects(t.Context(), "atlas", grant.KindArtifact); err != nil || len(list) > 3 {
		t.Errorf("%d objects are there, %v", len(list), err) // abc, and manifests of what was refused
	}
}

// An operator's clear needs a reason and the revision that was seen, and a stale one is refused.
func TestClear(t *testing.T) {
	w := newWorld(t)
	w.created()
	p := w.holds("ada")
	w.clock.Step(day)
	w.wants(w.command("olga", grant.OpClear, fields{"seen": p.Rev}), 409, "REASON_REQUIRED")
	w.wants(w.command("olga", grant.OpClear, fields{"reason": "gone", "seen": p.Rev - 1}), 409, "CONFLICT")
	w.wants(w.command("olga", grant.OpClear, fields{"reason": "gone", "seen": p.Rev}), 200, "")
	w.wants(w.command("olga", grant.OpClear, fields{"reason": "gone", "seen": p.Rev}), 409, "ALREADY_CLEARED")
	if a := w.ask("nobody", "GET", atlas+"/history", nil); strings.Count(string(a.body), `"reason":"gone"`) != 1 {
		t.Errorf("%s", a.body)
	}
}

// The estate goes, and comes back.
func TestEstateVanishes(t *testing.T) {
	w := newWorld(t)
	w.created()
	away := w.estate + "-away"
	if err := os.Rename(w.estate, away); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/v1/containers", "/metrics", atlas} {
		w.wants(w.ask("nobody", "GET", path, nil), 503, "UNAVAILABLE")
	}
	if a := w.ask("nobody", "GET", "/", nil); a.status != 503 {
		t.Error(a.status)
	}
	// Without the estate there are no tokens either, and none is called wrong; nothing is made in its place.
	w.wants(w.command("ada", grant.OpPetition, nil), 503, "UNAVAILABLE")
	if _, err := os.Stat(w.estate); err == nil {
		t.Error("something was made where it was")
	}
	if err := os.Rename(away, w.estate); err != nil {
		t.Fatal(err)
	}
	w.wants(w.ask("nobody", "GET", "/healthz", nil), 200, "")
	w.wants(w.command("ada", grant.OpPetition, nil), 200, "")
}

// A reproduction over HTTP: the result is stamped by the service before anybody judges it.
func TestReproduction(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.wants(w.lands("ada", "the mass is 172.5"), 200, "")
	for _, text := range []string{"kernel", "assumptions"} {
		w.wants(w.ask("ada", "POST", atlas+"/objects/artifacts", []byte(text)), 201, "")
	}
	f := func() fields {
		return w.proved("ada", fields{"record": "1:work.txt", "deriver": "bob", "kernel": digestOf("kernel"), "assumptions": digestOf("assumptions")})
	}
	bad := f()
	bad["kernel"] = digestOf("the mass is 172.5")
	w.wants(w.command("ada", grant.OpCommission, bad), 400, "BAD_INPUT")
	a := w.wants(w.command("ada", grant.OpCommission, f(), "Idempotency-Key", "commission-1"), 200, "")
	w.wants(w.command("carl", grant.OpPetition, nil), 200, "")
	again := w.wants(w.command("ada", grant.OpCommission, f(), "Idempotency-Key", "commission-1"), 200, "")
	if !bytes.Equal(a.body, again.body) || len(w.head().Blocks) != 1 {
		t.Errorf("it was commissioned twice: %s", again.body)
	}
	block := a.page.Blocks[len(a.page.Blocks)-1].ID
	w.wants(w.command("carl", grant.OpDerive, fields{"block": block}), 409, "SAME_AGENT")
	w.wants(w.command("bob", grant.OpDerive, fields{"block": block}), 200, "")
	w.wants(w.command("carl", grant.OpJudge, fields{"block": block, "verdict": "match", "reason": "early"}), 409, "NOT_STAGED")
	result := fmt.Sprintf("%s/reproductions/%d/result", atlas, block)
	w.wants(w.ask("ada", "POST", result, []byte("172.5")), 409, "SAME_AGENT")
	staged := w.wants(w.ask("bob", "POST", result, []byte("172.5"), "Idempotency-Key", "result-0001"), 201, "")
	w.wants(w.command("carl", grant.OpTouch, nil), 200, "")
	w.wants(w.ask("bob", "POST", result, []byte("172.5"), "Idempotency-Key", "result-0001"), 201, "")
	if !strings.Contains(string(staged.body), `"src":"store"`) || !strings.Contains(string(staged.body), digestOf("172.5")) {
		t.Errorf("%s", staged.body)
	}
	w.wants(w.ask("bob", "POST", result, []byte("172.6")), 409, "ALREADY_STAGED")
	w.wants(w.command("bob", grant.OpJudge, fields{"block": block, "verdict": "match", "reason": "own"}), 409, "SAME_AGENT")
	w.wants(w.command("carl", grant.OpJudge, fields{"block": block, "verdict": "match", "reason": "the same"}), 200, "")
	if list := w.ask("nobody", "GET", atlas+"/reproductions", nil); !strings.Contains(string(list.body), `"match"`) {
		t.Errorf("%s", list.body)
	}
}

// A peer that sends nothing is let go, and so is one that sends half of an upload; nothing of it is kept.
func TestSlowClient(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.stall = 50 * time.Millisecond })
	w.created()
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/objects/artifacts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nhalf", atlas, w.tokens["ada"])
	var b bytes.Buffer
	if _, err := b.ReadFrom(conn); err != nil && !strings.Contains(err.Error(), "reset") { // until the service ends it
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "201") {
		t.Errorf("%s", b.String())
	}
	if list, err := w.store.Objects(t.Context(), "atlas", grant.KindArtifact); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	w.wants(w.ask("ada", "GET", atlas+"/objects/artifacts", nil), 200, "")
}

// Case 41: what breaks in a page or a badge breaks no heartbeat.
func TestCase41BrokenPage(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	good := pages
	defer func() { pages = good }()
	pages = nil // every page panics
	for _, path := range []string{"/", "/c/atlas", "/estate"} {
		w.wants(w.ask("nobody", "GET", path, nil), 500, "INTERNAL")
	}
	w.wants(w.command("ada", grant.OpHeartbeat, w.proved("ada", nil)), 200, "")
	w.wants(w.ask("nobody", "GET", atlas+"/badge.json", nil), 200, "")
	if !strings.Contains(w.log.String(), "panic") {
		t.Error("nobody was told")
	}
}

// The tool's own store and the service see each other's work at once.
func TestBesideTheTool(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	cmd := grant.Petition{Meta: grant.Meta{Container: "atlas", Nonce: "beside-it", By: grant.Agent("bob")}}
	if _, _, err := w.store.Do(t.Context(), grant.Request{Command: cmd}); err != nil {
		t.Fatal(err)
	}
	a := w.ask("nobody", "GET", atlas+"/turn?agent=bob", nil)
	var turn struct {
		Place  int
		Queued bool
		May    bool
	}
	if err := json.Unmarshal(a.body, &turn); err != nil || turn.Place != 1 || !turn.Queued || turn.May {
		t.Errorf("%s %v", a.body, err)
	}
}
