package service

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

// evil is a name that can be, and is markup.
const evil = `<img src=x onerror=alert(1)> & "ada"`

// Names, notes and reasons with markup are text, in pages, badges and links.
func TestMarkupIsText(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.TrustLoopback = true })
	base := "/v1/containers/" + url.PathEscape(evil)
	by := grant.Agent(evil)
	w.wants(w.ask("olga", "POST", base+"/create", "{}"), 201, "")
	w.wants(w.ask("nobody", "POST", base+"/acquire", fields{"by": by, "secret": strings.Repeat("a", 64)}), 200, "")
	w.wants(w.ask("nobody", "POST", base+"/petition", fields{"by": grant.Agent("<script>alert(2)</script>")}), 400, "BAD_INPUT") // a slash
	w.wants(w.ask("nobody", "POST", base+"/petition", fields{"by": grant.Agent("<script>alert(2)")}), 200, "")
	w.wants(w.ask("nobody", "POST", base+"/land", fields{"by": by, "grant": 1, "secret": strings.Repeat("a", 64), "empty": "<b>none</b>"}), 200, "")
	w.clock.Step(day)
	w.wants(w.ask("olga", "POST", base+"/clear", fields{"reason": "</td><script>alert(3)</script>", "seen": 4}), 200, "")
	for _, path := range []string{"/", "/c/" + url.PathEscape(evil), "/c/%3Cscript%3Ex", base + "/badge.svg"} {
		a := w.ask("nobody", "GET", path, nil)
		text := string(a.body)
		for _, bad := range []string{"<img", "<script>", "<b>", "onerror=alert(1)>"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		if a.status == 200 && !strings.Contains(text, "&lt;") {
			t.Errorf("%s does not have the name: %s", path, text)
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
	}
	a := w.ask("nobody", "GET", "/", nil)
	if !strings.Contains(string(a.body), `href="/c/`+url.PathEscape(evil)[:8]) {
		t.Errorf("%s", a.body)
	}
}

// Nothing of a page is fetched from elsewhere.
func TestPagesAreWhole(t *testing.T) {
	w := newWorld(t)
	w.created()
	for _, path := range []string{"/", "/c/atlas", "/estate", "/assets/style.css", "/assets/live.js", "/assets/icon.svg"} {
		a := w.ask("nobody", "GET", path, nil)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		text := strings.ReplaceAll(string(a.body), `xmlns="http://www.w3.org/2000/svg"`, "")
		if strings.Contains(text, "://") || strings.Contains(text, "url(") || strings.Contains(text, `src="//`) {
			t.Errorf("%s names another place", path)
		}
	}
	if a := w.ask("nobody", "GET", "/assets/..%2fpage.go", nil); a.status != 404 {
		t.Error(a.status)
	}
	if a := w.ask("nobody", "GET", "/c/none", nil); a.status != 404 || !strings.Contains(string(a.body), "<h1>") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The page's clear: an operator's token, a reason, and the revision that was shown.
func TestPageClear(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
	page := func() string { return string(w.ask("nobody", "GET", "/c/atlas", nil).body) }
	if strings.Contains(page(), "<form") {
		t.Error("a live grant can be cleared")
	}
	w.clock.Step(5 * time.Hour)
	if text := page(); !strings.Contains(text, `name="seen" value="3"`) || !strings.Contains(text, "Clear grant 1 of ada") {
		t.Errorf("%s", text)
	}
	post := func(who, seen, reason string, headers ...string) *answer {
		form := url.Values{"seen": {seen}, "epoch": {"1"}, "reason": {reason}, "token": {w.tokens[who]}}.Encode()
		return w.ask("nobody", "POST", "/c/atlas/clear", form, append(headers, "Content-Type", "application/x-www-form-urlencoded")...)
	}
	for name, c := range map[string]struct {
		a      *answer
		status int
	}{
		"nobody":       {post("nobody", "3", "gone"), 401},
		"an agent":     {post("bob", "3", "gone"), 403},
		"another site": {post("olga", "3", "gone", "Origin", "http://evil.example"), 403},
		"no reason":    {post("olga", "3", ""), 409},
		"another page": {post("olga", "2", "gone"), 409},
		"no revision":  {post("olga", "", "gone"), 400},
	} {
		if c.a.status != c.status || c.a.status != 403 && !strings.Contains(string(c.a.body), "Nothing was cleared") {
			t.Errorf("%s: %d %s", name, c.a.status, c.a.body)
		}
	}
	if w.head().State != grant.StateHeld {
		t.Fatal("it was cleared")
	}
	if a := post("olga", "3", "ada has gone"); a.status != 303 || a.header.Get("Location") != "/c/atlas" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if text := page(); !strings.Contains(text, "ada has gone") || !strings.Contains(text, "HOLDER SILENT") || strings.Contains(text, "<form") {
		t.Errorf("%s", text)
	}
	if p := w.head(); p.By != grant.Operator("olga") || p.Audit == nil {
		t.Errorf("%+v", p.By)
	}
}

// A thousand containers are one page.
func TestManyContainers(t *testing.T) {
	many := 1000
	if testing.Short() {
		many = 100
	}
	w := newWorld(t)
	for i := range many {
		w.wants(w.ask("olga", "POST", fmt.Sprintf("/v1/containers/c%04d/create", i), "{}"), 201, "")
	}
	a := w.ask("nobody", "GET", "/", nil)
	if n := strings.Count(string(a.body), "<tr data-container="); n != many {
		t.Errorf("%d rows", n)
	}
	w.until(w.follow("/v1/events"), "the last", func(s Summary) bool { return s.Container == fmt.Sprintf("c%04d", many-1) })
}

// The list can be narrowed to one badge, also without a script.
func TestListByBadge(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.wants(w.ask("olga", "POST", "/v1/containers/other/create", "{}"), 201, "")
	w.wants(w.ask("ada", "POST", "/v1/containers/other/acquire", `{"secret":"`+strings.Repeat("a", 64)+`"}`), 200, "")
	for badge, want := range map[string]string{"free": "atlas", "held": "other", "": "atlas other", "caution": ""} {
		a := w.ask("nobody", "GET", "/?badge="+badge, nil)
		var shown []string
		for _, name := range []string{"atlas", "other"} {
			if strings.Contains(string(a.body), `data-container="`+name+`"`) {
				shown = append(shown, name)
			}
		}
		if got := strings.Join(shown, " "); a.status != http.StatusOK || got != want {
			t.Errorf("%q: %d, shows %q, want %q", badge, a.status, got, want)
		}
	}
	if a := w.ask("nobody", "GET", "/?badge=<b>", nil); a.status != http.StatusBadRequest || strings.Contains(string(a.body), "<b>") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The metrics have no agent's, operator's or container's name in them, and each family its type.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.wants(w.lands("ada", "one"), 200, "")
	w.wants(w.command("bob", grant.OpAcquire, fields{"secret": strings.Repeat("b", 64)}), 409, "HELD")
	a := w.ask("nobody", "GET", "/metrics", nil)
	text := string(a.body)
	for _, want := range []string{
		`stile_containers{badge="held"} 1`, "stile_landings_total 1", `stile_refusals_total{code="HELD"} 1`,
		`stile_http_requests_total{route="POST /v1/containers/{container}/{op}",status="409"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	for _, name := range []string{"ada", "bob", "olga", "atlas"} {
		if strings.Contains(text, `"`+name) {
			t.Errorf("%s is in the metrics", name)
		}
	}
	typed := map[string]bool{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			typed[strings.Fields(rest)[0]] = true
		} else if line[0] != '#' && !typed[strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]] {
			t.Errorf("no type: %s", line)
		}
	}
}
