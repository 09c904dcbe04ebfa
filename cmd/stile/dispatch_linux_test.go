package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// newEstateIn makes an estate in dir, with a dispatch of ada.
func newEstateIn(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init"}, {"dispatch", "open", "--agent", "ada", "--task", "first"}} {
		if code, s := stileExit(t, dir, args...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, s)
		}
	}
}

// Where nothing can be written everything can be read, and changing something says so by its name.
func TestDispatchReadOnly(t *testing.T) {
	dir := smallMount(t, "size=256k")
	newEstateIn(t, dir)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount is not permitted here: %v", err)
	}
	for _, args := range []string{"dispatch list", "dispatch list --json", "board show", "board show --markdown", "board check", "board check --json",
		"board check --hook-envelope", "status", "status --json", "init", "dispatch unlock", "dispatch unlock --agent ada"} {
		if code, s := stileExit(t, dir, strings.Fields(args)...); code != 0 || s != "" {
			t.Errorf("%s: exit %d: %s", args, code, s)
		}
	}
	for _, args := range []string{"dispatch open --agent ada --task x", "dispatch open --agent new --task x"} {
		r := start(t, dir, "stile", append(strings.Fields(args), "--json")...)
		r.exits(exitFailed)
		if s, _ := r.out.ReadString('\n'); !strings.Contains(s, `"code":"read_only_filesystem"`) {
			t.Errorf("%s: %s", args, s)
		}
	}
}

// No room is not "held", and leaves nothing half written: not in the log, and not beside it.
func TestDispatchOnAFullDisk(t *testing.T) {
	dir := smallMount(t, "size=256k")
	newEstateIn(t, dir)
	agent := filepath.Join(dir, ".stile", "agents", "ada")
	log, err := os.ReadFile(filepath.Join(agent, "spawn-log.json"))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir)
	r := start(t, dir, "stile", "dispatch", "open", "--json", "--agent", "ada", "--task", strings.Repeat("x", 8<<10))
	r.exits(exitFailed)
	if s, _ := r.out.ReadString('\n'); !strings.Contains(s, `"code":"no_space"`) {
		t.Errorf("it says %s", s)
	}
	fileHolds(t, filepath.Join(agent, "spawn-log.json"), string(log))
	onlyFiles(t, agent, "board", "spawn-log.json")
	onlyFiles(t, filepath.Join(agent, "board"), "board.json")
}

// A follower is shown what is opened and closed, in logs that are there and in those that come, and ends
// with the signal that it gets.
func TestDispatchFollow(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	r := start(t, dir, "stile", "dispatch", "list", "--follow", "--json")
	next := func() (row dispatchRow) {
		t.Helper()
		s, err := r.out.ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(s), &row)
		}
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		return row
	}
	first := next()
	if first.Task != "first" || first.Status != "open" {
		t.Fatalf("first it shows %+v", first)
	}
	for i := range 20 {
		agent := []string{"ada", "bob"}[i%2]
		task := fmt.Sprint("job ", i)
		if code, s := stileExit(t, dir, "dispatch", "open", "--agent", agent, "--task", task); code != 0 {
			t.Fatal(s)
		}
		if row := next(); row.Task != task || row.Agent != agent {
			t.Fatalf("%s of %s shows as %+v", task, agent, row)
		}
	}
	if code, s := stileExit(t, dir, "dispatch", "close", first.ID, "--status", "failed"); code != 0 {
		t.Fatal(s)
	}
	if row := next(); row.ID != first.ID || row.Status != "failed" || row.Task != "first" {
		t.Errorf("the close shows as %+v", row)
	}
	r.signal(unix.SIGINT)
	r.exits(128 + int(unix.SIGINT))
	if r.stderr() != "" {
		t.Errorf("stderr: %s", r.stderr())
	}
}

