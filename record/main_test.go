package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

// childEnv makes this test binary one of the children instead of tests.
const childEnv = "STILE_RECORD_CHILD"

// children are the processes that the tests start. Each says by lines what it has done.
var children = map[string]func(args []string) error{
	"increment": childIncrement,
	"killed":    childKilled,
	"append":    childAppend,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, name string, args ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0], args...)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+name)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	must(t, err)
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.in, c.out = in, bufio.NewReader(out)
	must(t, c.cmd.Start())
	t.Cleanup(func() { c.cmd.Process.Kill(); c.cmd.Wait() })
	return c
}

// expect fails the test unless the child's next line is want.
func (c *child) expect(want string) {
	c.t.Helper()
	line, _ := c.out.ReadString('\n')
	if got := strings.TrimSuffix(line, "\n"); got != want {
		c.t.Fatalf("the child said %q, want %q", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// holds checks a file's content.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if got := get(t, path); got != want {
		t.Fatalf("the file holds %q, want %q", got, want)
	}
}

// only checks that nothing but these names is in the folder.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Fatalf("the folder has %q, want %q", names, want)
	}
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// locks are the two families, as tests name them, and what each leaves in the folder.
var locks = []struct {
	name   string
	lock   Lock
	leaves []string
}{
	{"kernel lock", KernelLock(kernlock.Options{Timeout: time.Minute}), []string{"f.lock"}},
	{"lock file", LockFile(lockfile.Options{NoSync: true, Timeout: time.Minute}), nil},
}

// actor is options that make lock files believe this process to be pid.
func actor(pid int64, fsys vfs.FS, onStep func(seam.Step)) UpdateOptions {
	self := proc.Holder{PID: pid, Host: "here"}
	s := &seam.Set{
		FS:      fsys,
		Process: seam.NewProcess(func() proc.Holder { return self }, func() string { return proc.HostTagFor("here", nil) }, true),
		Judge: func(proc.Holder, string) proc.Judgement {
			return proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
		},
		OnStep: onStep,
	}
	return UpdateOptions{
		Lock:   LockFile(lockfile.Options{Timeout: time.Minute, NoSync: true, Seams: s}),
		NoSync: true, Seams: s,
	}
}

// forceAway removes the lock of path as an operator does.
func forceAway(t *testing.T, path string, o UpdateOptions) {
	t.Helper()
	got, err := lockfile.Unlock(t.Context(), path, lockfile.UnlockOptions{Force: true, Seams: o.Seams})
	must(t, err)
	if !got.Removed {
		t.Fatal("there was no lock to remove")
	}
}

// fakeLock is a lock of this process alone, whose fences a test can decide.
type fakeLock struct {
	mu       sync.Mutex
	timeout  time.Duration
	fence    func() error
	acquired []time.Duration // the waits allowed
}

func (l *fakeLock) Timeout() time.Duration              { return l.timeout }
func (l *fakeLock) Resolve(path string) (string, error) { return filepath.Clean(path), nil }

func (l *fakeLock) Acquire(_ context.Context, _ string, wait time.Duration) (Hold, error) {
	l.mu.Lock()
	l.acquired = append(l.acquired, wait)
	return &fakeHold{l}, nil
}

type fakeHold struct{ l *fakeLock }

func (h *fakeHold) Release() error { h.l.mu.Unlock(); return nil }

func (h *fakeHold) Fence() error {
	if h.l.fence == nil {
		return nil
	}
	return h.l.fence()
}

// stepClock is a clock that a test moves.
type stepClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stepClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *stepClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error { c.move(d); return ctx.Err() }

// deadWhen is a judge for whom some pids of this host are dead.
func deadWhen(dead func(pid int64) bool, other func(proc.Holder, string) proc.Judgement) func(proc.Holder, string) proc.Judgement {
	return func(h proc.Holder, near string) proc.Judgement {
		if dead(h.PID) {
			return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
		}
		return other(h, near)
	}
}

// add is a change that adds text.
func add(text string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) { return append(old, text...), nil }
}

func isNotThere(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is there (%v)", path, err)
	}
}
