package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stile-lock/stile/kernlock"
	"golang.org/x/sys/unix"
)

// Case 14: what a command leaves behind holds the lock, and run and status
// say who it is; with -o it does not.
func TestCase14LeftBehind(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, "stile", "run", "f", "--", "helper", "leave", "ready")
	r.exits(0)
	pid := readPID(t, filepath.Join(dir, "ready.pid"))
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	if s := r.stderr(); !strings.Contains(s, fmt.Sprint(pid)) || !strings.Contains(s, "helper") || !strings.Contains(s, "-o") {
		t.Errorf("run does not name pid %d and -o: %s", pid, s)
	}
	if code, _ := stileExit(t, dir, "run", "-n", "f", "true"); code != exitHeld {
		t.Errorf("the lock is not held: exit %d", code)
	}
	report, err := kernlock.Status(filepath.Join(dir, "f"), kernlock.Options{})
	if err != nil || report.Kernel != kernlock.KernelHeld {
		t.Errorf("status says %+v, %v", report, err)
	}
	record, err := os.ReadFile(filepath.Join(dir, "f.lock"))
	if err != nil || bytes.Contains(record, []byte("released_at")) {
		t.Errorf("the record says it was let go: %s %v", record, err)
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	if code, s := stileExit(t, dir, "run", "f", "true"); code != 0 {
		t.Errorf("the lock outlives what held it: exit %d %s", code, s)
	}

	// JSON, and an exit code that stays the command's.
	r = start(t, dir, "stile", "run", "--json", "f", "--", "sh", "-c", "helper leave again; exit 4")
	r.exits(4)
	again := readPID(t, filepath.Join(dir, "again.pid"))
	defer func() { _ = unix.Kill(again, unix.SIGKILL) }()
	if s := r.stderr(); !strings.Contains(s, `"code":"still_held"`) {
		t.Errorf("stderr: %s", s)
	}
	_ = unix.Kill(again, unix.SIGKILL)

	r = start(t, dir, "stile", "run", "-o", "f", "--", "helper", "leave", "third")
	r.exits(0)
	third := readPID(t, filepath.Join(dir, "third.pid"))
	defer func() { _ = unix.Kill(third, unix.SIGKILL) }()
	if r.stderr() != "" {
		t.Errorf("stderr: %s", r.stderr())
	}
	if code, s := stileExit(t, dir, "run", "-n", "f", "true"); code != 0 {
		t.Errorf("with -o the lock is held: exit %d %s", code, s)
	}
}

// Case 15: the wrapper is killed while its command runs.
func TestCase15WrapperKilled(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
	r.line("in")
	r.signal(unix.SIGKILL)
	if r.wait() != -1 {
		t.Fatal("the wrapper was not killed")
	}
	if code, _ := stileExit(t, dir, "run", "-n", "f", "true"); code != exitHeld {
		t.Fatalf("somebody got in beside a running command: exit %d", code)
	}
	next := start(t, dir, "stile", "run", "-w", "60", "f", "--", "echo", "entered")
	waiters(t, filepath.Join(dir, "f"), 1)
	status := start(t, dir, "stile", "status", "f")
	said, _ := io.ReadAll(status.out)
	if !bytes.Contains(said, []byte("waiters      1\n")) {
		t.Errorf("status does not tell of the waiter: %s", said)
	}
	_ = r.in.Close()
	next.line("entered")
	next.exits(0)
}

// Case 16: a child that closes the inherited descriptor frees nothing.
func TestCase16ChildCloses(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, "stile", "run", "f", "--", "bash", "-c",
		`for fd in /proc/self/fd/*; do n=${fd##*/}; ((n > 2)) && eval "exec $n>&-"; done; echo in; read line`)
	r.line("in")
	if code, _ := stileExit(t, dir, "run", "-n", "f", "true"); code != exitHeld {
		t.Errorf("the wrapper does not hold: exit %d", code)
	}
	_ = r.in.Close()
	r.exits(1)
}

// Case 18: signals while waiting and while holding.
func TestCase18SignalWhileWaiting(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			dir := t.TempDir()
			f := filepath.Join(dir, "f")
			holder := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
			holder.line("in")
			r := start(t, dir, "stile", "run", "-w", "60", "f", "true")
			waiters(t, f, 1)
			r.signal(sig)
			r.exits(128 + int(sig))
			if r.stderr() != "" {
				t.Errorf("stderr: %q", r.stderr())
			}
			waiters(t, f, 0)
			onlyFiles(t, dir, "f.lock")
			_ = holder.in.Close()
			holder.exits(0)
		})
	}
}

func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestCase18SignalWhileHolding(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, dir, "stile", "run", "f", "--", "helper", "signals")
			r.line("ready")
			r.signal(sig)
			r.line("got " + unix.SignalName(sig))
			_ = r.in.Close()
			r.line("end")
			r.exits(0)

			if sig == unix.SIGUSR1 || sig == unix.SIGUSR2 {
				return
			}
			r = start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
			r.line("in")
			r.signal(sig)
			// A Go program dies of SIGQUIT with exit 2, of others by signal.
			if sig == unix.SIGQUIT {
				r.exits(2)
			} else {
				r.exits(128 + int(sig))
			}
			if code, s := stileExit(t, dir, "run", "-n", "f", "true"); code != 0 {
				t.Errorf("the lock is still held: %d %s", code, s)
			}
		})
	}
}

// What was ignored when stile started is ignored by its command.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, "bash", "-c",
		`trap "" HUP INT; exec stile run f -- bash -c 'grep SigIgn /proc/self/status; echo ready; read line; echo $line'`)
	ign, _ := r.out.ReadString('\n')
	mask, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(ign, "SigIgn:")), 16, 64)
	if err != nil || mask&3 != 3 {
		t.Errorf("the command ignores %q", ign)
	}
	r.line("ready")
	r.signal(unix.SIGHUP)
	r.signal(unix.SIGINT)
	fmt.Fprintln(r.in, "still here")
	r.line("still here")
	r.exits(0)
}