// A follower whose reader goes away ends, although it has nothing to write.
func TestFollowEndsWithItsReader(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	if code, s := stileExit(t, dir, "run", "f", "true"); code != 0 {
		t.Fatal(s)
	}
	for _, args := range [][]string{{"dispatch", "list", "-f"}, {"incidents", "-f", "f"}} {
		cmd := exec.Command("stile", args...)
		cmd.Dir = dir
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if args[0] == "dispatch" {
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		_ = out.Close()
		_ = cmd.Wait()
		ws, ok := cmd.ProcessState.Sys().(interface{ Signaled() bool })
		if code := cmd.ProcessState.ExitCode(); code != 128+int(unix.SIGPIPE) && !(ok && ws.Signaled()) || stderr.Len() > 0 {
			t.Errorf("%v: exit %d: %s", args, code, &stderr)
		}
	}
}

// Incidents are followed in a file's channel, and in a folder's channels as they come.
func TestIncidentsFollow(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
	holder.line("in")
	fail := func() {
		t.Helper()
		if code, s := stileExit(t, dir, "run", "-w", "0", "f", "true"); code != exitHeld {
			t.Fatalf("exit %d: %s", code, s)
		}
	}
	fail()
	for _, path := range []string{"f", "."} {
		r := start(t, dir, "stile", "incidents", "--follow", "--json", "-n", "1", path)
		for i := range 10 {
			s, err := r.out.ReadString('\n')
			if err != nil || !strings.Contains(s, `"schema_version":"file_lock_incident_v0"`) {
				t.Fatalf("%s, row %d: %q, %v", path, i, s, err)
			}
			fail()
		}
		if _, err := r.out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		r.signal(unix.SIGTERM)
		r.exits(128 + int(unix.SIGTERM))
		if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
			t.Errorf("a row was shown twice: %s", rest)
		}
	}
	_ = holder.in.Close()
	holder.exits(0)
}

