//go:build unix && !aix && !solaris

package kernlock

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	ann, bob, stranger = 61001, 61002, 65534 // users
	team               = 61100               // ann's and bob's group
)

// openDir is a folder that everybody may use, and a copy of this binary that
// everybody may run.
func openDir(t *testing.T) (dir, exe string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a child as another user")
	}
	dir, err := os.MkdirTemp("", "kernlock") //nolint:usetesting // T.TempDir lies in a folder of root's alone
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	self, err := os.Executable()
	must(t, err)
	from, err := os.Open(self)
	must(t, err)
	defer func() { _ = from.Close() }()
	exe = filepath.Join(dir, "exe")
	to, err := os.OpenFile(exe, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, err)
	must(t, to.Close())
	return dir, exe
}

// as runs a child as another user, of a first group and others.
func as(exe string, uid, gid uint32, groups ...uint32) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args = exe, []string{exe}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: groups}}
	}
}

// mode checks owner, group and permissions of a file.
func checkMode(t *testing.T, path string, uid, gid, mode uint32) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	if st.Uid != uid || st.Gid != gid || uint32(st.Mode)&0o7777 != mode {
		t.Errorf("%s: %d:%d %o, want %d:%d %o", filepath.Base(path), st.Uid, st.Gid, st.Mode&0o7777, uid, gid, mode)
	}
}

func giveFile(t *testing.T, path string, uid, gid int, mode os.FileMode) {
	t.Helper()
	writeFile(t, path, nil)
	must(t, os.Chown(path, uid, gid))
	must(t, os.Chmod(path, mode))
}

// try says what a child gets, without the text of an error or a duplicate.
func try(t *testing.T, target string, o Options, how func(*exec.Cmd)) string {
	t.Helper()
	c := startChild(t, "try", lockArg{Target: target, Options: o}, how)
	got := strings.Fields(c.hear())
	c.finish()
	if got[0] == "error" {
		return got[0] + " " + got[1]
	}
	return got[0]
}

func TestReadersShareAndMayNotExclude(t *testing.T) {
	dir, exe := openDir(t)
	target := filepath.Join(dir, "target")
	giveFile(t, target, 0, 0, 0o644)
	l := mustAcquire(t, target, Options{})
	checkMode(t, l.LockPath(), 0, 0, 0o644)
	reader := as(exe, stranger, stranger)
	for want, o := range map[string]Options{"error permission": {}, "duplicate": {Shared: true}} {
		if got := try(t, target, o, reader); got != want {
			t.Errorf("while held, %+v: %q, want %q", o, got, want)
		}
	}
	mustRelease(t, l)
	for want, o := range map[string]Options{"error permission": {}, "held": {Shared: true}} {
		if got := try(t, target, o, reader); got != want {
			t.Errorf("while free, %+v: %q, want %q", o, got, want)
		}
	}
	c := startChild(t, "hold", lockArg{Target: target, Options: Options{Shared: true}}, reader)
	c.expect("held")
	if l, d, err := TryAcquire(target, Options{}); d == nil {
		t.Errorf("a writer beside a reader: %v, %v", l, err)
	}
	c.tell("release")
	c.expect("released")
	c.finish()
}

// TestGroupSharesALock is case 32.
func TestGroupSharesALock(t *testing.T) {
	dir, exe := openDir(t)
	for name, owner := range map[string]int{"of root": 0, "of ann": ann, "of bob": bob} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			giveFile(t, target, owner, team, 0o660)
			n, err := resolve(target, false)
			must(t, err)
			a := startChild(t, "hold", lockArg{Target: target, Options: Options{Agent: "ann"}}, as(exe, ann, ann, team))
			a.expect("held")
			checkMode(t, n.lock, ann, team, 0o660)
			if got := try(t, target, Options{}, as(exe, bob, bob, team)); got != "duplicate" {
				t.Errorf("bob while ann holds: %s", got)
			}
			if got := try(t, target, Options{}, as(exe, stranger, stranger)); got != "error permission" {
				t.Errorf("a stranger while ann holds: %s", got)
			}
			// Both may add to the incidents.
			for i, uid := range []uint32{bob, ann} {
				c := startChild(t, "timeouts", timeoutsArg{target, "x", 1}, as(exe, uid, uid, team))
				c.expect("ready")
				c.tell("go")
				c.expect("done")
				c.finish()
				if log, err := Incidents(target, Options{}); err != nil || len(log.Rows) != i+1 {
					t.Errorf("%+v, %v", log, err)
				}
			}
			checkMode(t, n.incidents(), bob, team, 0o660)
			a.tell("release")
			a.expect("released")
			a.finish()
			for want, how := range map[string]func(*exec.Cmd){
				"held": as(exe, bob, bob, team), "error permission": as(exe, stranger, stranger),
			} {
				if got := try(t, target, Options{}, how); got != want {
					t.Errorf("after ann: %s, want %s", got, want)
				}
			}
			if r := statusNow(t, &n); r.Liveness != Released || r.Holder.AgentID != "unknown" {
				t.Errorf("bob's record: %+v", r.Holder)
			}
		})
	}
}

