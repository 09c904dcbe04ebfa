//go:build unix && !aix && !solaris

package kernlock

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// systemModes are the child modes of this system.
func systemModes() map[string]func(*session) error {
	return map[string]func(*session) error{
		"spawn":  spawnMode,
		"starve": starveMode,
		"survey": surveyMode,
	}
}

type spawnArg struct {
	Target  string
	Options Options
	Inherit bool
}

// spawnMode takes the lock, starts a grandchild in mode idle, and lets go
// when it is told to. The grandchild has descriptor 3 as its input and speaks
// through this process's output; it may live longer.
func spawnMode(s *session) error {
	var arg spawnArg
	if err := s.options(&arg); err != nil {
		return err
	}
	l, err := Acquire(context.Background(), arg.Target, arg.Options)
	if err != nil {
		return err
	}
	if arg.Inherit {
		if err := l.Inherit(); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	unix.CloseOnExec(3)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childMode+"=idle")
	cmd.Stdin, cmd.Stdout = os.NewFile(3, "input"), os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := s.next()
	if err != nil {
		return nil //nolint:nilerr // the parent has gone
	}
	if line == "wait" { // until the grandchild has ended
		if err := cmd.Wait(); err != nil {
			return err
		}
		s.say("ended")
		if _, err := s.next(); err != nil {
			return nil //nolint:nilerr // as above
		}
	}
	err = l.Release()
	var still *StillHeldError
	switch {
	case err == nil:
		s.say("released")
	case errors.As(err, &still):
		b, jerr := json.Marshal(still.Processes)
		if jerr != nil {
			return jerr
		}
		s.say("still %d %s", cmd.Process.Pid, b)
		s.say("%v", err)
	default:
		s.say("error %v", err)
	}
	_, _ = s.next()
	return nil
}

// family is a child in mode spawn together with its grandchild.
type family struct {
	*child
	grand *os.File // the grandchild's input
}

func startFamily(t *testing.T, arg spawnArg) *family {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	f := &family{grand: w}
	f.child = startChild(t, "spawn", arg, func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{r} })
	must(t, r.Close())
	f.expect("up")
	return f
}

// tellGrand says a line to the grandchild, which repeats it.
func (f *family) tellGrand(line string) {
	f.t.Helper()
	if _, err := f.grand.WriteString(line + "\n"); err != nil {
		f.t.Fatal(err)
	}
}

// killParent ends the child alone, and returns when it is gone.
func (f *family) killParent() {
	f.t.Helper()
	must(f.t, f.cmd.Process.Kill())
	if _, err := f.cmd.Process.Wait(); err != nil {
		f.t.Fatal(err)
	}
}

// starveMode leaves itself no descriptors, tries the lock, and says what came
// of it.
func starveMode(s *session) error {
	var arg lockArg
	if err := s.options(&arg); err != nil {
		return err
	}
	h, err := Open(arg.Target, arg.Options)
	if err != nil {
		return err
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		return err
	}
	low := old
	low.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		return err
	}
	l, d, err := h.TryAcquire()
	_, lerr := h.Acquire(context.Background())
	if rerr := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); rerr != nil {
		return rerr
	}
	s.say("%v %v %v %v %s", l != nil, d != nil, errors.Is(err, unix.EMFILE), errors.Is(lerr, unix.EMFILE), kindOfError(err))
	// With room again, the same handle works.
	if l, _, err = h.TryAcquire(); err != nil {
		return err
	}
	return l.Release()
}

// surveyMode says what cannot be read below a folder.
func surveyMode(s *session) error {
	var arg lockArg
	if err := s.options(&arg); err != nil {
		return err
	}
	err := Survey(context.Background(), arg.Target, func(_ *Report, err error) error {
		if err != nil {
			s.say("error %v", err)
		}
		return nil
	})
	s.say("done")
	return err
}
