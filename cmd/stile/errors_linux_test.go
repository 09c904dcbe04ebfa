package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallMount mounts a tmpfs of a few pages, or skips by name.
func smallMount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mount is not permitted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// Case 20: no room for the lock file is 73, said so, and nothing is left. A
// record that finds no room is no reason to refuse the lock.
func TestCase20DiskFull(t *testing.T) {
	dir := smallMount(t, "size=64k,nr_inodes=3")
	fill(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, s := stileExit(t, dir, "run", "--json", "f", "true")
	if code != exitNoSpace || !strings.Contains(s, `"code":"no_space"`) || strings.Contains(s, "held") {
		t.Errorf("exit %d: %s", code, s)
	}
	onlyFiles(t, dir, "ballast", "f")

	dir = smallMount(t, "size=64k")
	fill(t, dir)
	if code, s := stileExit(t, dir, "run", "f", "true"); code != 0 {
		t.Errorf("no room for the record: exit %d: %s", code, s)
	}
	if code, s := stileExit(t, dir, "run", "--verbose", "f", "true"); code != 0 || !strings.Contains(s, "record was not written") {
		t.Errorf("no warning: exit %d: %s", code, s)
	}
}

func TestCase20ReadOnly(t *testing.T) {
	dir := smallMount(t, "size=64k")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount is not permitted here: %v", err)
	}
	code, s := stileExit(t, dir, "run", "--json", "f", "true")
	if code != exitNoSpace || !strings.Contains(s, `"code":"read_only_filesystem"`) {
		t.Errorf("exit %d: %s", code, s)
	}
	if code, s := stileExit(t, dir, "status", "f"); code != 0 {
		t.Errorf("status: exit %d: %s", code, s)
	}
	if code, s := stileExit(t, dir, "status"); code != 0 {
		t.Errorf("status of the folder: exit %d: %s", code, s)
	}
}

// injected runs stile with one system call failing.
func injected(t *testing.T, dir, inject string, args ...string) (int, string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	stile, err := exec.LookPath("stile")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(strace, "-o", "/dev/null", "true").Run(); err != nil {
		t.Skipf("strace may not trace here: %v", err)
	}
	r := start(t, dir, strace, append([]string{"-f", "-o", "/dev/null", "-e", "inject=" + inject, stile}, args...)...)
	_ = r.in.Close()
	return r.wait(), r.stderr()
}

// Cases 21 and 23: what the system says keeps its name.
func TestCase21And23SystemErrors(t *testing.T) {
	for _, tt := range []struct {
		errno string
		exit  int
		code  string
	}{
		{"EMFILE", 71, "too_many_open_files"},
		{"ENFILE", 71, "system_file_table_full"},
		{"ENOLCK", 71, "no_locks_available"},
		{"ENOSYS", 69, "unsupported_filesystem"},
		{"EOPNOTSUPP", 69, "unsupported_filesystem"},
		{"EIO", 74, "io_error"},
	} {
		dir := t.TempDir()
		code, s := injected(t, dir, "flock:error="+tt.errno, "run", "--json", "f", "touch", "ran")
		if code != tt.exit || !strings.Contains(s, `"code":"`+tt.code+`"`) {
			t.Errorf("flock gives %s: exit %d: %s", tt.errno, code, s)
		}
		onlyFiles(t, dir, "f.lock") // and the command did not run
	}
}

// Case 21, open files: the real limit.
func TestCase21TooManyOpenFiles(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's build is linked dynamically, and its loader needs a descriptor, too")
	}
	dir := t.TempDir()
	out, err := exec.Command("bash", "-c", "cd "+dir+" && ulimit -n 3 && exec stile run --json f touch ran").CombinedOutput()
	var code int
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if code != exitResources || !strings.Contains(string(out), `"code":"too_many_open_files"`) {
		t.Errorf("exit %d: %s", code, out)
	}
	onlyFiles(t, dir)
}

