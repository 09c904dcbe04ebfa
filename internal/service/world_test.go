package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/service/token"
)

// clock shows a test's time, and sleeps in the world's.
type clock struct{ *granttest.Clock }

func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// log keeps what the service logs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is an estate that is served, on a clock of the test's.
type world struct {
	t      *testing.T
	estate string
	clock  *granttest.Clock
	store  *local.Store
	server *Server
	http   *httptest.Server
	log    *log
	tokens map[string]string // by name
	secret map[string]grant.Session
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	w := &world{
		t: t, estate: t.TempDir(), clock: granttest.NewClock(), log: &log{}, tokens: map[string]string{}, secret: map[string]grant.Session{},
	}
	if err := os.WriteFile(filepath.Join(w.estate, "estate.json"), []byte(`{"v":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	w.store, err = local.Open(w.estate, local.Options{State: t.TempDir(), Seams: &seam.Set{Clock: clock{w.clock}}})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Estate: w.estate, Store: w.store, Log: slog.New(slog.NewTextHandler(w.log, nil)), poll: 5 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	w.server = New(o)
	w.http = httptest.NewServer(w.server.Handler())
	t.Cleanup(func() {
		w.server.Close()
		w.http.Close()
	})
	for name, role := range map[string]grant.Role{"ada": grant.RoleAgent, "bob": grant.RoleAgent, "carl": grant.RoleAgent, "olga": grant.RoleOperator} {
		_, w.tokens[name], err = token.In(w.estate).Add(role, name)
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// answer is what came back.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	problem granthttp.Problem
	page    *grant.Page
}

// ask sends a request, as somebody or nobody. headers are pairs.
func (w *world) ask(who, method, path string, body any, headers ...string) *answer {
	w.t.Helper()
	var r io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r, kind = bytes.NewReader(b), "application/octet-stream"
	default:
		data, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, r)
	if err != nil {
		w.t.Fatal(err)
	}
	if r != nil {
		req.Header.Set("Content-Type", kind)
	}
	if text := w.tokens[who]; text != "" {
		req.Header.Set("Authorization", "Bearer "+text)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		w.t.Fatal(err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") {
		if err := json.Unmarshal(a.body, &a.problem); err != nil {
			w.t.Fatal(err)
		}
	} else if rev, err := grant.Open(a.body); err == nil {
		a.page = rev.Page()
	}
	return a
}

// wants is an answer that must have a status, and a code if it is a problem.
func (w *world) wants(a *answer, status int, code string) *answer {
	w.t.Helper()
	if a.status != status || a.problem.Code != code {
		w.t.Fatalf("status %d, code %q: %s; want %d, %q", a.status, a.problem.Code, a.body, status, code)
	}
	return a
}

const atlas = "/v1/containers/atlas"

// fields are a body's.
type fields map[string]any

// command gives one, with its proof where the agent holds.
func (w *world) command(who string, op grant.Op, f fields, headers ...string) *answer {
	w.t.Helper()
	if f == nil {
		f = fields{}
	}
	return w.ask(who, "POST", atlas+"/"+string(op), f, headers...)
}

// proved adds an agent's proof.
func (w *world) proved(who string, f fields) fields {
	if f == nil {
		f = fields{}
	}
	s := w.secret[who]
	f["grant"], f["secret"] = s.Grant, hexOf(s.Secret)
	return f
}

func hexOf(s grant.Secret) string { return hex.EncodeToString(s[:]) }

// created makes the container, and holds makes an agent its lead.
func (w *world) created() { w.t.Helper(); w.wants(w.command("olga", grant.OpCreate, nil), 201, "") }

func (w *world) holds(who string) *grant.Page {
	w.t.Helper()
	s := grant.Session{}
	copy(s.Secret[:], who+w.t.Name()+time.Now().String())
	a := w.wants(w.command(who, grant.OpAcquire, fields{"session": s.Secret.Hash()}), 200, "")
	s.Grant = a.page.Grant
	w.secret[who] = s
	return a.page
}

// uploaded stores an artifact.
func (w *world) uploaded(who, text string) fields {
	w.t.Helper()
	a := w.wants(w.ask(who, "POST", atlas+"/objects/artifacts", []byte(text)), 201, "")
	var o struct {
		SHA256 grant.Digest
		Size   int64
	}
	if err := json.Unmarshal(a.body, &o); err != nil {
		w.t.Fatal(err)
	}
	return fields{"name": "work.txt", "sha256": o.SHA256, "size": o.Size}
}

func (w *world) head() *grant.Page {
	w.t.Helper()
	head, err := w.store.Head(w.t.Context(), "atlas")
	if err != nil {
		w.t.Fatal(err)
	}
	return head.Page()
}

// lands uploads and lands a text.
func (w *world) lands(who, text string, headers ...string) *answer {
	w.t.Helper()
	e := w.uploaded(who, text)
	return w.command(who, grant.OpLand, w.proved(who, fields{"base": w.head().Register.Head, "entries": []fields{e}, "note": text}), headers...)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
