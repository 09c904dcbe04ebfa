package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal with a process on it. Everything that is
// written to it is kept, and can be waited for.
type terminal struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	cond *sync.Cond
	all  bytes.Buffer
	read int // how much has been waited for
	done bool
}

func onTerminal(t *testing.T, dir, name string, args ...string) *terminal {
	t.Helper()
	x := &terminal{t: t, cmd: exec.Command(name, args...)}
	x.cond = sync.NewCond(&x.mu)
	x.cmd.Dir = dir
	x.cmd.Env = append(os.Environ(), "TERM=xterm", "PS1=$ ", "HISTFILE=/dev/null")
	tty, err := pty.StartWithSize(x.cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	x.tty = tty
	// A key that signals also throws away what was just written, at a time
	// that nobody can foresee.
	if tio, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err == nil {
		tio.Lflag |= unix.NOFLSH
		_ = unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, tio)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			x.mu.Lock()
			x.all.Write(b[:n])
			x.done = x.done || err != nil
			x.cond.Broadcast()
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = unix.Kill(-x.cmd.Process.Pid, unix.SIGKILL)
		_ = tty.Close()
	})
	return x
}

// expect waits until pattern comes after what was expected before, and gives
// its groups.
func (x *terminal) expect(pattern string) []string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	timer := time.AfterFunc(30*time.Second, func() { x.mu.Lock(); x.done = true; x.cond.Broadcast(); x.mu.Unlock() })
	defer timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		text := x.all.Bytes()[x.read:]
		if m := re.FindSubmatchIndex(text); m != nil {
			var groups []string
			for i := 0; i < len(m); i += 2 {
				groups = append(groups, string(text[m[i]:m[i+1]]))
			}
			x.read += m[1]
			return groups
		}
		if x.done {
			x.t.Fatalf("the terminal never showed %q, but:\n%q", pattern, text)
		}
		x.cond.Wait()
	}
}

func (x *terminal) types(s string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) exits(want int) {
	x.t.Helper()
	_ = x.cmd.Wait()
	if got := x.cmd.ProcessState.ExitCode(); got != want {
		x.t.Fatalf("exit code %d, want %d; the terminal showed %q", got, want, x.shown())
	}
}

func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

// The line while waiting: who, since when, how long; and nothing of it stays.
func TestWaitingLine(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, dir, "stile", "run", "--agent", "ann", "--operation", "mend", "f", "--", "stile", childVerb, "hold")
	holder.line("in")
	x := onTerminal(t, dir, "stile", "run", "-w", "60", "f", "--", "echo", "entered")
	x.expect(`\r(stile: waiting for f, held by ann \(pid \d+, mend\) since \d\d:\d\d:\d\d, \d+ s left)\x1b\[K`)
	_ = holder.in.Close()
	x.expect(`\r\x1b\[Kentered\r\n`)
	x.exits(0)
	holder.exits(0)
}

// A flock holder leaves no record: the line says so.
func TestWaitingLineHolderUnknown(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, dir, "flock", "f.lock", "stile", childVerb, "hold")
	holder.line("in")
	x := onTerminal(t, dir, "stile", "run", "-w", "60", "f", "--", "echo", "entered")
	x.expect(`\rstile: waiting for f, held by flock \(pid \d+\), which left no record, \d+ s left\x1b\[K`)
	x.types("\x03")
	x.expect(`\r\x1b\[K$`)
	x.exits(130)
	waiters(t, filepath.Join(dir, "f"), 0)
	_ = holder.in.Close()
	holder.exits(0)
}

// Without a terminal nothing is said while waiting, unless --verbose asks.
func TestNoWaitingLineWithoutTerminal(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
	holder.line("in")
	quiet := start(t, dir, "stile", "run", "-w", "60", "f", "true")
	loud := start(t, dir, "stile", "run", "-w", "60", "--verbose", "f", "true")
	until(t, "the verbose one tells", func() bool { return strings.Contains(loud.stderr(), "waiting for f, held by") })
	if s := quiet.stderr(); s != "" {
		t.Errorf("stderr: %q", s)
	}
	if strings.Contains(loud.stderr(), "\x1b") || strings.Contains(loud.stderr(), "\r") {
		t.Errorf("stderr: %q", loud.stderr())
	}
	_ = holder.in.Close()
	quiet.exits(0)
	loud.exits(0)
	if s := quiet.stderr(); s != "" {
		t.Errorf("stderr: %q", s)
	}
}