// Case 24: what lies under the lock's name and is no lock file is refused,
// and the target's bytes stay.
func TestCase24BadLockFiles(t *testing.T) {
	for name, make := range map[string]func(lock, dir string) error{
		"link":      func(lock, dir string) error { return os.Symlink(filepath.Join(dir, "victim"), lock) },
		"dangling":  func(lock, dir string) error { return os.Symlink(filepath.Join(dir, "nothing"), lock) },
		"loop":      func(lock, dir string) error { return os.Symlink(lock, lock) },
		"hard link": func(lock, dir string) error { return os.Link(filepath.Join(dir, "victim"), lock) },
		"FIFO":      func(lock, dir string) error { return unix.Mkfifo(lock, 0o600) },
		"folder":    func(lock, dir string) error { return os.Mkdir(lock, 0o700) },
		"device":    func(lock, dir string) error { return unix.Mknod(lock, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range []string{"f", "victim"} {
				if err := os.WriteFile(filepath.Join(dir, f), []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := make(filepath.Join(dir, "f.lock"), dir); err != nil {
				t.Skipf("it cannot be made here: %v", err)
			}
			code, s := stileExit(t, dir, "run", "--json", "f", "touch", "ran")
			if code != exitBadFile || !strings.Contains(s, `"code":"bad_lock_file"`) {
				t.Errorf("exit %d: %s", code, s)
			}
			for _, f := range []string{"f", "victim"} {
				if b, _ := os.ReadFile(filepath.Join(dir, f)); string(b) != "precious" {
					t.Errorf("%s holds %q", f, b)
				}
			}
			onlyFiles(t, dir, "f", "f.lock", "victim")
		})
	}
}

// Case 32: who may write the file shares its lock; a stranger is told that it
// is a matter of permission.
func TestCase32Users(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can play two users")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("no setpriv here")
	}
	dir, err := os.MkdirTemp("", "stile-users-") //nolint:usetesting // its parent must be open to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stile, err := exec.LookPath("stile")
	if err != nil {
		t.Fatal(err)
	}
	// A copy that everybody can reach.
	bin := filepath.Join(dir, "stile")
	b, err := os.ReadFile(stile)
	if err != nil {
		t.Fatal(err)
	}
	const group = 4711
	if err := os.WriteFile(bin, b, 0o755); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared")
	for _, step := range []error{
		os.Chmod(dir, 0o755), os.Chmod(bin, 0o755),
		os.Mkdir(shared, 0o777), os.Chown(shared, 0, group), os.Chmod(shared, 0o775|os.ModeSetgid),
		os.WriteFile(filepath.Join(shared, "f"), nil, 0o660), os.Chown(filepath.Join(shared, "f"), 5001, group),
		os.Chmod(filepath.Join(shared, "f"), 0o660),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	as := func(uid, gid int, args ...string) *running {
		return start(t, shared, setpriv, append([]string{
			fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", gid), "--clear-groups", bin}, args...)...)
	}
	first := as(5001, group, "run", "f", bin, childVerb, "hold")
	first.line("in")
	as(5002, group, "run", "-n", "f", "true").exits(exitHeld)
	_ = first.in.Close()
	first.exits(0)
	as(5002, group, "run", "f", "true").exits(0)
	as(5001, group, "run", "f", "true").exits(0)
	stranger := as(5003, 5003, "run", "--json", "f", "true")
	stranger.exits(exitPermission)
	if s := stranger.stderr(); !strings.Contains(s, `"code":"permission_denied"`) {
		t.Errorf("stderr: %s", s)
	}
}

// Case 33: another program's file beside the target is locked and stays as it is.
func TestCase33ForeignLockFile(t *testing.T) {
	dir := t.TempDir()
	const content = "# yarn lockfile v1\n\nleft-pad@1.0.0:\n"
	if err := os.WriteFile(filepath.Join(dir, "yarn.lock"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	r := start(t, dir, "stile", "run", "yarn", "--", "stile", childVerb, "hold")
	r.line("in")
	if code, _ := stileExit(t, dir, "run", "-n", "yarn", "true"); code != exitHeld {
		t.Errorf("it is not locked: exit %d", code)
	}
	_ = r.in.Close()
	r.exits(0)
	if b, _ := os.ReadFile(filepath.Join(dir, "yarn.lock")); string(b) != content {
		t.Errorf("yarn.lock holds %q", b)
	}
}

// doctor leaves nothing, interrupted or not.
func TestDoctorInterrupted(t *testing.T) {
	for i := range 20 {
		dir := t.TempDir()
		r := start(t, dir, "stile", "doctor", ".")
		if i%2 == 0 {
			until(t, "doctor works or is done", func() bool {
				entries, _ := os.ReadDir(dir)
				return len(entries) > 0 || procState(r.cmd.Process.Pid) == 'Z'
			})
		}
		r.signal(unix.SIGTERM)
		if code := r.wait(); code != 128+15 && code != 0 && code != 2 && code != -1 {
			t.Errorf("exit %d: %s", code, r.stderr())
		}
		onlyFiles(t, dir)
	}
}

// On FUSE doctor warns before anyone trusts flock.
func TestDoctorOnFUSE(t *testing.T) {
	bindfs, err := exec.LookPath("bindfs")
	if err != nil {
		t.Skip("no bindfs here")
	}
	from, dir := t.TempDir(), t.TempDir()
	if out, err := exec.Command(bindfs, "--no-allow-other", from, dir).CombinedOutput(); err != nil {
		t.Skipf("bindfs cannot mount here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	r := start(t, dir, "stile", "doctor")
	r.exits(exitProblem)
	b := make([]byte, 64<<10)
	n, _ := r.out.Read(b)
	if !strings.Contains(string(b[:n]), "another mount") {
		t.Errorf("doctor says: %s", b[:n])
	}
}
