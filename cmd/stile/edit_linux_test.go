package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func fileHolds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %.200q, %v; want %q", path, got, err, want)
	}
}

// Case 18 for edit: signals while it waits, while its command runs, and while what the command left
// behind still writes. The file stays, nothing is left, and the code is 128+n.
func TestCase18SignalWhileEditing(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			dir := t.TempDir()
			f := filepath.Join(dir, "f")
			writeFile(t, f, "old")
			holder := start(t, dir, "stile", "run", "f", "--", "stile", childVerb, "hold")
			holder.line("in")
			r := start(t, dir, "stile", "edit", "-w", "60", "f", "--", "echo", "new")
			waiters(t, f, 1)
			r.signal(sig)
			r.exits(128 + int(sig))
			_ = holder.in.Close()
			holder.exits(0)

			ready := filepath.Join(t.TempDir(), "ready")
			r = start(t, dir, "stile", "edit", "f", "-c", "echo half; touch "+ready+"; exec sleep 60")
			until(t, "the command runs", func() bool { return exists(ready) })
			r.signal(sig)
			r.exits(128 + int(sig))

			ready = filepath.Join(t.TempDir(), "ready")
			r = start(t, dir, "stile", "edit", "f", "-c", "echo half; sleep 60 & touch "+ready)
			until(t, "the command has ended, and its output is open", func() bool {
				return exists(ready) && len(children(r.cmd.Process.Pid)) == 0
			})
			r.signal(sig)
			r.exits(128 + int(sig))
			if s := r.stderr(); s != "" && !strings.Contains(s, "left behind") {
				t.Errorf("stderr: %s", s)
			}
			fileHolds(t, f, "old")
			onlyFiles(t, dir, "f", "f.lock")
		})
	}
}

// Case 19: ^C twice on a terminal, at some moment of an edit. The file is the old or the new one, whole.
func TestCase19InterruptedTwice(t *testing.T) {
	const size = 3 << 20
	old, fresh := bytes.Repeat([]byte("o"), size), bytes.Repeat([]byte("n"), size)
	seen := map[string]int{}
	for round := range 12 {
		dir := t.TempDir()
		f := filepath.Join(dir, "f")
		writeFile(t, f, string(old))
		// Half of the commands pay no heed to ^C.
		trap := ""
		if round%2 == 0 {
			trap = "trap '' INT; "
		}
		x := onTerminal(t, dir, "stile", "edit", "f", "-c", trap+"echo going >&2; tr o n")
		x.expect("going")
		x.types("\x03")
		x.types("\x03")
		err := x.cmd.Wait()
		got, rerr := os.ReadFile(f)
		if rerr != nil || !bytes.Equal(got, old) && !bytes.Equal(got, fresh) {
			t.Fatalf("the file is neither the old nor the new one: %d bytes, %v", len(got), rerr)
		}
		if bytes.Equal(got, old) && err == nil {
			t.Errorf("success, and the file is the old one")
		}
		onlyFiles(t, dir, "f", "f.lock")
		seen[string(got[:1])]++
	}
	if seen["n"] == 0 || seen["o"] == 0 {
		t.Logf("only one outcome was seen: %v", seen)
	}
}

// Commands that write much, read nothing of much, or die after half.
func TestEditCommandsThatMisbehave(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	writeFile(t, f, "old")
	if code, s := stileExit(t, dir, "edit", "--no-sync", "f", "--", "head", "-c", "209715200", "/dev/zero"); code != 0 {
		t.Fatalf("200 MiB: exit %d: %s", code, s)
	}
	if st, err := os.Stat(f); err != nil || st.Size() != 200<<20 {
		t.Fatalf("%v, %v", st, err)
	}
	if code, s := stileExit(t, dir, "edit", "f", "--", "echo", "never read"); code != 0 || s != "" {
		t.Errorf("a command that does not read: exit %d: %s", code, s)
	}
	fileHolds(t, f, "never read\n")
	if code, _ := stileExit(t, dir, "edit", "f", "-c", "head -c 1000000 /dev/zero; kill -9 $$"); code != 128+9 {
		t.Errorf("killed after half: exit %d", code)
	}
	// Its output is complete only when the last that writes it has ended.
	if code, s := stileExit(t, dir, "edit", "f", "-c", "(cat; while [ ! -e go ]; do :; done; echo late) & touch go"); code != 0 {
		t.Errorf("a late writer: exit %d: %s", code, s)
	}
	fileHolds(t, f, "late\n") // a background command has no standard input
	onlyFiles(t, dir, "f", "f.lock", "go")
}