func TestRootGivesALockToTheFilesOwner(t *testing.T) {
	dir, exe := openDir(t)
	target := filepath.Join(dir, "target")
	giveFile(t, target, ann, team, 0o600)
	l := mustAcquire(t, target, Options{})
	checkMode(t, l.LockPath(), ann, team, 0o600)
	e := mustTimeOut(t, target, Options{})
	must(t, e.RecordErr)
	checkMode(t, l.LockPath()+incidentsSuffix, ann, team, 0o600)
	mustRelease(t, l)
	if got := try(t, target, Options{}, as(exe, ann, ann)); got != "held" {
		t.Errorf("its owner: %s", got)
	}
	if got := try(t, target, Options{}, as(exe, bob, team)); got != "error permission" {
		t.Errorf("another: %s", got)
	}
}

// TestModeFollowsTheTarget: whatever the umask, and also when the target is
// made under the lock.
func TestModeFollowsTheTarget(t *testing.T) {
	dir := t.TempDir()
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	for _, mode := range []uint32{0o600, 0o640, 0o664, 0o666, 0o755, 0o700} {
		target := filepath.Join(dir, "t"+string(rune('a'+mode%26)))
		_ = os.Remove(target)
		_ = os.Remove(target + ".lock")
		l := mustAcquire(t, target, Options{})
		checkMode(t, l.LockPath(), uid, gid, 0o600)
		writeFile(t, target, nil)
		must(t, os.Chmod(target, os.FileMode(mode)))
		mustRelease(t, l)
		checkMode(t, l.LockPath(), uid, gid, mode&0o666)
		// Later changes are followed by the next who opens it.
		must(t, os.Chmod(target, 0o644))
		mustRelease(t, mustAcquire(t, target, Options{}))
		checkMode(t, l.LockPath(), uid, gid, 0o644)
	}
	// What is not ours keeps its mode.
	target := filepath.Join(dir, "yarn")
	writeFile(t, target, nil)
	must(t, os.WriteFile(target+".lock", []byte("# yarn lockfile v1\n"), 0o600))
	must(t, os.Chmod(target+".lock", 0o640))
	mustRelease(t, mustAcquire(t, target, Options{}))
	checkMode(t, target+".lock", uid, gid, 0o640)
	// So does a named file that is no lock file's name.
	exact := filepath.Join(dir, "exact")
	must(t, os.WriteFile(exact, nil, 0o600))
	must(t, os.Chmod(exact, 0o604))
	mustRelease(t, mustAcquire(t, exact, Options{Exact: true}))
	checkMode(t, exact, uid, gid, 0o604)
	if b := readFile(t, exact); len(b) != 0 {
		t.Errorf("a record was written into %q", b)
	}
}

// TestSurveyOfWhatMayNotBeRead: its errors are as safe to show as others.
func TestSurveyOfWhatMayNotBeRead(t *testing.T) {
	dir, exe := openDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "closed\x1b[2J"), 0o700))
	giveFile(t, filepath.Join(dir, "secret\n.lock"), 0, 0, 0o600)
	c := startChild(t, "survey", lockArg{Target: dir}, as(exe, stranger, stranger))
	for range 2 {
		got := c.hear()
		if !strings.HasPrefix(got, "error ") || !strings.Contains(got, "permission denied") {
			t.Errorf("%q", got)
		}
		safeText(t, "survey", got)
	}
	c.expect("done")
	c.finish()
}
