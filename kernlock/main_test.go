package kernlock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The test binary is its own second process: with childMode in its
// environment it runs that mode instead of the tests. Parent and child speak
// in lines, so that a test waits for what has happened and never for a while.

const (
	childMode = "STILE_TEST_CHILD"
	childArg  = "STILE_TEST_ARG"

	// childPatience ends a test that hangs; no test that passes waits for it.
	childPatience = 20 * time.Second
)

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		_ = os.Unsetenv("STILE_AGENT")
		_ = os.Unsetenv("LOOPX_AGENT_ID")
		os.Exit(m.Run())
	}
	modes := map[string]func(*session) error{
		"hold":     holdMode,
		"try":      tryMode,
		"status":   statusMode,
		"idle":     idleMode,
		"contend":  contendMode,
		"timeouts": timeoutsMode,
	}
	maps.Copy(modes, systemModes())
	run, ok := modes[mode]
	if !ok {
		fmt.Fprintf(os.Stderr, "no child mode %q, only %q\n", mode, slices.Sorted(maps.Keys(modes)))
		os.Exit(3)
	}
	s := &session{in: bufio.NewReader(os.Stdin), arg: []byte(os.Getenv(childArg))}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// session is a child's end of the talk.
type session struct {
	in  *bufio.Reader
	arg []byte
}

// options decodes what the parent gave, into v.
func (s *session) options(v any) error { return json.Unmarshal(s.arg, v) }