// Case 20 for edit and append: no room for the new content, or for a line.
func TestCase20EditOnAFullDisk(t *testing.T) {
	dir := smallMount(t, "size=256k")
	f := filepath.Join(dir, "f")
	writeFile(t, f, "old\n")
	code, s := stileExit(t, dir, "edit", "--json", "f", "--", "head", "-c", "1000000", "/dev/zero")
	if code != exitNoSpace || !strings.Contains(s, `"code":"no_space"`) || !strings.Contains(s, "as it was") {
		t.Errorf("edit: exit %d: %s", code, s)
	}
	fileHolds(t, f, "old\n")
	onlyFiles(t, dir, "f", "f.lock")

	fill(t, dir)
	code, s = stileExit(t, dir, "append", "f", strings.Repeat("x", 100_000))
	if code != exitFailed || !strings.Contains(s, "no space left") || strings.Contains(s, "held") {
		t.Errorf("append: exit %d: %s", code, s)
	}
	fileHolds(t, f, "old\n")
	onlyFiles(t, dir, "ballast", "f", "f.lock")
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"append", "f", "line"}, {"edit", "f", "--", "cat"}} {
		if code, s := stileExit(t, dir, args...); code != 0 {
			t.Errorf("with room again, %v: exit %d: %s", args, code, s)
		}
	}
	fileHolds(t, f, "old\nline\n")
}

func TestEditReadOnly(t *testing.T) {
	dir := smallMount(t, "size=64k")
	writeFile(t, filepath.Join(dir, "f"), "old")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount is not permitted here: %v", err)
	}
	code, s := stileExit(t, dir, "edit", "--json", "f", "--", "touch", "ran")
	if code != exitNoSpace || !strings.Contains(s, `"code":"read_only_filesystem"`) {
		t.Errorf("edit: exit %d: %s", code, s)
	}
	r := start(t, dir, "stile", "append", "--json", "f", "x")
	r.exits(exitFailed)
	if s, _ := r.out.ReadString('\n'); !strings.Contains(s, `"code":"read_only_filesystem"`) {
		t.Errorf("append: %s", s)
	}
	r = start(t, dir, "stile", "unlock", "--force", "f")
	r.exits(0) // nothing to remove
	onlyFiles(t, dir, "f")
}

// A file that its user may not read, or not write, is a matter of permission and gets no lock file.
func TestEditUnreadable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can play another user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("no setpriv here")
	}
	stile, err := exec.LookPath("stile")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "stile-unreadable-") //nolint:usetesting // its parent must be open to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	b, err := os.ReadFile(stile)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "stile")
	for _, step := range []error{
		os.WriteFile(bin, b, 0o755), os.Chmod(dir, 0o755), os.Chmod(bin, 0o755), os.Mkdir(work, 0o777), os.Chmod(work, 0o777),
		os.WriteFile(filepath.Join(work, "secret"), []byte("secret"), 0o600),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	as := func(args ...string) *running {
		return start(t, work, setpriv, append([]string{"--reuid=5001", "--regid=5001", "--clear-groups", bin}, args...)...)
	}
	r := as("edit", "--json", "secret", "--", "cat")
	r.exits(exitPermission)
	if s := r.stderr(); !strings.Contains(s, `"code":"permission_denied"`) {
		t.Errorf("edit: %s", s)
	}
	r = as("append", "--json", "secret", "x")
	r.exits(exitFailed)
	if s, _ := r.out.ReadString('\n'); !strings.Contains(s, `"code":"permission_denied"`) {
		t.Errorf("append: %s", s)
	}
	onlyFiles(t, work, "secret")
	fileHolds(t, filepath.Join(work, "secret"), "secret")
}

