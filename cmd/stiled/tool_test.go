package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tool runs the tool of this module, with stiled beside it.
type tool struct {
	t         *testing.T
	path, dir string
	env       []string
}

func (e *place) tool() *tool {
	e.t.Helper()
	if runtime.GOOS == "windows" {
		e.t.Skip("the test's program cannot be linked to beside the tool")
	}
	bin := e.t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "stile"), "../stile")
	if out, err := build.CombinedOutput(); err != nil {
		e.t.Fatalf("%v: %s", err, out)
	}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		e.t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "stiled")); err != nil {
		e.t.Fatal(err)
	}
	return &tool{e.t, filepath.Join(bin, "stile"), e.t.TempDir(), e.env}
}

// run wants an exit code, and gives both outputs.
func (x *tool) run(code int, env []string, args ...string) string {
	x.t.Helper()
	cmd := exec.Command(x.path, args...)
	cmd.Env, cmd.Dir = append(x.env, env...), x.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		x.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		x.t.Fatalf("stile %v: exit code %d, want %d\n%s", args, got, code, &out)
	}
	return out.String()
}

// With STILE_SERVER the tool works through the service as it works on an estate: the same words, the same exit codes.
func TestToolThroughService(t *testing.T) {
	e := newPlace(t)
	x := e.tool()
	s := e.serve("--listen", "127.0.0.1:0")
	as := func(who string) []string {
		return []string{"STILE_SERVER=" + s.url, "STILE_AGENT=" + who, "STILE_TOKEN=" + e.tokens[who]}
	}
	has := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in: %s", want, text)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(x.dir, "map.svg"), []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	has(x.run(0, as("ada"), "grant", "create", "atlas"), "made")
	has(x.run(0, as("ada"), "grant", "acquire", "atlas"), "grant 1 of ada")
	has(x.run(2, as("bob"), "grant", "acquire", "atlas"), "HELD", "ada holds grant 1", "hint: ")
	has(x.run(0, as("bob"), "grant", "petition", "atlas"), "place 1 of 1")
	has(x.run(0, as("ada"), "grant", "ids", "atlas", "10"), "1 to 10")
	has(x.run(0, as("ada"), "grant", "heartbeat", "atlas"), "grant 1 of ada")
	has(x.run(0, as("ada"), "grant", "land", "atlas", "map.svg", "--ids", "1-3"), "landed 1 file as number 1")
	has(x.run(0, as("ada"), "grant", "release", "atlas"), "bob is next")
	has(x.run(2, as("ada"), "grant", "land", "atlas", "map.svg"), "refused", "kept in quarantine")
	has(x.run(0, as("bob"), "grant", "run", "atlas", "--", x.path, "grant", "land", "atlas", "--empty", "nothing to do"), "number 2")
	has(x.run(0, as("bob"), "grant", "history", "atlas"), "acquire", "release")
	has(x.run(0, as("bob"), "grant", "status", "atlas", "--badge"), "free")
	has(x.run(0, as("bob"), "register", "log", "atlas"), "ada", "bob")
	has(x.run(0, as("bob"), "register", "cat", "atlas", "map.svg"), "<svg/>")
	has(x.run(0, as("bob"), "register", "refused", "atlas"), "ada")
	x.run(0, as("bob"), "register", "export", "atlas", "out", "--landing", "1")
	if data, err := os.ReadFile(filepath.Join(x.dir, "out", "map.svg")); err != nil || string(data) != "<svg/>" {
		t.Errorf("%s %v", data, err)
	}
	// The estate's own flag is stronger, and shows the same.
	has(x.run(0, as("bob"), "grant", "status", "atlas", "--badge", "--estate", e.dir), "free")
	// Not as another, and not without a token.
	other := append(as("ada"), "STILE_TOKEN="+e.tokens["bob"])
	has(x.run(1, other, "grant", "acquire", "atlas"), "bob's, and of nobody else")
	has(x.run(1, append(as("ada"), "STILE_TOKEN="), "grant", "acquire", "atlas"), "a token is needed", "STILE_TOKEN_FILE")
	s.kill()
	has(x.run(1, as("ada"), "grant", "status", "atlas"), "cannot be reached", "stiled serve")
}
