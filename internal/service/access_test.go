package service

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/service/token"
)

// No token, no write; and none that is another's, unknown or revoked.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	w.wants(w.command("nobody", grant.OpCreate, nil), 401, "UNAUTHORIZED")
	w.created()
	before := w.head().Rev
	for _, op := range []grant.Op{grant.OpPetition, grant.OpAcquire, grant.OpClear, grant.OpLand} {
		w.wants(w.command("nobody", op, nil), 401, "UNAUTHORIZED")
	}
	w.wants(w.ask("nobody", "POST", atlas+"/objects/artifacts", []byte("x")), 401, "UNAUTHORIZED")
	w.wants(w.ask("nobody", "GET", atlas+"/objects/artifacts", nil), 401, "UNAUTHORIZED")
	w.wants(w.command("ada", grant.OpPetition, fields{"by": grant.Agent("bob")}), 403, "FORBIDDEN")
	w.wants(w.command("ada", grant.OpPetition, fields{"by": grant.Operator("ada")}), 403, "FORBIDDEN")
	w.wants(w.command("ada", grant.OpClear, fields{"reason": "mine", "seen": before}), 403, "FORBIDDEN")
	w.wants(w.command("ada", grant.OpRestore, fields{"reason": "mine"}), 403, "FORBIDDEN")
	w.wants(w.ask("ada", "PUT", atlas+"/revisions/1.2", "{}", "If-Match", `"1.1"`), 403, "FORBIDDEN")
	for _, bad := range []string{"Bearer x", "Bearer stile_../../x_y", "Basic YTpi", "Bearer " + strings.Replace(w.tokens["ada"], "stile_", "stile_0", 1)} {
		w.wants(w.ask("nobody", "POST", atlas+"/petition", "{}", "Authorization", bad), 401, "UNAUTHORIZED")
	}
	// The right id with another secret.
	text := w.tokens["ada"]
	last := "0"
	if strings.HasSuffix(text, "0") {
		last = "1"
	}
	w.wants(w.ask("nobody", "POST", atlas+"/petition", "{}", "Authorization", "Bearer "+text[:len(text)-1]+last), 401, "UNAUTHORIZED")
	list, err := token.In(w.estate).List()
	if err != nil || len(list) != 4 {
		t.Fatal(list, err)
	}
	for _, k := range list {
		if k.Name == "ada" {
			if err := token.In(w.estate).Revoke(k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.wants(w.command("ada", grant.OpPetition, nil), 401, "UNAUTHORIZED")
	if w.head().Rev != before {
		t.Error("something was written")
	}
	w.wants(w.command("bob", grant.OpPetition, nil), 200, "")
}

// Loopback that is trusted may act as any agent, which it names, and never as an operator.
func TestTrustedLoopback(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.TrustLoopback = true })
	w.created()
	w.wants(w.command("nobody", grant.OpPetition, nil), 400, "BAD_INPUT")
	w.wants(w.command("nobody", grant.OpPetition, fields{"by": grant.Agent("dora")}), 200, "")
	w.wants(w.command("nobody", grant.OpClear, fields{"by": grant.Operator("dora"), "reason": "x", "seen": 1}), 403, "FORBIDDEN")
	w.wants(w.command("nobody", grant.OpClear, fields{"by": grant.Agent("dora"), "reason": "x", "seen": 1}), 403, "FORBIDDEN")
	// What a proxy passes on does not come from this host.
	w.wants(w.command("nobody", grant.OpPetition, fields{"by": grant.Agent("eve")}, "X-Forwarded-For", "203.0.113.9"), 401, "UNAUTHORIZED")
	// A token that is there counts.
	w.wants(w.command("ada", grant.OpPetition, fields{"by": grant.Agent("eve")}), 403, "FORBIDDEN")
}

// A name that was made to point here, and what another site sends, are refused before anything is read.
func TestOtherSites(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.TrustLoopback, o.Hosts = true, []string{"stile.example"} })
	w.created()
	w.wants(w.ask("nobody", "GET", atlas, nil, "Host", "evil.example"), 403, "FORBIDDEN")
	w.wants(w.ask("nobody", "GET", "/", nil, "Host", "evil.example:7421"), 403, "FORBIDDEN")
	w.wants(w.ask("nobody", "GET", "/", nil, "Host", "127.0.0.1.evil.example"), 403, "FORBIDDEN")
	body := fields{"by": grant.Agent("dora")}
	w.wants(w.command("nobody", grant.OpPetition, body, "Origin", "http://evil.example"), 403, "FORBIDDEN")
	w.wants(w.command("nobody", grant.OpPetition, body, "Origin", "null"), 403, "FORBIDDEN")
	w.wants(w.command("nobody", grant.OpPetition, body, "Sec-Fetch-Site", "cross-site"), 403, "FORBIDDEN")
	// What a form of another site can send without asking.
	w.wants(w.ask("nobody", "POST", atlas+"/petition", `{"by":{"name":"dora","role":"agent"}}`, "Content-Type", "text/plain"), 415, "MEDIA_TYPE")
	w.wants(w.ask("nobody", "GET", atlas, nil, "Host", "STILE.example:80"), 200, "")
	w.wants(w.ask("nobody", "GET", atlas, nil, "Host", "[::1]:7421"), 200, "")
	w.wants(w.command("nobody", grant.OpPetition, body, "Origin", w.http.URL), 200, "")
	if a := w.ask("nobody", "GET", atlas, nil); a.header.Get("Access-Control-Allow-Origin") != "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error(a.header)
	}
}

// Tokens and secrets are in no log, page or answer.
func TestSecretsStaySecret(t *testing.T) {
	w := newWorld(t)
	w.created()
	w.holds("ada")
	w.lands("ada", "one")
	w.clock.Step(day)
	w.lands("ada", "late")
	w.ask("ada", "POST", "/c/atlas/clear", "token="+w.tokens["olga"]+"&seen=1&epoch=1&reason=x", "Content-Type", "application/x-www-form-urlencoded")
	w.ask("ada", "POST", atlas+"/nonsense?token="+w.tokens["ada"], "{}")
	w.ask("nobody", "POST", atlas+"/petition", "{}", "Authorization", "Bearer stile_000000000000_wrong")
	var shown strings.Builder
	for _, path := range []string{"/", "/c/atlas", "/estate", "/metrics", atlas, atlas + "/history", atlas + "/refused", "/v1/containers"} {
		a := w.ask("nobody", "GET", path, nil)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		shown.Write(a.body)
	}
	shown.WriteString(w.log.String())
	secrets := []string{hexOf(w.secret["ada"].Secret), "stile_000000000000_wrong"}
	for _, text := range w.tokens {
		secrets = append(secrets, text, text[len(text)-64:])
	}
	for _, secret := range secrets {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%s… is shown", secret[:12])
		}
	}
	if !strings.Contains(w.log.String(), "route=") {
		t.Error("nothing was logged")
	}
}
