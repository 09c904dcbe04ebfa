package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

// rounds is n, or at night what the case asks for.
func rounds(n, nightly int) int {
	if os.Getenv("STILE_NIGHTLY") != "" {
		return nightly
	}
	return n
}

// Case 30: sixteen processes claim one container at once; each time one of them has it.
func TestCase30SixteenProcessesClaim(t *testing.T) {
	dir := atlas(t)
	for round := range rounds(8, 200) {
		var all []*running
		for i := range 16 {
			r := start(t, dir, "stile", "grant", "acquire", "atlas", "--agent", fmt.Sprintf("agent-%d", i))
			_ = r.in.Close()
			all = append(all, r)
		}
		won := -1
		for i, r := range all {
			switch code := r.wait(); {
			case code == 0 && won < 0:
				won = i
			case code != exitProblem:
				t.Fatalf("round %d: agent %d ended with %d, agent %d has won: %s", round, i, code, won, r.stderr())
			}
		}
		if won < 0 {
			t.Fatalf("round %d: nobody won", round)
		}
		agent := fmt.Sprintf("agent-%d", won)
		must0(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", agent)
		must0(t, dir, "grant", "release", "atlas", "--agent", agent)
	}
	must0(t, dir, "grant", "history", "atlas", "--verify")
}

// Case 43: twenty workers take identifiers at once, and no two get the same; those of a grant that ended
// without a landing never come back.
func TestCase43Identifiers(t *testing.T) {
	dir := atlas(t)
	clock := filepath.Join(dir, "clock")
	t.Setenv(testClock, clock)
	taken := map[int64]string{}
	for _, lead := range []string{"ada", "bob"} {
		must0(t, dir, "grant", "acquire", "atlas", "--agent", lead)
		var workers []*running
		for i := range 20 {
			r := start(t, dir, "stile", "grant", "ids", "atlas", "3", "--agent", lead, "--worker", fmt.Sprintf("w%d", i), "--json")
			_ = r.in.Close()
			workers = append(workers, r)
		}
		for i, r := range workers {
			var got grantResult
			if text, err := r.out.ReadBytes('\n'); err != nil || json.Unmarshal(text, &got) != nil || got.Lease == nil {
				t.Fatalf("%s %d: %v, %s", lead, i, err, text)
			}
			r.exits(0)
			who := fmt.Sprintf("w%d of %s", i, lead)
			for id := got.Lease.Lo; id <= got.Lease.Hi; id++ {
				if taken[id] != "" {
					t.Errorf("%d is %s's and %s's", id, taken[id], who)
				}
				taken[id] = who
			}
		}
		if err := os.WriteFile(clock, []byte("5h"), 0o600); err != nil { // ada dies
			t.Fatal(err)
		}
	}
	if len(taken) != 120 {
		t.Errorf("%d identifiers", len(taken))
	}
	if code, _ := stileExit(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", "ada", "--ids", "1"); code != exitProblem {
		t.Errorf("a dead grant's identifier: exit code %d", code)
	}
	if code, err := stileExit(t, dir, "grant", "land", "atlas", "clock", "--agent", "bob", "--ids", "1"); code != exitProblem {
		t.Errorf("a dead grant's identifier under the next: exit code %d, %s", code, err)
	}
	must0(t, dir, "grant", "history", "atlas", "--verify")
}

// Case 40: a client is killed somewhere in a landing, and the same command is given again. With its id it has
// landed once; without, once too, unless its answer was out already.
func TestCase40KilledClient(t *testing.T) {
	dir := atlas(t)
	must0(t, dir, "grant", "acquire", "atlas", "--agent", "ada")
	if err := os.WriteFile(filepath.Join(dir, "map.svg"), []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	landed, found, told := int64(0), 0, 0
	n := rounds(30, 300)
	for i := range n {
		id := fmt.Sprintf("landing-%d", i)
		args := []string{"grant", "land", "atlas", "map.svg", "--agent", "ada", "--note", id}
		if i%2 == 0 {
			args = append(args, "--id", id)
		}
		r := start(t, dir, "stile", args...)
		<-time.After(time.Duration(i) * 12 * time.Millisecond / time.Duration(n)) // somewhere in it
		_ = r.cmd.Process.Kill()
		answer, err := io.ReadAll(r.out)
		if err != nil {
			t.Fatal(err)
		}
		if r.wait() == 0 {
			break // from here on it is over before it is killed
		}
		var again grantResult
		if err := json.Unmarshal([]byte(prints(t, dir, append(args, "--json")...)), &again); err != nil {
			t.Fatal(err)
		}
		var status containerStatus
		if err := json.Unmarshal([]byte(prints(t, dir, "grant", "status", "atlas", "--json")), &status); err != nil {
			t.Fatal(err)
		}
		came := status.Register.Seq - landed
		landed = status.Register.Seq
		switch {
		case came == 1 && again.Replayed:
			found++
		case came == 2 && i%2 == 1 && !again.Replayed && len(answer) > 0:
			told++
		case came != 1:
			t.Fatalf("round %d: %d landings came, replayed: %v", i, came, again.Replayed)
		}
	}
	t.Logf("%d landings, %d of them done by the killed client and found, %d of which it had told", landed, found, told)
	must0(t, dir, "grant", "land", "atlas", "map.svg", "--agent", "ada")
	must0(t, dir, "grant", "release", "atlas", "--agent", "ada")
	must0(t, dir, "grant", "history", "atlas", "--verify")
}

// A run whose wrapper is killed leaves its grant to expire; nobody else gets in before, and its session still
// proves it.
func TestGrantRunKilled(t *testing.T) {
	dir := atlas(t)
	r := start(t, dir, "stile", "grant", "run", "atlas", "--agent", "ada", "--", "stile", childVerb, "hold")
	r.line("in")
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	if code, _ := stileExit(t, dir, "grant", "run", "-n", "atlas", "--agent", "bob", "--", "true"); code != exitHeld {
		t.Errorf("exit code %d", code)
	}
	must0(t, dir, "grant", "heartbeat", "atlas", "--agent", "ada")
	must0(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", "ada")
	must0(t, dir, "grant", "release", "atlas", "--agent", "ada")
	must0(t, dir, "grant", "acquire", "atlas", "--agent", "bob")
}

// A run takes up its agent's grant again after a crash: not while the command of the killed run lives, and then
// under the same number.
func TestGrantRunTakenUp(t *testing.T) {
	dir := atlas(t)
	r := start(t, dir, "stile", "grant", "run", "atlas", "--agent", "ada", "--", "sh", "-c", "stile "+childVerb+" hold; : >ended")
	r.line("in")
	_ = r.cmd.Process.Kill()
	_, _ = r.cmd.Process.Wait()
	again := []string{"grant", "run", "-n", "atlas", "--agent", "ada", "--", "sh", "-c", "stile grant land atlas --empty none && echo $STILE_GRANT"}
	if code, said := stileExit(t, dir, again...); code != exitHeld || !strings.Contains(said, "HELD: a command runs under ada's grant 1 already") {
		t.Errorf("beside the first command: exit code %d: %s", code, said)
	}
	if got := prints(t, dir, "grant", "history", "atlas", "--json"); strings.Contains(got, `"op":"heartbeat"`) {
		t.Errorf("what was refused has changed something: %s", got)
	}
	_ = r.in.Close() // the first command ends, and with it its hold
	until(t, "the first command has ended", func() bool {
		_, err := os.Stat(filepath.Join(dir, "ended"))
		return err == nil
	})
	until(t, "its grant is taken up", func() bool {
		code, said := stileExit(t, dir, again...)
		return code == 0 || code == exitHeld && !strings.Contains(said, "a command runs under")
	})
	if got := prints(t, dir, "grant", "history", "atlas", "--json"); strings.Count(got, `"op":"acquire"`) != 1 || !strings.Contains(got, `"op":"release"`) {
		t.Errorf("%s", got)
	}
	must0(t, dir, "grant", "history", "atlas", "--verify")
}

// Of runs that one agent begins at once, one runs its command; the others are told of that, and not how to end it.
func TestGrantRunsOfOneAgent(t *testing.T) {
	dir := atlas(t)
	var all []*running
	for range 5 {
		all = append(all, start(t, dir, "stile", "grant", "run", "atlas", "--agent", "ada", "--", "stile", childVerb, "hold"))
	}
	first := make(chan *running, len(all))
	over := make(chan *running, len(all))
	for _, r := range all {
		go func() {
			if _, err := r.out.ReadBytes('\n'); err == nil {
				first <- r
			} else {
				over <- r
			}
		}()
	}
	for range len(all) - 1 {
		r := <-over
		if code := r.wait(); code != exitHeld || !strings.Contains(r.stderr(), "HELD: a command runs under ada's grant 1 already") {
			t.Errorf("exit code %d: %s", code, r.stderr())
		}
	}
	r := <-first
	_ = r.in.Close()
	r.exits(0)
}

// Runs that wait get in one after another, in the order of their petitions.
func TestGrantRunsInTurn(t *testing.T) {
	dir := atlas(t)
	must0(t, dir, "grant", "acquire", "atlas", "--agent", "first")
	var all []*running
	for i := range 6 {
		agent := fmt.Sprintf("agent-%d", i)
		all = append(all, start(t, dir, "stile", "grant", "run", "atlas", "--agent", agent, "--", "stile", "grant", "land", "atlas", "--empty", agent))
		until(t, agent+" waits", func() bool {
			var s containerStatus
			return json.Unmarshal([]byte(prints(t, dir, "grant", "status", "atlas", "--json")), &s) == nil && len(s.Queue) == i+1
		})
	}
	must0(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", "first")
	must0(t, dir, "grant", "release", "atlas", "--agent", "first")
	for _, r := range all {
		r.exits(0)
	}
	var history struct {
		Revisions []historyRow `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(prints(t, dir, "grant", "history", "atlas", "--json", "--verify")), &history); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range history.Revisions {
		if r.Op == grant.OpAcquire {
			order = append(order, r.By)
		}
	}
	if want := []string{"first", "agent-0", "agent-1", "agent-2", "agent-3", "agent-4", "agent-5"}; !slices.Equal(order, want) {
		t.Errorf("in the order %q", order)
	}
}

// A full disk is named as such, whether it is the estate's or the sessions', and what there was is whole.
func TestGrantOnAFullDisk(t *testing.T) {
	for _, full := range []string{"estate", "state"} {
		t.Run(full, func(t *testing.T) {
			dir, disk := atlas(t), smallMount(t, "size=512k")
			t.Setenv(map[string]string{"estate": estateVariable, "state": "XDG_STATE_HOME"}[full], filepath.Join(disk, "e"))
			if full == "estate" {
				must0(t, dir, "init")
				must0(t, dir, "grant", "create", "atlas", "--operator", "olga")
			} else {
				must0(t, dir, "grant", "petition", "atlas", "--agent", "zoe") // makes the folders
				must0(t, dir, "grant", "withdraw", "atlas", "--agent", "zoe")
			}
			fill(t, disk)
			before := prints(t, dir, "grant", "history", "atlas", "--json")
			code, said := stileExit(t, dir, "grant", "acquire", "atlas", "--agent", "ada")
			if code != exitFailed || !strings.Contains(said, "no space left") || !strings.Contains(said, "hint: free some space") || strings.Contains(strings.ToLower(said), "held") {
				t.Errorf("exit code %d: %s", code, said)
			}
			if code, said := stileExit(t, dir, "grant", "run", "-w", "0", "atlas", "--agent", "ada", "--", "true"); code != exitNoSpace {
				t.Errorf("run: exit code %d: %s", code, said)
			}
			if after := prints(t, dir, "grant", "history", "atlas", "--json"); after != before {
				t.Errorf("was %s\nis  %s", before, after)
			}
			if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
				t.Fatal(err)
			}
			must0(t, dir, "grant", "acquire", "atlas", "--agent", "ada")
			must0(t, dir, "grant", "history", "atlas", "--verify")
		})
	}
}

// Status of many containers reads each once, and writes nothing.
func TestStatusOfManyContainers(t *testing.T) {
	dir := atlas(t)
	for i := range 30 {
		must0(t, dir, "grant", "create", fmt.Sprintf("c%02d", i), "--operator", "olga")
	}
	if out, err := exec.Command("chmod", "-R", "a-w", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	defer func() { _ = exec.Command("chmod", "-R", "u+w", dir).Run() }()
	var list struct {
		Containers []containerRow `json:"containers"`
	}
	if err := json.Unmarshal([]byte(prints(t, dir, "grant", "status", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, c := range list.Containers {
		names = append(names, c.Name)
		if c.Badge != grant.BadgeFree {
			t.Errorf("%+v", c)
		}
	}
	if len(names) != 31 || !slices.IsSorted(names) {
		t.Errorf("%q", names)
	}
}
