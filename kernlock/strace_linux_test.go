package kernlock

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// strace runs a child under strace(1) with the given arguments. The system
// calls that it traced are in the file that it returns.
func strace(t *testing.T, args ...string) (log string, how func(*exec.Cmd)) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	log = filepath.Join(t.TempDir(), "strace")
	probe := append([]string{"-f", "-qq", "-o", log}, args...)
	if out, err := exec.Command("strace", append(probe, "true")...).CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, out)
	}
	return log, under(append([]string{"strace"}, probe...)...)
}

func TestWeakness19NoFsync(t *testing.T) {
	log, traced := strace(t, "-e", "trace=flock,pwrite64,write,fsync,fdatasync,sync,syncfs,sync_file_range,msync,openat")
	n := newTarget(t)
	for range 2 {
		c := startChild(t, "hold", lockArg{Target: n.target}, traced)
		c.expect("held")
		_ = mustTimeOut(t, n.target, Options{})
		c.tell("release")
		c.expect("released")
		c.finish()
		b := readFile(t, log)
		if !bytes.Contains(b, []byte("flock(")) || !bytes.Contains(b, []byte("pwrite64(")) {
			t.Fatalf("no hold was traced: %s", b)
		}
		if bytes.Contains(b, []byte("sync(")) || bytes.Contains(b, []byte("sync_file_range(")) {
			t.Errorf("%s", b)
		}
		for line := range bytes.Lines(b) {
			if bytes.Contains(line, []byte(n.lock)) && bytes.Contains(line, []byte("SYNC")) {
				t.Errorf("opened to write through: %s", line)
			}
		}
	}
	// A timeout and its incident, too.
	l := mustAcquire(t, n.target, Options{})
	c := startChild(t, "timeouts", timeoutsArg{n.target, "x", 2}, traced)
	c.expect("ready")
	c.tell("go")
	c.expect("done")
	c.finish()
	if b := readFile(t, log); !bytes.Contains(b, []byte("incidents.jsonl")) || bytes.Contains(b, []byte("sync(")) {
		t.Errorf("%s", b)
	}
	mustRelease(t, l)
}

// TestErrorsByTheirOwnName are cases 21 and 23: what the system refuses is
// neither a held lock nor a free one.
func TestErrorsByTheirOwnName(t *testing.T) {
	for _, c := range []struct{ inject, kind, text string }{
		{"flock:error=ENOLCK", "other", "no locks available"},
		{"flock:error=EOPNOTSUPP", "unsupported", "operation not supported"},
		{"flock:error=ENOSYS", "unsupported", "not implemented"},
		{"flock:error=EINVAL", "unsupported", "invalid argument"},
		{"flock:error=EIO", "other", "input/output error"},
		{"openat:error=ENFILE", "other", "too many open files in system"},
		{"openat:error=EMFILE", "other", "too many open files"},
		{"openat:error=ENOSPC", "other", "no space left on device"},
		{"openat:error=EDQUOT", "other", "quota exceeded"},
		{"openat:error=EROFS", "other", "read-only file system"},
		{"openat:error=EACCES", "permission", "permission denied"},
		{"openat:error=EPERM", "permission", "operation not permitted"},
		{"openat:error=EIO", "other", "input/output error"},
		{"openat:error=ENAMETOOLONG", "name_too_long", "file name too long"},
		{"pread64:error=EIO", "other", "input/output error"},
	} {
		t.Run(c.inject, func(t *testing.T) {
			n := newTarget(t)
			// Somebody's file stands there, so that it is looked into.
			writeFile(t, n.lock, []byte(plainRecord))
			call, _, _ := strings.Cut(c.inject, ":")
			_, traced := strace(t, "-P", n.lock, "-e", "trace="+call, "-e", "inject="+c.inject)
			child := startChild(t, "try", lockArg{Target: n.target}, traced)
			got := child.hear()
			child.finish()
			if !strings.HasPrefix(got, "error "+c.kind+" ") || !strings.Contains(got, c.text) {
				t.Errorf("%q; want error %s … %s", got, c.kind, c.text)
			}
			safeText(t, "error", got)
			if string(readFile(t, n.lock)) != plainRecord {
				t.Error("the lock file was changed")
			}
			mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
		})
	}
}

func TestErrorsWhileWaiting(t *testing.T) {
	for _, c := range []struct{ inject, text string }{
		{"flock:error=ENOLCK:when=2+", "no locks available"},
		{"flock:error=EOPNOTSUPP:when=2+", "not supported here"},
	} {
		t.Run(c.inject, func(t *testing.T) {
			n := newTarget(t)
			l := mustAcquire(t, n.target, Options{})
			_, traced := strace(t, "-P", n.lock, "-e", "trace=flock", "-e", "inject="+c.inject)
			child := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Timeout: time.Hour}}, traced)
			if got := child.hear(); !strings.HasPrefix(got, "error ") || !strings.Contains(got, c.text) || strings.Contains(got, "timed out") {
				t.Errorf("%q; want %q", got, c.text)
			}
			child.finish()
			if _, err := os.Lstat(n.incidents()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("an incident was written: %v", err)
			}
			mustRelease(t, l)
		})
	}
}

// TestSystemCallsThatPass: what these calls answer must not cost the lock.
func TestSystemCallsThatPass(t *testing.T) {
	for _, c := range []struct {
		inject string
		blocks bool // the waiter still waits in flock, where the kernel shows it
	}{
		{"flock:error=EINTR:when=1", true}, // a signal
		{"openat:error=EINTR:when=1", true},
		{"pwrite64:error=EIO", true}, // the record cannot be written
		{"pwrite64:error=EINTR:when=1", true},
		{"fchmod:error=EPERM", true},    // nor the mode be set
		{"fstatfs:error=ENOSYS", false}, // no telling the filesystem
		{"fcntl:error=EINVAL", true},    // no queue
		{"fcntl:error=ENOLCK", true},
	} {
		t.Run(c.inject, func(t *testing.T) {
			call, _, _ := strings.Cut(c.inject, ":")
			n := newTarget(t)
			_, traced := strace(t, "-P", n.lock, "-e", "trace="+call, "-e", "inject="+c.inject)
			l := mustAcquire(t, n.target, Options{})
			child := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Timeout: time.Hour}}, traced)
			if c.blocks {
				eventually(t, func() bool { return statusNow(t, n).Waiters != 0 })
			}
			mustRelease(t, l)
			child.expect("held")
			_ = mustTimeOut(t, n.target, Options{})
			child.tell("release")
			child.expect("released")
			child.finish()
			mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
		})
	}
}

func TestOutOfDescriptors(t *testing.T) {
	n := newTarget(t)
	c := startChild(t, "starve", lockArg{Target: n.target})
	// no lock, no duplicate, EMFILE from both
	c.expect("false false true true other")
	c.finish()
}

// under runs the child's command by way of another program.
func under(program ...string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		path, err := exec.LookPath(program[0])
		if err != nil {
			cmd.Err = err
			return
		}
		cmd.Args = append(slices.Clone(program), cmd.Path)
		cmd.Path = path
	}
}
