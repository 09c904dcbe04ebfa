package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toFull runs the tool with a standard output on which there is no space.
func toFull(t *testing.T, dir string, args ...string) (code int, stderr string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	r := startWith(t, dir, func(cmd *exec.Cmd) { cmd.Stdout = full }, "stile", args...)
	return r.wait(), r.stderr()
}

// Whatever a command was to print, it does not end with 0 when that is lost.
func TestFullOutput(t *testing.T) {
	lines := []string{
		"help", "help run", "help grant", "help grant acquire", "--help", "--version", "version", "version --json",
		"completion bash", "completion zsh", "completion fish",
		"init", "init --json", "doctor .", "doctor --json .", "status", "status --json", "status f", "status --json f",
		"incidents f", "incidents --json f", "unlock f", "unlock --json f",
		"dispatch list --json", "board check --json", "dispatch open --agent ada --task x",
		"grant create --agent ada c", "grant status", "grant status --json", "grant status c", "grant status --json c", "grant history c",
		"grant history --json c", "register log c", "register log --json c", "repro list c", "repro list --json c",
	}
	for _, v := range verbs() {
		lines = append(lines, v.name+" --help")
		if v.subs != nil {
			for _, s := range v.subs() {
				lines = append(lines, s.name+" --help")
			}
		}
	}
	dir := t.TempDir()
	for _, line := range lines {
		code, says := toFull(t, dir, strings.Fields(line)...)
		if code != exitFailed || strings.Count(says, "cannot write the output: no space left on device") != 1 {
			t.Errorf("stile %s: exit code %d: %s", line, code, says)
		}
	}
}

// There is one way to the standard output. Exceptions are files that others are given, the answer to a hook, which
// must not fail, and what a child of our own says to its parent.
func TestOneWayOut(t *testing.T) {
	allowed := map[string]int{
		"output.go": 1, "board_check.go": 1, "child.go": 1, "group_unix.go": 1, "run_other.go": 1, "run_windows.go": 1,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, way := range []string{"os.Stdout", "fmt.Print(", "fmt.Println(", "fmt.Printf("} {
			n += strings.Count(string(b), way)
		}
		if n != allowed[name] {
			t.Errorf("%s writes to the standard output in %d places without stdout, of which %d are known", name, n, allowed[name])
		}
	}
}