// A stopped command without a terminal is somebody's experiment: the wrapper
// runs on, and a SIGCONT that it gets reaches the command.
func TestStopWithoutTerminal(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, "stile", "run", "f", "--", "bash", "-c", "echo $$; read line; echo $line")
	first, _ := r.out.ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(pid, unix.SIGSTOP)
	until(t, "the command stops", func() bool { return procState(pid) == 'T' })
	fmt.Fprintln(r.in, "went on")
	// The wrapper learns of the stop by itself; SIGCONT may come before.
	until(t, "the command goes on", func() bool {
		r.signal(unix.SIGCONT)
		return procState(pid) != 'T'
	})
	r.line("went on")
	r.exits(0)
	if s := procState(r.cmd.Process.Pid); s == 'T' {
		t.Error("the wrapper is stopped")
	}
}

func procState(pid int) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	if i := bytes.LastIndexByte(b, ')'); i >= 0 && i+2 < len(b) {
		return b[i+2]
	}
	return 0
}

// Descriptors that the caller hands down reach the command under their own
// numbers, and the lock's does not get in their way.
func TestDescriptorsPassThrough(t *testing.T) {
	dir := t.TempDir()
	for _, flags := range []string{"", "-o", "-F"} {
		for _, fd := range []int{3, 4, 9, 200} {
			script := fmt.Sprintf("exec %d<<<'by hand'; exec stile run %s f helper fd %d", fd, flags, fd)
			out, err := exec.Command("bash", "-c", "cd "+dir+"; "+script).CombinedOutput()
			if err != nil || string(out) != "by hand\n" {
				t.Errorf("%s: %q, %v", script, out, err)
			}
		}
	}
}

// The lock is inherited without -o, and not with it.
func TestInheritance(t *testing.T) {
	dir := t.TempDir()
	for flags, want := range map[string]bool{"": true, "-o": false, "-F": true} {
		out, err := exec.Command("bash", "-c", "cd "+dir+"; stile run "+flags+" f -- bash -c 'ls -l /proc/$$/fd'").Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(out, []byte("f.lock")); got != want {
			t.Errorf("with %q the command has the lock: %v", flags, got)
		}
	}
}

// flock(1) and stile exclude each other, both ways.
func TestInteropFlock(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock(1) here")
	}
	dir := t.TempDir()
	f := start(t, dir, "flock", "f.lock", "stile", childVerb, "hold")
	f.line("in")
	if code, s := stileExit(t, dir, "run", "-n", "f", "true"); code != exitHeld {
		t.Errorf("stile got in beside flock: exit %d %s", code, s)
	}
	code, s := stileExit(t, dir, "run", "-w", "0", "f", "true")
	if code != exitHeld || !strings.Contains(s, "timed out") {
		t.Errorf("exit %d %s", code, s)
	}
	_ = f.in.Close()
	f.exits(0)

	for _, tt := range []struct{ run, flock []string }{
		{[]string{"run", "f", "--"}, []string{"-n", "f.lock", "true"}},
		{[]string{"run", "--exact", "exact", "--"}, []string{"-n", "exact", "true"}},
	} {
		r := start(t, dir, "stile", append(tt.run, "stile", childVerb, "hold")...)
		r.line("in")
		cmd := exec.Command("flock", tt.flock...)
		cmd.Dir = dir
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("flock %v got in beside stile %v: %v", tt.flock, tt.run, err)
		}
		_ = r.in.Close()
		r.exits(0)
		cmd = exec.Command("flock", tt.flock...)
		cmd.Dir = dir
		if err := cmd.Run(); err != nil {
			t.Errorf("flock %v after stile: %v", tt.flock, err)
		}
	}
	// And shared holders share.
	r := start(t, dir, "stile", "run", "-s", "f", "--", "stile", childVerb, "hold")
	r.line("in")
	for flags, want := range map[string]int{"-sn": 0, "-xn": 1} {
		cmd := exec.Command("flock", flags, "f.lock", "true")
		cmd.Dir = dir
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("flock %s beside a shared holder: exit %d, want %d", flags, got, want)
		}
	}
	_ = r.in.Close()
	r.exits(0)
}

// Nobody gets in twice: real processes under run log when they enter and
// leave, and no two of them overlap.
func TestMutualExclusion(t *testing.T) {
	dir := t.TempDir()
	var all []*running
	for i := range 8 {
		all = append(all, start(t, dir, "bash", "-c", fmt.Sprintf(
			`for i in 1 2 3 4 5; do stile run -w 60 f -- bash -c 'echo + %d >> log; echo - %[1]d >> log' || exit; done`, i)))
	}
	for _, r := range all {
		r.exits(0)
	}
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 8*5*2 {
		t.Fatalf("%d lines", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		if lines[i][0] != '+' || lines[i+1] != "-"+lines[i][1:] {
			t.Fatalf("lines %d: %q, %q overlap", i, lines[i], lines[i+1])
		}
	}
}

// Two commands that want two locks in opposite order never wait for each other.
func TestCanonicalOrder(t *testing.T) {
	dir := t.TempDir()
	var all []*running
	for i := range 4 {
		targets := "a b"
		if i%2 == 1 {
			targets = "b a"
		}
		all = append(all, start(t, dir, "bash", "-c",
			"for i in 1 2 3 4 5 6 7 8; do stile run -w 60 "+targets+" -- true || exit; done"))
	}
	for _, r := range all {
		r.exits(0)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.lock.incidents.jsonl")); err == nil {
		t.Error("somebody timed out")
	}
}
