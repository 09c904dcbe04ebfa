package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/http/direct"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/register"
)

// asStiled makes the test's program stiled itself.
const asStiled = "STILED_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asStiled) == "1" {
		os.Exit(stiled(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// place is an estate with real servers.
type place struct {
	t      *testing.T
	dir    string
	env    []string
	tokens map[string]string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	e := &place{t: t, dir: t.TempDir(), tokens: map[string]string{}}
	e.env = append(os.Environ(), asStiled+"=1", "XDG_STATE_HOME="+t.TempDir())
	if err := os.WriteFile(filepath.Join(e.dir, "estate.json"), []byte(`{"v":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"ada", "bob"} {
		e.tokens[who] = e.token("--agent", who)
	}
	e.tokens["olga"] = e.token("--operator", "olga")
	return e
}

// stiled runs one, and gives what it printed.
func (e *place) stiled(args ...string) (stdout, stderr string, code int) {
	e.t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = e.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		e.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (e *place) token(args ...string) string {
	e.t.Helper()
	out, errs, code := e.stiled(append([]string{"token", "add", "--estate", e.dir}, args...)...)
	if code != 0 {
		e.t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// server is one that runs.
type server struct {
	cmd  *exec.Cmd
	url  string
	errs *bytes.Buffer
	done chan struct{}
}

// serve starts one, and waits until it says where it serves.
func (e *place) serve(args ...string) *server {
	e.t.Helper()
	s := &server{cmd: exec.Command(os.Args[0], append([]string{"serve", "--estate", e.dir}, args...)...), errs: &bytes.Buffer{}, done: make(chan struct{})}
	s.cmd.Env, s.cmd.Stderr = e.env, s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.cmd.Wait()
		e.t.Fatalf("%v: %s", err, s.errs)
	}
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), " at ")
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = s.cmd.Wait()
		close(s.done)
	}()
	e.t.Cleanup(s.kill)
	return s
}

// kill ends a server as nothing can keep it from being ended.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// client is an agent's, with a state folder of its own.
func (e *place) client(url, agent, state string) *session.Client {
	e.t.Helper()
	t, err := direct.New(url, e.tokens[agent])
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(t.Close)
	store, err := granthttp.Open(t, granthttp.Options{Server: "the one", State: state})
	if err != nil {
		e.t.Fatal(err)
	}
	c := &session.Client{Store: store, Agent: agent}
	if agent == "olga" {
		c.Operator, c.Agent = agent, ""
	}
	return c
}

// local is the estate as a program beside the server has it.
func (e *place) local() *local.Store {
	e.t.Helper()
	s, err := local.Open(e.dir, local.Options{State: e.t.TempDir()})
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

func (e *place) ask(url, who, method, path, body string) (int, string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if text := e.tokens[who]; text != "" {
		req.Header.Set("Authorization", "Bearer "+text)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// A second server refuses and names the first; after a SIGKILL the next one starts at once.
func TestOneServer(t *testing.T) {
	e := newPlace(t)
	first := e.serve("--listen", "127.0.0.1:0")
	at := strings.TrimPrefix(first.url, "http://")
	for _, listen := range []string{"127.0.0.1:0", at} { // also where its own port is the one that is taken
		_, errs, code := e.stiled("serve", "--estate", e.dir, "--listen", listen)
		if code != exitRefused || !strings.Contains(errs, "process "+itoa(first.cmd.Process.Pid)) || !strings.Contains(errs, " at "+at+",") {
			t.Errorf("%d %s", code, errs)
		}
	}
	first.kill()
	second := e.serve("--listen", "127.0.0.1:0")
	if code, text := e.ask(second.url, "", "GET", "/healthz", ""); code != 200 {
		t.Error(code, text)
	}
}

func itoa(n int) string {
	data, _ := json.Marshal(n)
	return string(data)
}

// On SIGTERM a server lets what is at work come to its end, and ends with 0; streams do not keep it.
func TestGracefulStop(t *testing.T) {
	e := newPlace(t)
	s := e.serve("--listen", "127.0.0.1:0")
	if code, text := e.ask(s.url, "olga", "POST", "/v1/containers/atlas/create", "{}"); code != 201 {
		t.Fatal(code, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// An upload is under way: its first half is there.
	body, w := io.Pipe()
	put, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/containers/atlas/objects/artifacts", body)
	if err != nil {
		t.Fatal(err)
	}
	put.Header.Set("Authorization", "Bearer "+e.tokens["ada"])
	put.Header.Set("Expect", "100-continue") // then the service has begun to read when the first byte goes
	got := make(chan int, 1)
	go func() {
		resp, err := http.DefaultClient.Do(put)
		if err != nil {
			got <- 0
			return
		}
		got <- resp.StatusCode
		_ = resp.Body.Close()
	}()
	if _, err := w.Write([]byte("first half, ")); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // the stream ends
		t.Log(err)
	}
	if _, err := w.Write([]byte("second half")); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if code := <-got; code != 201 {
		t.Errorf("the upload got %d", code)
	}
	<-s.done
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.errs)
	}
}

// Elsewhere than on loopback it serves only when told that this is not safe.
func TestListen(t *testing.T) {
	e := newPlace(t)
	for _, at := range []string{"0.0.0.0:0", ":0", "192.0.2.1:7421", "example.com:80"} {
		_, errs, code := e.stiled("serve", "--estate", e.dir, "--listen", at)
		if code != exitFailed || !strings.Contains(errs, "--insecure-http") || !strings.Contains(errs, "read the tokens") {
			t.Errorf("%s: %d %s", at, code, errs)
		}
	}
	s := e.serve("--listen", "0.0.0.0:0", "--insecure-http", "--trust-loopback")
	s.kill()
	for _, want := range []string{"plain HTTP", "loopback is trusted"} {
		if !strings.Contains(s.errs.String(), want) {
			t.Errorf("%q is not said: %s", want, s.errs)
		}
	}
}

// Tokens lie hashed, in files that are the owner's alone, and are listed without their text.
func TestTokenVerb(t *testing.T) {
	e := newPlace(t)
	files, err := filepath.Glob(filepath.Join(e.dir, "service", "tokens", "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	out, _, _ := e.stiled("token", "list", "--estate", e.dir)
	all.WriteString(out)
	for _, text := range e.tokens {
		if strings.Contains(all.String(), text) || strings.Contains(all.String(), text[len(text)-64:]) {
			t.Error("a token's text is there")
		}
	}
	id := strings.Split(e.tokens["ada"], "_")[1]
	if _, errs, code := e.stiled("token", "revoke", "--estate", e.dir, id); code != 0 {
		t.Error(errs)
	}
	if _, errs, code := e.stiled("token", "revoke", "--estate", e.dir, id); code != exitFailed || !strings.Contains(errs, "token list") {
		t.Error(code, errs)
	}
	for _, args := range [][]string{
		{"token"}, {"token", "add"}, {"token", "add", "--agent", "a", "--operator", "b"}, {"token", "revoke", "../x"}, {"serve", "x"}, {"nonsense"}, {"serve", "--listen", "x"},
	} {
		if _, errs, code := e.stiled(append(args, "--estate", e.dir)...); code != exitFailed || !strings.Contains(errs, "hint: ") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	for _, verb := range []string{"serve", "token", "client"} {
		if out, _, code := e.stiled(verb, "--help"); code != 0 || !strings.Contains(out, "Example:") {
			t.Errorf("%s: %d %s", verb, code, out)
		}
	}
}

// tree is what one landing brings.
func tree(t *testing.T, n int) *register.Tree {
	t.Helper()
	tree := &register.Tree{}
	if err := tree.AddBytes("work.txt", 0o644, []byte(itoa(n))); err != nil {
		t.Fatal(err)
	}
	return tree
}

// Failure 22 and 24: the server is killed in the middle of landings, again and again: what was acknowledged is there,
// nothing is half there, and the next server needs nobody's help.
func TestKilledServer(t *testing.T) {
	rounds := 12
	if os.Getenv("STILE_NIGHTLY") == "1" {
		rounds = 200
	}
	if testing.Short() {
		rounds = 4
	}
	e := newPlace(t)
	state := t.TempDir()
	s := e.serve("--listen", "127.0.0.1:0")
	if _, err := e.client(s.url, "olga", state).Create(t.Context(), "atlas", "", grant.DefaultParams()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.client(s.url, "ada", state).Acquire(t.Context(), "atlas", ""); err != nil {
		t.Fatal(err)
	}
	var acked []grant.Ref
	lands := 0
	for round := range rounds {
		c := e.client(s.url, "ada", state)
		stop := time.AfterFunc(time.Duration(round*7919%40)*time.Millisecond, func() { _ = s.cmd.Process.Kill() })
		for {
			lands++
			l, err := c.Land(t.Context(), "atlas", "", session.Landing{Tree: tree(t, lands), Note: itoa(lands)})
			if err != nil {
				break
			}
			acked = append(acked, l.Revision.Ref())
		}
		stop.Stop()
		s.kill()
		s = e.serve("--listen", "127.0.0.1:0")
	}
	if len(acked) == 0 {
		t.Fatal("nothing landed")
	}
	// The last one's answer was lost: repeated, it is found or done.
	l, err := e.client(s.url, "ada", state).Land(t.Context(), "atlas", "", session.Landing{Tree: tree(t, lands), Note: itoa(lands)})
	if err != nil {
		t.Fatal(err)
	}
	acked = append(acked, l.Revision.Ref())
	chain, err := grant.Chain(t.Context(), e.local(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	if err := grant.Verify(chain); err != nil {
		t.Error(err)
	}
	if err := grant.Persisted(chain, acked...); err != nil {
		t.Error(err)
	}
	t.Logf("%d kills, %d landings tried, %d acknowledged", rounds, lands, len(acked))
}
