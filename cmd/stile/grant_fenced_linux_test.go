package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stile-lock/stile/grant"
)

// No grant begins or ends while a fenced command runs, whichever of its wrapper and itself is killed: all that the
// command sees while it runs, up to its last moment, is the page on which it began, still held by the same.
func TestNoGrantChangesUnderAFencedCommand(t *testing.T) {
	dir := atlas(t)
	clock := filepath.Join(dir, "clock")
	t.Setenv(testClock, clock)
	at := func(name string) string { return filepath.Join(dir, name) }
	looks, changes := 0, 0
	counts := map[string]int{}
	n := rounds(16, 500)
	for round := range n {
		lead := fmt.Sprintf("lead-%d", round)
		writeFile(t, clock, fmt.Sprintf("%dh", 10*round))
		must0(t, dir, "grant", "acquire", "atlas", "--agent", lead)
		_, _ = stileExit(t, dir, "grant", "land", "atlas", "--agent", lead, "--resolve", "undone", "--reason", "killed")
		if round%4 == 3 {
			must0(t, dir, "grant", "land", "atlas", "--agent", lead, "--empty", "so that it can be released")
		}
		for _, name := range []string{"seen", "pid"} {
			_ = os.Remove(at(name))
		}
		wrapper := start(t, dir, "stile", "grant", "land", "atlas", "--agent", lead, "--", "sh", "-c",
			`echo $$ > pid.new; mv pid.new pid; for i in 1 2 3 4 5; do stile grant status atlas --json >> seen; done`)
		pid := 0
		until(t, "the command begins", func() bool {
			text, err := os.ReadFile(at("pid"))
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err == nil
		})
		// The command has begun: from here on the grant is past its expiry to whoever asks.
		writeFile(t, clock, fmt.Sprintf("%dh", 10*round+5))
		others := []*running{
			start(t, dir, "stile", "grant", "acquire", "atlas", "--agent", "other"),
			start(t, dir, "stile", "grant", "release", "atlas", "--agent", lead),
		}
		var page containerStatus
		if err := json.Unmarshal([]byte(prints(t, dir, "grant", "status", "atlas", "--json")), &page); err != nil {
			t.Fatal(err)
		}
		others = append(others, start(t, dir, "stile", "grant", "clear", "atlas", "--operator", "olga", "--rev", fmt.Sprint(page.Rev), "--reason", "silent"))
		how := []string{"nobody", "the wrapper", "the command", "both"}[round/2%4]
		if how != "nobody" && how != "the command" {
			_ = wrapper.cmd.Process.Signal(unix.SIGKILL)
		}
		if how != "nobody" && how != "the wrapper" {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		counts[how]++
		wrapper.wait()
		for _, r := range others {
			if r.wait() == 0 {
				changes++
			}
		}
		// A status that outlives a killed command may see its end recorded. It has inherited the lock all the same.
		runs := how == "nobody" || how == "the wrapper"
		text, _ := os.ReadFile(at("seen"))
		for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); looks++ {
			var s containerStatus
			if dec.Decode(&s) != nil {
				break // it was killed while it wrote
			}
			if s.State != grant.StateHeld || s.Holder == nil || s.Holder.Agent != lead || s.Running == nil && runs {
				t.Fatalf("round %d, killed: %s: the command saw %+v", round, how, s)
			}
		}
		// What lives on of a killed wrapper's command must end before the next round.
		ended(t, pid)
	}
	must0(t, dir, "grant", "history", "atlas", "--verify", "-n", "1")
	if looks < n || changes < n/2 {
		t.Errorf("%d looks, %d grants that began or ended", looks, changes)
	}
	t.Logf("%d rounds, killed: %v; the command looked %d times, and %d grants began or ended after it", n, counts, looks, changes)
}

// A disk that fills in the middle of a file: its own error, nothing half, the grant still held; the same command
// works once there is room.
func TestLandingOnAFullDisk(t *testing.T) {
	dir := smallMount(t, "size=1m")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, name := range []string{agentVariable, operatorVariable, sessionVariable, estateVariable} {
		t.Setenv(name, "")
	}
	must0(t, dir, "init")
	must0(t, dir, "grant", "create", "atlas", "--operator", "olga")
	must0(t, dir, "grant", "acquire", "atlas", "--agent", "ada")
	src := t.TempDir()
	data := bytes.Repeat([]byte("stile"), 400_000/5)
	for _, name := range []string{"big", "small"} {
		writeFile(t, filepath.Join(src, name), string(data))
		data = data[:1000]
	}
	fill(t, dir)
	ballast := filepath.Join(dir, "ballast")
	info, err := os.Stat(ballast)
	if err == nil {
		err = os.Truncate(ballast, info.Size()-200<<10) // room for half of it
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"grant", "land", "atlas", "--dir", src, "--agent", "ada", "--json"}
	r := start(t, dir, "stile", args...)
	r.exits(exitFailed)
	// Files are stored side by side, so the small one can be the one that meets the full disk.
	if s, _ := r.out.ReadString('\n'); !strings.Contains(s, `"code":"no_space"`) || !strings.Contains(s, "land big") && !strings.Contains(s, "land small") || strings.Contains(s, "held") {
		t.Errorf("%s", s)
	}
	artifacts := filepath.Join(dir, ".stile", "containers", "atlas", "objects", "artifacts")
	list, err := os.ReadDir(artifacts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(artifacts, e.Name()))
		if sum := sha256.Sum256(text); err != nil || fmt.Sprintf("%x", sum) != e.Name() {
			t.Errorf("half an object: %s, %v", e.Name(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".stile", "containers", "atlas", "pending")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if s := prints(t, dir, "grant", "status", "atlas", "--json"); !strings.Contains(s, `"state":"HELD"`) || !strings.Contains(s, `"seq":0`) {
		t.Errorf("%s", s)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	must0(t, dir, args...)
	must0(t, dir, "grant", "release", "atlas", "--agent", "ada")
	must0(t, dir, "grant", "history", "atlas", "--verify")
}