// A log of 100,000 dispatches is listed and shown in little memory.
func TestLongLogNeedsLittleMemory(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	f, err := os.Create(filepath.Join(dir, ".stile", "agents", "ada", "spawn-log.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	sep := "[\n  "
	for i := range 100000 {
		fmt.Fprintf(w, `%s{"v":1,"id":"id-%06d","agent":"ada","task":"%s","opened_at":"2026-11-30T10:00:00.000Z","opened_by":{"pid":1,"host":"desk"},"status":"open"}`,
			sep, i, strings.Repeat("task ", 30))
		sep = ",\n  "
	}
	fmt.Fprint(w, "\n]\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for args, lines := range map[string]int{
		"dispatch list": 100001, "dispatch list --json": 100000, "dispatch list -n 5": 6, "dispatch show id-099999": 8, "dispatch close id-099998 --status done": 1,
	} {
		cmd := exec.Command("helper", append([]string{"peak", "stile"}, strings.Fields(args)...)...)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var peak int
		if n, serr := fmt.Sscanf(stderr.String(), "peak %d", &peak); err != nil || n != 1 || serr != nil || bytes.Count(out, []byte("\n")) != lines {
			t.Errorf("%s: %d lines, %v: %s", args, bytes.Count(out, []byte("\n")), err, &stderr)
			continue
		}
		t.Logf("%s: %d KiB", args, peak)
		if peak > 64<<10 {
			t.Errorf("%s: %d KiB resident", args, peak)
		}
	}
}

// A signal ends the wait for the lock with its own exit code, and nothing of it stays.
func TestDispatchSignalWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	agent := filepath.Join(dir, ".stile", "agents", "ada")
	log, err := os.ReadFile(filepath.Join(agent, "spawn-log.json"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(agent, "spawn-log.json.lock"), `{"pid":1,"hostname":"elsewhere","token":"0123456789abcdef01234567","acquiredAt":"2026-11-30T10:00:00.000Z"}`)
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		r := start(t, dir, "stile", "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "600")
		until(t, "it waits", func() bool {
			fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.cmd.Process.Pid))
			return slices.ContainsFunc(fds, func(fd string) bool {
				to, _ := os.Readlink(fd)
				return strings.Contains(to, "inotify")
			})
		})
		r.signal(sig)
		r.exits(128 + int(sig))
		if r.stderr() != "" {
			t.Errorf("stderr: %s", r.stderr())
		}
		onlyFiles(t, agent, "board", "spawn-log.json", "spawn-log.json.lock")
	}
	fileHolds(t, filepath.Join(agent, "spawn-log.json"), string(log))
}

// Eight processes meet a dead holder's lock: every one of them is done, and nothing is lost or left.
func TestDispatchFromEightProcesses(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	agent := filepath.Join(dir, ".stile", "agents", "ada")
	ids := map[string]bool{}
	for range 5 {
		script := `sh -c 'printf "{\"pid\":%d,\"hostname\":\"%s\",\"token\":\"0123456789abcdef01234567\",\"acquiredAt\":\"2026-11-30T10:00:00.000Z\"}" $$ "$(uname -n)"'`
		if err := inShell(dir, script+" >"+filepath.Join(agent, "spawn-log.json.lock")); err != nil {
			t.Fatal(err)
		}
		var all []*running
		for i := range 8 {
			all = append(all, start(t, dir, "stile", "dispatch", "open", "--agent", "ada", "--task", fmt.Sprint("job ", i)))
		}
		for _, r := range all {
			id, err := r.out.ReadString('\n')
			if r.exits(0); err != nil || ids[id] {
				t.Errorf("id %q, %v: %s", id, err, r.stderr())
			}
			ids[id] = true
		}
	}
	if code, s := stileExit(t, dir, "board", "check"); code != 0 {
		t.Error(s)
	}
	text, err := os.ReadFile(filepath.Join(agent, "spawn-log.json"))
	if err != nil || bytes.Count(text, []byte(`"id":`)) != len(ids)+1 {
		t.Errorf("%d dispatches, %v", bytes.Count(text, []byte(`"id":`)), err)
	}
	onlyFiles(t, agent, "board", "spawn-log.json")
}

// A kill at any moment loses no dispatch that was acknowledged, and check says where board and log differ.
func TestDispatchKilled(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	ids := regexp.MustCompile(`(?m)^[0-9A-Z]{26}$`)
	var acknowledged []string
	for i := range rounds {
		r := start(t, dir, "bash", "-c", "while stile dispatch open --agent ada --task x; do :; done")
		for range i % 4 {
			s, err := r.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			acknowledged = append(acknowledged, ids.FindString(s))
		}
		if err := unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL); err != nil { // the loop and what it runs
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(r.out)
		acknowledged = append(acknowledged, ids.FindAllString(string(rest), -1)...)
		_ = r.wait()
	}
	agent := filepath.Join(dir, ".stile", "agents", "ada")
	until(t, "the next writers sweep what the dead ones left", func() bool { // the last may still be on its way out
		if code, s := stileExit(t, dir, "dispatch", "open", "--agent", "ada", "--task", "last"); code != 0 {
			t.Fatal(s)
		}
		log, lerr := os.ReadDir(agent)
		board, berr := os.ReadDir(filepath.Join(agent, "board"))
		return lerr == nil && berr == nil && len(log) == 2 && len(board) == 1
	})
	if code, s := stileExit(t, dir, "board", "repair", "--agent", "ada"); code != 0 {
		t.Fatal(s)
	}
	if code, s := stileExit(t, dir, "board", "check"); code != 0 {
		t.Fatal(s)
	}
	text, err := os.ReadFile(filepath.Join(dir, ".stile", "agents", "ada", "spawn-log.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range acknowledged {
		if n := strings.Count(string(text), `"id":"`+id+`"`); n != 1 {
			t.Errorf("acknowledged %s is there %d times", id, n)
		}
	}
	onlyFiles(t, agent, "board", "spawn-log.json")
	onlyFiles(t, filepath.Join(agent, "board"), "board.json")
}

// With the longest agent and host, the hook's text stays in its bound and begins with the held lock; every
// command that is shown names the whole agent.
func TestHookEnvelopeBounds(t *testing.T) {
	dir := t.TempDir()
	newEstateIn(t, dir)
	agent := strings.Repeat("a", 240)
	if code, s := stileExit(t, dir, "dispatch", "open", "--agent", agent, "--task", "x"); code != 0 {
		t.Fatal(s)
	}
	folder := filepath.Join(dir, ".stile", "agents", agent)
	lock := filepath.Join(folder, "spawn-log.json.lock")
	writeFile(t, lock, fmt.Sprintf(`{"pid":4194304,"hostname":"%s","token":"0123456789abcdef01234567","acquiredAt":"2026-11-30T10:00:00.000Z"}`, strings.Repeat("h", 255)))
	writeFile(t, filepath.Join(folder, "board", "board.json"), `{"items":[]}`)
	if err := inShell(dir, "touch -d '1 hour ago' "+lock); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir, "stile", "board", "check", "--hook-envelope")
	r.exits(0)
	var got struct {
		Output struct {
			Event   string `json:"hookEventName"`
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	text, err := io.ReadAll(r.out)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	said := got.Output.Context
	if err != nil || got.Output.Event != "SessionStart" || len([]rune(said)) > 360 ||
		!strings.HasPrefix(said, "stile dispatch unlock: lock held by pid 4194304 on "+strings.Repeat("h", 29)+"... (on another host) for ") ||
		!strings.Contains(said, "; add --force only once the holder's process is gone or stuck, never while it is still running") {
		t.Errorf("%d characters, %v: %s", len([]rune(said)), err, text)
	}
	r = start(t, dir, "stile", "board", "check")
	r.exits(2)
	if text, _ := io.ReadAll(r.out); !strings.Contains(string(text), "is not on the board: stile board repair --agent "+agent+"\n") {
		t.Errorf("check says %s", text)
	}
	for _, args := range []string{"dispatch open --task x -w 0", "dispatch unlock", "board repair -w 0"} {
		code, s := stileExit(t, dir, append(strings.Fields(args), "--agent", agent)...)
		if code != 2 || !strings.Contains(s, "stile dispatch unlock --force --agent "+agent) {
			t.Errorf("%s: exit %d: %s", args, code, s)
		}
	}
}
