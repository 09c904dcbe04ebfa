package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/local"
)

// Whatever a body is, it is a command of that op, or an error that says why; and a command is the same once it was
// written and read again.
func FuzzDecode(f *testing.F) {
	f.Add("land", `{"grant":1,"secret":"`+strings.Repeat("a", 64)+`","ids":[{"lo":1,"hi":3}],"keep":[1],"base":""}`)
	f.Add("acquire", `{"secret":"`+strings.Repeat("a", 64)+`"}`)
	f.Add("create", `{"params":{"cap":1}}`)
	f.Add("clear", `{"reason":"x","seen":9,"by":{"name":"o","role":"operator"}}`)
	f.Add("petition", `[]`)
	f.Add("begin", `{}`)
	f.Fuzz(func(t *testing.T, op, body string) {
		meta := grant.Meta{Container: "atlas", Nonce: "nonce-0001"}
		cmd, err := granthttp.Decode(grant.Op(op), meta, []byte(body))
		if (cmd == nil) == (err == nil) {
			t.Fatal(cmd, err)
		}
		if err != nil {
			return
		}
		if cmd.Op() != grant.Op(op) {
			t.Fatal(cmd.Op())
		}
		again, err := granthttp.Encode(cmd)
		if err != nil {
			t.Fatal(err)
		}
		other, err := granthttp.Decode(grant.Op(op), meta, again)
		if err != nil || grant.CommandDigest(other) != grant.CommandDigest(cmd) {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// Whatever a request is, the service answers, and not with an error of its own making.
func FuzzRequest(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "estate.json"), []byte(`{"v":1}`), 0o600); err != nil {
		f.Fatal(err)
	}
	store, err := local.Open(dir, local.Options{State: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	s := New(Options{Estate: dir, Store: store, TrustLoopback: true})
	f.Cleanup(s.Close)
	f.Add("POST", "/v1/containers/atlas/create", `{"by":{"name":"ada","role":"agent"}}`, "key-00001", "1.1")
	f.Add("POST", "/v1/containers/atlas/land", `{"entries":[{"name":"../x"}]}`, "", "")
	f.Add("PUT", "/v1/containers/atlas/objects/artifacts/00", "abc", "", "")
	f.Add("GET", "/v1/containers/atlas/history?limit=1&from=1.1", "", "", "")
	f.Add("GET", "/c/%3cb%3e", "", "", "")
	f.Add("GET", "/v1/containers/atlas?after=1.1", "", "", "")
	f.Fuzz(func(t *testing.T, method, target, body, key, match string) {
		if !strings.HasPrefix(target, "/") || strings.Contains(target, "events") || strings.Contains(target, "after=") {
			return // streams do not end by themselves
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+target, strings.NewReader(body))
		if err != nil {
			return
		}
		r.RemoteAddr = "127.0.0.1:9"
		r.Header.Set("Content-Type", "application/json")
		for name, v := range map[string]string{"Idempotency-Key": key, "If-Match": match, "Stile-Since": key} {
			if v != "" {
				r.Header.Set(name, v)
			}
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %s: %s", method, target, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s", w.Body)
		}
	})
}
