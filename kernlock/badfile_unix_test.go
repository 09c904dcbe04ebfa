//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// oddFiles put something under a name that is no plain file of its own. Each
// returns a path whose bytes must stay "victim\n", or "".
var oddFiles = map[string]func(t *testing.T, path string) string{
	"link to a file": func(t *testing.T, path string) string {
		victim := path + "-victim"
		writeFile(t, victim, []byte("victim\n"))
		must(t, os.Symlink(victim, path))
		return victim
	},
	"link to an empty file": func(t *testing.T, path string) string {
		writeFile(t, path+"-empty", nil)
		must(t, os.Symlink(path+"-empty", path))
		return ""
	},
	"dangling link": func(t *testing.T, path string) string {
		must(t, os.Symlink(path+"-nothing", path))
		t.Cleanup(func() {
			if _, err := os.Lstat(path + "-nothing"); err == nil {
				t.Error("a file was made through a dangling link")
			}
		})
		return ""
	},
	"link to itself": func(t *testing.T, path string) string {
		must(t, os.Symlink(path, path))
		return ""
	},
	"hard link": func(t *testing.T, path string) string {
		victim := path + "-victim"
		writeFile(t, victim, []byte("victim\n"))
		must(t, os.Link(victim, path))
		return victim
	},
	"FIFO": func(t *testing.T, path string) string {
		must(t, unix.Mkfifo(path, 0o600))
		return ""
	},
	"folder": func(t *testing.T, path string) string {
		must(t, os.Mkdir(path, 0o700))
		return ""
	},
	"socket": func(t *testing.T, path string) string {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Skip("no sockets: ", err)
		}
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
		return ""
	},
	"device": func(t *testing.T, path string) string {
		if err := exec.Command("mknod", path, "c", "1", "3").Run(); err != nil {
			t.Skip("may not make a device: ", err)
		}
		return ""
	},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shortDir is a folder whose path fits into the address of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "k") //nolint:usetesting // T.TempDir is too long
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestOddLockFileIsRefused is case 24.
func TestOddLockFileIsRefused(t *testing.T) {
	for name, put := range oddFiles {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(shortDir(t), "t")
			lock := target + ".lock"
			victim := put(t, lock)
			before, err := os.Lstat(lock)
			must(t, err)
			for _, o := range []Options{{}, {Shared: true}, {Policy: SingleFlight}} {
				l, d, err := TryAcquire(target, o)
				if !errors.Is(err, ErrBadLockFile) || l != nil || d != nil {
					t.Errorf("%+v: %v, %v, %v; want ErrBadLockFile", o, l, d, err)
				}
				for _, not := range []error{ErrHeld, ErrTimeout, ErrUnsupported} {
					if errors.Is(err, not) {
						t.Errorf("%v matches %v", err, not)
					}
				}
			}
			if r, err := Status(target, Options{}); err == nil && name != "hard link" {
				t.Errorf("status: %+v", r)
			} else if err != nil && !errors.Is(err, ErrBadLockFile) {
				t.Errorf("status: %v", err)
			}
			after, err := os.Lstat(lock)
			must(t, err)
			if after.Mode() != before.Mode() || !os.SameFile(before, after) {
				t.Errorf("mode was %v, is %v", before.Mode(), after.Mode())
			}
			if victim != "" {
				if b := readFile(t, victim); string(b) != "victim\n" {
					t.Errorf("what it leads to is %q", b)
				}
			}
		})
	}
}

// TestWeakness02OddIncidentsFileDelaysNothing covers the FIFO, and whatever
// else may lie under the name of the incidents file.
func TestWeakness02OddIncidentsFileDelaysNothing(t *testing.T) {
	for name, put := range oddFiles {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(shortDir(t), "t")
			n, err := resolve(target, false)
			must(t, err)
			l := mustAcquire(t, target, Options{Agent: "holder"})
			victim := put(t, n.incidents())
			before, err := os.Lstat(n.incidents())
			must(t, err)
			e := mustTimeOut(t, target, Options{})
			if e.RecordErr == nil || errors.Is(e, e.RecordErr) { // a timeout is none of the system's errors
				t.Errorf("recorded: %v", e.RecordErr)
			} else {
				safeText(t, "record error", e.RecordErr.Error())
			}
			if e.Incident.Holder == nil || e.Incident.Holder.AgentID != "holder" || e.Channel != "t.lock.incidents.jsonl" {
				t.Errorf("%+v in %s", e.Incident, e.Channel)
			}
			if log, err := Incidents(target, Options{}); err == nil && len(log.Rows) > 0 {
				t.Errorf("rows: %+v", log)
			}
			if _, err := Status(target, Options{}); err != nil {
				t.Errorf("status: %v", err)
			}
			after, err := os.Lstat(n.incidents())
			must(t, err)
			if after.Mode() != before.Mode() || !os.SameFile(before, after) {
				t.Errorf("mode was %v, is %v", before.Mode(), after.Mode())
			}
			if victim != "" {
				if b := readFile(t, victim); string(b) != "victim\n" {
					t.Errorf("what it leads to is %q", b)
				}
			}
			mustRelease(t, l)
		})
	}
}

func TestWeakness14TargetNotUTF8(t *testing.T) {
	target := filepath.Join(t.TempDir(), "t\xff\x1b[2Jx\n")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Skip("this filesystem takes no such names: ", err)
	}
	l := mustAcquire(t, target, Options{})
	if l.Target() != target || l.LockPath() != target+".lock" || l.Warning() != nil {
		t.Errorf("%q, %q, %v", l.Target(), l.LockPath(), l.Warning())
	}
	e := mustTimeOut(t, target, Options{})
	safeText(t, "timeout", e.Error())
	if e.RecordErr != nil || e.Incident.LockID != l.LockID() {
		t.Errorf("%+v", e)
	}
	for _, o := range []Options{{Policy: SingleFlight}} {
		_, err := Acquire(t.Context(), target, o)
		if !errors.Is(err, ErrHeld) {
			t.Errorf("%v", err)
		}
		safeText(t, "held", err.Error())
	}
	mustRelease(t, l)
	safeText(t, "lost", l.Fence().Error())

	log, err := Incidents(target, Options{})
	if err != nil || len(log.Rows) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
	// Other ways to fail over such a name.
	for what, path := range map[string]string{
		"no folder": filepath.Join(target+"gone", "x"), "too long": target + strings.Repeat("x", 250), "NUL": target + "\x00",
	} {
		_, err := Open(path, Options{})
		if err == nil {
			t.Errorf("%s: opened", what)
			continue
		}
		safeText(t, what, err.Error())
	}
}

func TestMissingFolderAndLongName(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "no", "t"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "no")); err == nil {
		t.Error("the folder was made")
	}
	// The longest name is that of the full incidents file.
	room := maxName - len(lockSuffix+incidentsSuffix+rotatedSuffix)
	mustRelease(t, mustAcquire(t, filepath.Join(dir, strings.Repeat("x", room)), Options{}))
	if _, err := Open(filepath.Join(dir, strings.Repeat("x", room+1)), Options{}); !errors.Is(err, ErrNameTooLong) {
		t.Errorf("one byte more: %v", err)
	}
	for _, target := range []string{"", "/", "a\x00b"} {
		if _, err := Open(target, Options{}); !errors.Is(err, ErrUsage) {
			t.Errorf("target %q: %v", target, err)
		}
	}
}
