package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	granthttp "github.com/stile-lock/stile/grant/http"
)

// The requests of docs/api.md, each as it stands there; and every command stands there.
func TestAPIDocument(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "openssl", "xxd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (scripts/setup-tests)", tool)
		}
	}
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	e := newPlace(t)
	e.tokens["carl"] = e.token("--agent", "carl")
	s := e.serve("--listen", "127.0.0.1:0")
	env := append(os.Environ(), "S="+s.url, "ADA="+e.tokens["ada"], "BOB="+e.tokens["bob"], "CARL="+e.tokens["carl"], "OLGA="+e.tokens["olga"])
	dir := t.TempDir()
	blocks := 0
	for part := range strings.SplitSeq(string(text), "```sh\n") {
		script, _, ok := strings.Cut(part, "\n```")
		if blocks++; blocks == 1 || !ok {
			continue // before the first
		}
		cmd := exec.Command("bash", "-c", "set -eu; set -x\n"+script)
		cmd.Env, cmd.Dir = env, dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, script, out)
		}
	}
	if blocks < 10 {
		t.Errorf("%d blocks", blocks)
	}
	for _, op := range granthttp.Ops() {
		if !strings.Contains(string(text), "/"+string(op)+"\"") && op != "stage" && op != "resolve" {
			t.Errorf("%s is not in docs/api.md", op)
		}
	}
}