func TestReadUnderRun(t *testing.T) {
	x := onTerminal(t, t.TempDir(), "stile", "run", "f", "-c", `printf 'name? '; read name; echo "hello $name"; test -t 0 && test -t 1 && test -t 2`)
	x.expect(`name\? `)
	x.types("Ann\n")
	x.expect("hello Ann\r\n")
	x.exits(0)
}

// ^C reaches the command once, and run waits for what it makes of it.
func TestInterruptOnce(t *testing.T) {
	onceEach(t, onTerminal(t, t.TempDir(), "stile", "run", "f", "helper", "signals"))
}

// onceEach types keys that send signals, to a command that counts them.
func onceEach(t *testing.T, x *terminal) {
	t.Helper()
	x.expect("ready\r\n")
	for range 3 {
		x.types("\x03")
		x.expect("got SIGINT\r\n")
		// A signal that run passes on follows every other that it would have
		// passed on before.
		if err := unix.Kill(x.cmd.Process.Pid, unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		x.expect("got SIGUSR1\r\n")
	}
	x.types("\x1c")
	x.expect("got SIGQUIT\r\n")
	x.types("end\n")
	x.expect("\nend\r\n")
	x.exits(0)
	if n := strings.Count(x.shown(), "got SIGINT"); n != 3 {
		t.Errorf("%d SIGINTs for three ^C: %q", n, x.shown())
	}
	if n := strings.Count(x.shown(), "got SIGQUIT"); n != 1 {
		t.Errorf("%d SIGQUITs for one key: %q", n, x.shown())
	}
}

func TestInterruptEnds(t *testing.T) {
	dir := t.TempDir()
	x := onTerminal(t, dir, "stile", "run", "f", "-c", "echo on; exec sleep 60")
	x.expect("on\r\n")
	x.types("\x03")
	x.exits(130)
	if code, s := stileExit(t, dir, "run", "-n", "f", "true"); code != 0 {
		t.Errorf("still held: %d %s", code, s)
	}
	// The same under a shell, which must go on with its prompt.
	x = shell(t, dir)
	x.types("stile run f sleep 60\n")
	pid := childOf(t, x.cmd.Process.Pid)
	until(t, "the command runs", func() bool { return len(children(pid)) == 1 && name(children(pid)[0]) == "sleep" })
	x.types("\x03")
	x.expect(`\$ `)
	x.types("echo code=$?\n")
	x.expect(`code=130\r\n`)
	x.types("exit\n")
	x.exits(0)
}

func shell(t *testing.T, dir string) *terminal {
	t.Helper()
	x := onTerminal(t, dir, "bash", "--norc", "--noprofile", "-i")
	x.types("bind 'set enable-bracketed-paste off' 2>/dev/null; echo up-$((1+1))\n")
	x.expect(`up-2\r\n`)
	return x
}

// children are the direct children of pid.
func children(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(f)
			pids = append(pids, n)
		}
	}
	return pids
}

func name(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}

// childOf waits for the one child of pid that is stile.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	until(t, "stile runs", func() bool {
		for _, c := range children(pid) {
			if name(c) == "stile" {
				child = c
				return true
			}
		}
		return false
	})
	return child
}