// inShell runs a shell script in dir and gives what went wrong.
func inShell(dir, script string) error {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// eachOnce checks that the file has the lines writer.number, each once and those of one writer in order.
func eachOnce(t *testing.T, path string, writers []string, each int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for line := range strings.Lines(string(b)) {
		name, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ".")
		if number != fmt.Sprint(next[name]) || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q, want number %d", line, next[name])
		}
		next[name]++
	}
	for _, w := range writers {
		if next[w] != each {
			t.Errorf("%s: %d lines, want %d", w, next[w], each)
		}
		delete(next, w)
	}
	if len(next) > 0 {
		t.Errorf("lines of nobody: %v", next)
	}
}

// Case 29: two append loops on one file.
func TestCase29TwoAppendLoops(t *testing.T) {
	dir := t.TempDir()
	const each = 60
	var wg sync.WaitGroup
	for _, w := range []string{"a", "b"} {
		wg.Go(func() {
			err := inShell(dir, fmt.Sprintf("i=0; while [ $i -lt %d ]; do stile append -w 60 f %s.$i || exit; i=$((i+1)); done", each, w))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	eachOnce(t, filepath.Join(dir, "f"), []string{"a", "b"}, each)
	onlyFiles(t, dir, "f", "f.lock")
}

// Eight writers of four kinds on one file: edit, append, run and flock(1).
func TestMixedWriters(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("no flock here")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "f"), "")
	each := 25
	if testing.Short() {
		each = 5
	}
	var wg sync.WaitGroup
	var writers []string
	for i := range 8 {
		w := fmt.Sprintf("w%d", i)
		writers = append(writers, w)
		one := []string{
			`stile edit -w 60 --no-sync f -c "cat; echo ` + w + `.$i"`,
			`stile append -w 60 f ` + w + `.$i`,
			`stile run -w 60 f -c "echo ` + w + `.$i >>f"`,
			`flock f.lock -c "echo ` + w + `.$i >>f"`,
		}[i%4]
		wg.Go(func() {
			if err := inShell(dir, fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s || exit; i=$((i+1)); done", each, one)); err != nil {
				t.Errorf("%s: %v", one, err)
			}
		})
	}
	wg.Wait()
	eachOnce(t, filepath.Join(dir, "f"), writers, each)
	onlyFiles(t, dir, "f", "f.lock")
}

// edit is killed at moments of its run; the file is whole each time, and the next edit tidies up.
func TestEditKilled(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	const size = 1 << 20
	writeFile(t, f, strings.Repeat("a", size))
	for round := range 30 {
		r := start(t, dir, "stile", "edit", "--no-sync", "f", "-c", "tr ab ba")
		// Moments that something shows: the temp file is there; it has grown so far; the end.
		until(t, "it is time", func() bool {
			if procState(r.cmd.Process.Pid) == 'Z' {
				return true
			}
			temps, _ := filepath.Glob(f + ".tmp-*")
			if len(temps) == 0 {
				return false
			}
			st, err := os.Stat(temps[0])
			return err != nil || st.Size() >= int64(round%6)*size/5
		})
		r.signal(unix.SIGKILL)
		r.wait()
		b, err := os.ReadFile(f)
		if err != nil || len(b) != size || strings.Trim(string(b), string(b[:1])) != "" {
			t.Fatalf("round %d: the file is torn: %d bytes, %v", round, len(b), err)
		}
	}
	if code, s := stileExit(t, dir, "edit", "-w", "30", "f", "--", "cat"); code != 0 {
		t.Errorf("exit %d: %s", code, s)
	}
	onlyFiles(t, dir, "f", "f.lock")
}
