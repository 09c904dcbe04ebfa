//go:build unix

package robustness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

// childEnv makes this test binary run one of the children instead of tests.
const childEnv = "STILE_ROBUSTNESS_CHILD"

// children are the programs that the tests start. Each talks by lines: it
// says on standard output what it has done, and goes on when a line comes in.
var children = map[string]func(args []string) error{
	"hammer": hammer,
	"hold":   holdUntilTold,
	"wait":   acquireOnce,
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

// child is a started process and its two line streams.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startChild starts one of the children; it is killed when the test ends.
func startChild(t *testing.T, name string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	return start(t, cmd)
}

func start(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return c
}

// line is the child's next line, or "" when it has ended.
func (c *child) line() string {
	s, _ := c.out.ReadString('\n')
	return strings.TrimSuffix(s, "\n")
}

// expect fails the test unless the child's next line is want.
func (c *child) expect(want string) {
	c.t.Helper()
	if got := c.line(); got != want {
		c.t.Fatalf("child said %q, want %q", got, want)
	}
}

// tell sends the child a line.
func (c *child) tell(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, s+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// holdUntilTold acquires its target, says so, and releases on a line.
func holdUntilTold(args []string) error {
	l, err := kernlock.Acquire(context.Background(), args[0], kernlock.Options{Operation: "hold"})
	if err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := l.Release(); err != nil {
		return err
	}
	fmt.Println("released")
	return nil
}

// acquireOnce says that it begins to wait, and then what came of it.
func acquireOnce(args []string) error {
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	fmt.Println("waiting")
	l, err := kernlock.Acquire(context.Background(), args[0], kernlock.Options{Timeout: d})
	switch {
	case errors.Is(err, kernlock.ErrTimeout):
		fmt.Println("timeout")
		return nil
	case err != nil:
		return err
	}
	fmt.Println("acquired")
	return l.Release()
}

// mustBlock fails the test unless the waiters of target are as many as said:
// it asks the kernel until they are, so it needs no guess at how long a
// process takes to start waiting.
func mustBlock(t *testing.T, target string, waiters int) {
	t.Helper()
	for range 2000 {
		r, err := kernlock.Status(target, kernlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Waiters < 0 {
			t.Skip("needs the kernel's list of waiters: /proc/locks of the initial pid namespace")
		}
		if r.Waiters == waiters {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("never saw %d waiters on %s", waiters, target)
}