// ^Z stops the command and run; fg continues both; nothing is left.
func TestStopAndContinue(t *testing.T) {
	dir := t.TempDir()
	x := shell(t, dir)
	for range 2 {
		x.types("stile run f -- helper signals\n")
		x.expect("ready\r\n")
		wrapper := childOf(t, x.cmd.Process.Pid)
		command := children(wrapper)[0]
		for range 3 {
			x.types("\x1a")
			x.expect(`Stopped`)
			x.expect(`\$ `)
			if w, c := procState(wrapper), procState(command); w != 'T' || c != 'T' {
				t.Fatalf("states after ^Z: run %c, command %c", w, c)
			}
			if code, _ := stileExit(t, dir, "run", "-n", "f", "true"); code != exitHeld {
				t.Fatalf("a stopped holder does not hold: %d", code)
			}
			x.types("fg\n")
			x.expect(`stile run f -- helper signals\r\n`)
			until(t, "both go on", func() bool { return procState(wrapper) != 'T' && procState(command) != 'T' })
		}
		x.types("\x03")
		x.expect("got SIGINT\r\n")
		x.types("end\n")
		x.expect("\nend\r\n")
		x.expect(`\$ `)
		x.types("echo code=$?\n")
		x.expect(`code=0\r\n`)
		ended(t, wrapper)
		ended(t, command)
	}
	// In the background it goes on by itself.
	x.types("stile run f sleep 60\n")
	wrapper := childOf(t, x.cmd.Process.Pid)
	until(t, "the command runs", func() bool { return len(children(wrapper)) == 1 && name(children(wrapper)[0]) == "sleep" })
	x.types("\x1a")
	x.expect(`Stopped`)
	x.types("bg\n")
	until(t, "both go on", func() bool { return procState(wrapper) != 'T' && procState(children(wrapper)[0]) != 'T' })
	command := children(wrapper)[0]
	x.types("kill %1; wait; echo code=$?\n")
	x.expect(`code=\d+\r\n`)
	ended(t, wrapper)
	ended(t, command)
	x.types("exit\n")
	x.exits(0)
	onlyFiles(t, dir, "f.lock")
}

// A full-screen program keeps the terminal: its keys, its ^Z, its screen.
func TestEditorUnderRun(t *testing.T) {
	dir := t.TempDir()
	x := shell(t, dir)
	x.types("stty -a > before; stile run f -- helper editor\n")
	x.expect(`\x1b\[\?1049heditor`)
	x.types("a")
	x.expect(`<a>`)
	for range 3 {
		x.types("\x1a")
		x.expect(`\x1b\[\?1049l`)
		x.expect(`Stopped`)
		x.expect(`\$ `)
		x.types("echo shell-$((2+2))\n")
		x.expect(`shell-4\r\n`)
		x.types("fg\n")
		x.expect(`\x1b\[\?1049heditoragain`)
		x.types("b")
		x.expect(`<b>`)
	}
	x.types("\x03") // a key like any other in raw mode
	x.expect("<\x03>")
	x.types("q")
	x.expect(`\x1b\[\?1049l.*bye\r\n`)
	x.expect(`\$ `)
	x.types("stty -a > after; cmp before after && echo same-$((3+3))\n")
	x.expect(`same-6\r\n`)
	x.types("exit\n")
	x.exits(0)
}

// ^Z while waiting stops the waiter, and fg lets it wait on.
func TestStopWhileWaiting(t *testing.T) {
	dir := t.TempDir()
	holder := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
	holder.line("in")
	x := shell(t, dir)
	x.types("stile run -w 60 f echo entered\n")
	waiters(t, filepath.Join(dir, "f"), 1)
	wrapper := childOf(t, x.cmd.Process.Pid)
	x.types("\x1a")
	x.expect(`Stopped`)
	until(t, "the waiter stops", func() bool { return procState(wrapper) == 'T' })
	x.types("fg\n")
	until(t, "the waiter goes on", func() bool { return procState(wrapper) != 'T' })
	_ = holder.in.Close()
	x.expect(`entered\r\n`)
	holder.exits(0)
	x.types("exit\n")
	x.exits(0)
}

// A command that ignores ^Z keeps the terminal, and run with it.
func TestCommandIgnoresStop(t *testing.T) {
	x := shell(t, t.TempDir())
	x.types(`stile run f -- bash -c 'trap "" TSTP; echo ready; read line; echo got $line'` + "\n")
	x.expect("ready\r\n")
	wrapper := childOf(t, x.cmd.Process.Pid)
	until(t, "run ignores it too", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", wrapper))
		_, rest, _ := strings.Cut(string(b), "SigIgn:\t")
		mask, _ := strconv.ParseUint(strings.SplitN(rest, "\n", 2)[0], 16, 64)
		return mask&(1<<(unix.SIGTSTP-1)) != 0
	})
	x.types("\x1ahere\n")
	x.expect("got here\r\n")
	x.types("exit\n")
	x.exits(0)
}
