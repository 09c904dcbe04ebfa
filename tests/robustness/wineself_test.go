//go:build linux

package robustness

import (
	"os"
	"path/filepath"
	"testing"
)

// plantedTests are Windows tests of which some must fail: a harness that calls them all well proves
// nothing. Those that pass need the two shims, and a child made by running the test binary again.
const plantedTests = `package planted

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("PLANTED_CHILD") != "" {
		os.Stdout.WriteString("the child")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(name, name+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func TestChild(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), "PLANTED_CHILD=1")
	if out, err := child.CombinedOutput(); err != nil || string(out) != "the child" || !strings.HasSuffix(exe, ".exe") {
		t.Errorf("%s: %q, %v", exe, out, err)
	}
}

func TestParts(t *testing.T) {
	t.Run("a/b", func(t *testing.T) { t.Skip("the reason") })
	t.Run("bad", func(t *testing.T) { t.Error("the cause") })
}

func TestPanics(t *testing.T) {
	go panic("gone")
	select {}
}

func TestNever(t *testing.T) {}
`

func TestWineSeesPlantedFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("short: nothing is run under Wine")
	}
	w := findWine(t).withPrefix(t)
	overlay, err := writeOverlay(goEnv(t, "GOROOT"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module planted.test\n\ngo 1.26\n", "planted/planted_test.go": plantedTests} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	events, rest, err := runUnderWine(t, w, overlay, root, "planted")
	if err == nil {
		t.Error("a test binary that panics ends well")
	}
	top := results(events)
	for name, want := range map[string]string{
		"TestFiles": "pass", "TestChild": "pass", "TestParts": "fail", "TestPanics": "fail",
	} {
		if r := top.child(name); r.verdict() != want {
			t.Errorf("%s: %s, want %s:\n%s", name, r.verdict(), want, r.output)
		}
	}
	parts := top.child("TestParts")
	if got := parts.child("bad").verdict(); got != "fail" {
		t.Errorf("the part that fails: %s", got)
	}
	if slash := parts.child("a"); slash.verdict() != "pass" || slash.child("b").verdict() != "skip" {
		t.Errorf("a part with a slash in its name: %s and %s, want pass and skip", slash.verdict(), slash.child("b").verdict())
	}
	if got, want := skipWords(parts.child("a").child("b").output), "planted_test.go:45: the reason"; got != want {
		t.Errorf("the skip's reason: %q, want %q", got, want)
	}
	if t.Failed() {
		t.Logf("besides the tests' output:\n%s", rest)
	}
}

func TestUnfinishedIsNotPassed(t *testing.T) {
	top := results([]testEvent{{Action: "run", Test: "TestA"}, {Action: "output", Test: "TestA", Output: "=== RUN   TestA\n"}, {Action: "pass", Test: "TestB"}})
	if got := top.child("TestA").verdict(); got != "unfinished" {
		t.Errorf("a test without an end: %s", got)
	}
	if got := top.child("TestB").verdict(); got != "pass" {
		t.Errorf("a test that passed: %s", got)
	}
}
