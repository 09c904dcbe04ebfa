package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/kernlock"
	"golang.org/x/sys/unix"
)

// running is a process of a test, with its output line by line.
type running struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader
	err *os.File // a file: a pipe would be waited for as long as anybody has it
	// alone: it starts no other process. Where thousands are started in a test their pids come again, and
	// one that has ended must not be killed: by then it may be a stranger's.
	alone bool
}

// start starts a process in a session of its own, so that it has no terminal,
// with pipes that its end does not close.
func start(t *testing.T, dir, name string, args ...string) *running {
	t.Helper()
	return startWith(t, dir, func(*exec.Cmd) {}, name, args...)
}

// startWith is start with something else set for the process.
func startWith(t *testing.T, dir string, set func(*exec.Cmd), name string, args ...string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command(name, args...)}
	r.cmd.Dir = dir
	input, in := pipe(t)
	out, output := pipe(t)
	r.in, r.out = in, bufio.NewReader(out)
	var err error
	if r.err, err = os.CreateTemp(t.TempDir(), "stderr"); err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = input, output, r.err
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	set(r.cmd)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = input.Close()
	_ = output.Close()
	t.Cleanup(func() {
		if r.alone {
			_ = r.cmd.Process.Kill() // nothing, once it was waited for
		} else { // whatever is left of the session
			_ = unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL)
		}
		_ = in.Close()
		_ = out.Close()
		_ = r.err.Close()
	})
	return r
}

func (r *running) stderr() string {
	b, err := os.ReadFile(r.err.Name())
	if err != nil {
		r.t.Error(err)
	}
	return string(b)
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// line waits for one line of output, which must be want.
func (r *running) line(want string) {
	r.t.Helper()
	got, err := r.out.ReadString('\n')
	if strings.TrimSuffix(got, "\n") != want {
		r.t.Fatalf("%s printed %q (%v), want %q; stderr: %s", r.cmd.Args[0], got, err, want, r.stderr())
	}
}

func (r *running) signal(sig unix.Signal) {
	r.t.Helper()
	if err := unix.Kill(r.cmd.Process.Pid, sig); err != nil {
		r.t.Fatal(err)
	}
}

// wait gives the exit code.
func (r *running) wait() int {
	r.t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *running) exits(want int) {
	r.t.Helper()
	if got := r.wait(); got != want {
		r.t.Fatalf("exit code %d, want %d; stderr: %s", got, want, r.stderr())
	}
}

// stileExit runs stile to its end.
func stileExit(t *testing.T, dir string, args ...string) (code int, stderr string) {
	t.Helper()
	r := start(t, dir, "stile", args...)
	_ = r.in.Close()
	return r.wait(), r.stderr()
}

// ended waits until the process is gone or a corpse.
func ended(t *testing.T, pid int) {
	t.Helper()
	until(t, fmt.Sprintf("process %d ends", pid), func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		i := bytes.LastIndexByte(b, ')')
		return i < 0 || b[i+2] == 'Z' || b[i+2] == 'X'
	})
}

// until waits for a state that no event announces.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("it never came to pass that %s", what)
	}
}

func waiters(t *testing.T, file string, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d wait", n), func() bool {
		r, err := kernlock.Status(file, kernlock.Options{})
		return err == nil && r.Waiters == n
	})
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
