package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An output that cannot be written is a failure, except for a hook; a dispatch that is in the log says so.
func TestDispatchOutputLost(t *testing.T) {
	c := newWorld(t, cellClasses[0])
	c.plant(1, thisHost(t)) // for check and its envelope to have something to say
	for _, args := range []string{
		"dispatch list", "dispatch list --json", "dispatch list -n 1", "dispatch show ID", "dispatch show ID --json",
		"board show", "board show --json", "board show --markdown", "board check --hook-envelope",
		"dispatch unlock --force --json", "dispatch unlock", "dispatch unlock --json",
		"board check --json", "board repair --agent ada", "board repair --agent ada --json",
		"dispatch open --agent ada --task x", "dispatch open --agent ada --task x --json",
		"dispatch close ID --status done --json",
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		before := len(c.logged())
		r := startWith(t, c.dir, func(cmd *exec.Cmd) { cmd.Stdout = full }, "stile", strings.Fields(strings.ReplaceAll(args, "ID", c.first))...)
		code := r.wait()
		_ = full.Close()
		want := 1
		if strings.Contains(args, "envelope") {
			want = 0
		}
		says := r.stderr()
		changes := strings.Contains(args, "open") || strings.Contains(args, "close")
		if code != want || (want == 1) != strings.Contains(says, "no space left on device") || changes != strings.Contains(says, "hint: it is recorded: do not repeat it") {
			t.Errorf("%s: exit code %d: %s", args, code, says)
		}
		if opened := len(c.logged()) - before; (opened == 1) != strings.Contains(args, "open") {
			t.Errorf("%s: %d more in the log", args, opened)
		}
	}
	c.run(0, "board", "check")
	c.clean()
}

// A text that cannot be read is no text; one whose end never comes is refused at its bound.
func TestDispatchTextFiles(t *testing.T) {
	c := newWorld(t, cellClasses[0])
	for file, want := range map[string]string{".": `"code":"usage"`, "none": `"code":"usage"`, "/dev/zero": `"code":"bad_text"`, "/dev/null": `"code":"bad_text"`} {
		if out, _ := c.run(1, "dispatch", "open", "--agent", "ada", "--json", "--task-file", file); !strings.Contains(out, want) {
			t.Errorf("%s: %s", file, out)
		}
		if file == "/dev/null" {
			continue // a result may be empty
		}
		if out, _ := c.run(1, "dispatch", "close", c.first, "--status", "done", "--json", "--result-file", file); !strings.Contains(out, want) {
			t.Errorf("%s: %s", file, out)
		}
	}
	r := c.start("dispatch", "open", "--agent", "ada", "--task-file", "-", "--json")
	chunk := strings.Repeat("x", 4096)
	for range 64 { // it does not wait for an end
		if _, err := r.in.WriteString(chunk); err != nil {
			break
		}
	}
	r.exits(1)
	c.whole()
}

// A board of any size is refused in little memory.
func TestHugeBoard(t *testing.T) {
	c := newWorld(t, cellClasses[0])
	if err := os.Truncate(c.path("board", "board.json"), 1<<30); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"dispatch open --agent ada --task x", "board show", "board check", "board repair --agent ada"} {
		r := start(t, c.dir, "helper", append([]string{"peak", "stile"}, strings.Fields(args)...)...)
		said, err := io.ReadAll(r.out)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.wait()
		var peak int
		says := string(said) + r.stderr()
		_, last, _ := strings.Cut(says, "peak ")
		if _, err := fmt.Sscan(last, &peak); err != nil || peak > 64<<10 || !strings.Contains(says, "it has more than 64 MiB") {
			t.Errorf("%s: %d KiB, %v: %s", args, peak, err, says)
		}
	}
	if got := c.logged(); len(got) != 1 {
		t.Errorf("the log has %v", got)
	}
}