// say writes one line to the parent. A line break within stays visible as
// what it is, a control character, to a test that looks for such.
func (s *session) say(format string, args ...any) {
	fmt.Println(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\v"))
}

// next waits for a line; it is io.EOF when the parent has gone.
func (s *session) next() (string, error) {
	line, err := s.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

// lockArg is what the modes that lock are given.
type lockArg struct {
	Target  string
	Options Options
}

// holdMode takes the lock, says "held", and lets go when it is told to. An
// error is said as "error <text>".
func holdMode(s *session) error {
	var arg lockArg
	if err := s.options(&arg); err != nil {
		return err
	}
	l, err := Acquire(context.Background(), arg.Target, arg.Options)
	if err != nil {
		s.say("error %v", err)
		return nil
	}
	s.say("held")
	if _, err := s.next(); err != nil {
		return nil //nolint:nilerr // the parent has gone
	}
	if err := l.Release(); err != nil {
		s.say("error %v", err)
		return nil
	}
	s.say("released")
	return nil
}

// tryMode tries once: "held", "duplicate <JSON>" or "error <kind> <text>".
func tryMode(s *session) error {
	var arg lockArg
	if err := s.options(&arg); err != nil {
		return err
	}
	l, d, err := TryAcquire(arg.Target, arg.Options)
	switch {
	case err != nil:
		s.say("error %s %v", kindOfError(err), err)
	case d != nil:
		b, err := json.Marshal(d)
		if err != nil {
			return err
		}
		s.say("duplicate %s", b)
	default:
		s.say("held")
		return l.Release()
	}
	return nil
}

// statusMode says the Report as JSON.
func statusMode(s *session) error {
	var arg lockArg
	if err := s.options(&arg); err != nil {
		return err
	}
	r, err := Status(arg.Target, arg.Options)
	if err != nil {
		s.say("error %s %v", kindOfError(err), err)
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.say("%s", b)
	return nil
}

// idleMode says "up", repeats what it is told, and ends with its parent.
func idleMode(s *session) error {
	s.say("up")
	for {
		line, err := s.next()
		if err != nil || line == "end" {
			return nil //nolint:nilerr // the parent has gone
		}
		s.say("%s", line)
	}
}

// contendMode is told a target, tries it once and says "held" or
// "duplicate"; after another line it lets go and says "done".
func contendMode(s *session) error {
	for {
		target, err := s.next()
		if err != nil {
			return nil //nolint:nilerr // the parent has gone
		}
		l, d, err := TryAcquire(target, Options{})
		switch {
		case err != nil:
			s.say("error %v", err)
		case d != nil:
			s.say("duplicate")
		default:
			s.say("held")
		}
		if _, err := s.next(); err != nil {
			return nil //nolint:nilerr // as above
		}
		if l != nil {
			if err := l.Release(); err != nil {
				return err
			}
		}
		s.say("done")
	}
}

// timeoutsMode lets several waits run out, one after the other.
func timeoutsMode(s *session) error {
	var arg timeoutsArg
	if err := s.options(&arg); err != nil {
		return err
	}
	s.say("ready")
	if _, err := s.next(); err != nil {
		return nil //nolint:nilerr // the parent has gone
	}
	for range arg.Count {
		_, err := Acquire(context.Background(), arg.Target, Options{Agent: arg.Name, Timeout: TryOnce})
		var e *TimeoutError
		if !errors.As(err, &e) || e.RecordErr != nil {
			s.say("error %v, %v", err, errors.Unwrap(err))
			return nil //nolint:nilerr // it was said
		}
	}
	s.say("done")
	return nil
}

// kindOfError names the first sentinel that err matches.
func kindOfError(err error) string {
	for _, k := range []struct {
		name   string
		target error
	}{
		{"timeout", ErrTimeout}, {"held", ErrHeld}, {"usage", ErrUsage}, {"reentrant", ErrReentrant},
		{"lost", ErrLost}, {"bad_lock_file", ErrBadLockFile}, {"other_family", ErrOtherFamily},
		{"name_too_long", ErrNameTooLong}, {"unsupported", ErrUnsupported}, {"still_held", ErrStillHeld},
		{"closed", ErrClosed}, {"permission", os.ErrPermission},
	} {
		if errors.Is(err, k.target) {
			return k.name
		}
	}
	return "other"
}

// child is a parent's end of the talk.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	errs  *strings.Builder
	guard *time.Timer
	ended bool
}

// startChild runs this binary in the given mode. arg reaches it as JSON; each
// of change may alter the command before it starts. The child is killed when
// the test ends.
func startChild(t *testing.T, mode string, arg any, change ...func(*exec.Cmd)) *child {
	t.Helper()
	c, err := launchChild(t, mode, arg, change...)
	if err != nil {
		t.Fatalf("start child %s: %v", mode, err)
	}
	return c
}

// launchChild is startChild for a test that can do without the child.
func launchChild(t *testing.T, mode string, arg any, change ...func(*exec.Cmd)) (*child, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(arg)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	// Under the race detector a process lingers for a second unless told not to.
	cmd.Env = append(os.Environ(), childMode+"="+mode, childArg+"="+string(b), "GORACE=atexit_sleep_ms=0")
	c := &child{t: t, cmd: cmd, errs: &strings.Builder{}}
	cmd.Stderr = c.errs
	for _, f := range change {
		f(cmd)
	}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.guard = time.AfterFunc(childPatience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(c.kill)
	return c, nil
}

// hear returns the child's next line.
func (c *child) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.kill()
		c.t.Fatalf("child ended: %v; it said %q and on stderr %q", err, line, c.errs)
	}
	return strings.TrimSpace(line)
}

// expect fails the test unless the child's next line is want.
func (c *child) expect(want string) {
	c.t.Helper()
	if got := c.hear(); got != want {
		c.t.Fatalf("child said %q, want %q", got, want)
	}
}

// tell sends a line.
func (c *child) tell(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatalf("tell child %q: %v", line, err)
	}
}

// kill ends the child by SIGKILL and returns when it is gone.
func (c *child) kill() {
	if c.ended {
		return
	}
	c.ended = true
	_ = c.cmd.Process.Kill()
	_ = c.in.Close()
	_ = c.cmd.Wait()
	c.guard.Stop()
}

// finish waits for the child to end by itself, without error.
func (c *child) finish() {
	c.t.Helper()
	_ = c.in.Close()
	rest, _ := io.ReadAll(c.out)
	c.ended = true
	err := c.cmd.Wait()
	c.guard.Stop()
	if err != nil || len(rest) > 0 {
		c.t.Fatalf("child: %v; unread %q; stderr %q", err, rest, c.errs)
	}
}
