package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// world is what a cell of the lock file's matrix is shown in: an estate with the agent ada, on a file system of
// one class. Without hard links link() fails, unless the tests are told to run on a volume that
// has none (STILE_TEST_DIR).
type world struct {
	*testing.T
	dir   string
	links bool
	errno unix.Errno
	first string // the id of the dispatch that is there
}

var cellClasses = []string{"hard links", "no hard links"}

func newWorld(t *testing.T, class string) *world {
	t.Helper()
	on := os.Getenv("STILE_TEST_DIR")
	dir, err := os.MkdirTemp(on, "cell") //nolint:usetesting // on the volume that is meant
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &world{T: t, dir: dir, links: class == cellClasses[0]}
	if on == "" {
		c.errno = unix.ENOTSUP
	}
	if code, s := stileExit(t, c.dir, "init"); code != 0 {
		t.Fatal(s)
	}
	c.first = c.open("first")
	return c
}

// start starts stile, on the cell's class of file system.
func (c *world) start(args ...string) *running {
	c.Helper()
	name := "stile"
	if !c.links && c.errno != 0 {
		name, args = "helper", append([]string{"filtered", fmt.Sprint(int(c.errno)), "plain", "stile"}, args...)
	}
	r := start(c.T, c.dir, name, args...)
	r.alone = true
	return r
}

// gated is start behind a gate.
func (c *world) gated(decide func(*gated, call) answer, args ...string) *gated {
	c.Helper()
	return startGated(c.T, c.dir, func(g *gated, k call) answer {
		if k.nr == unix.SYS_LINKAT && !c.links && c.errno != 0 {
			g.errno = c.errno
			return refuse
		}
		return decide(g, k)
	}, args...)
}

// run runs stile to its end, with a line of arguments, and gives what it prints.
func (c *world) run(code int, args ...string) (out, stderr string) {
	c.Helper()
	r := c.start(args...)
	_ = r.in.Close()
	text, err := io.ReadAll(r.out)
	if err != nil {
		c.Fatal(err)
	}
	if got := r.wait(); got != code {
		c.Fatalf("%q: exit code %d, want %d; it says %s%s", args, got, code, text, r.stderr())
	}
	return string(text), r.stderr()
}

func (c *world) open(task string) (id string) {
	c.Helper()
	out, _ := c.run(0, "dispatch", "open", "--agent", "ada", "--task", task)
	return strings.TrimSpace(out)
}

func (c *world) path(name ...string) string {
	return filepath.Join(append([]string{c.dir, ".stile", "agents", "ada"}, name...)...)
}

func (c *world) lock() string { return c.path("spawn-log.json.lock") }

func (c *world) read(path string) string {
	c.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// plant writes a lock, an hour old by its text and its file's time.
func (c *world) plant(pid int, host string) (text string) {
	c.Helper()
	at := time.Now().Add(-time.Hour)
	text = fmt.Sprintf(`{"pid":%d,"hostname":%q,"token":"0123456789abcdef01234567","acquiredAt":%q}`, pid, host, at.UTC().Format("2006-01-02T15:04:05.000Z"))
	if host == "" {
		text = fmt.Sprintf(`{"pid":%d,"token":"0123456789abcdef01234567"}`, pid)
	}
	writeFile(c.T, c.lock(), text)
	if err := os.Chtimes(c.lock(), at, at); err != nil {
		c.Fatal(err)
	}
	return text
}

// deadPID is that of a process that has ended, and been waited for.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func thisHost(t *testing.T) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// logged lists the ids in the log, and onBoard those on the board.
func (c *world) logged() (ids []string) {
	c.Helper()
	var records []struct{ ID string }
	if err := json.Unmarshal([]byte(c.read(c.path("spawn-log.json"))), &records); err != nil {
		c.Fatal(err)
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

func (c *world) onBoard() (ids []string) {
	c.Helper()
	var board struct{ Items []struct{ Dispatch string } }
	if err := json.Unmarshal([]byte(c.read(c.path("board", "board.json"))), &board); err != nil {
		c.Fatal(err)
	}
	for _, it := range board.Items {
		ids = append(ids, it.Dispatch)
	}
	return ids
}

// whole checks that log and board have just these dispatches, each once, and that nothing else is there.
func (c *world) whole(ids ...string) {
	c.Helper()
	ids = append(ids, c.first)
	slices.Sort(ids)
	for name, got := range map[string][]string{"log": c.logged(), "board": c.onBoard()} {
		if slices.Sort(got); !slices.Equal(got, ids) {
			c.Errorf("the %s has %v, want %v", name, got, ids)
		}
	}
	c.clean()
	c.run(0, "board", "check")
}

// clean checks that nothing is beside log and board.
func (c *world) clean() {
	c.Helper()
	onlyFiles(c.T, c.path(), "board", "spawn-log.json")
	onlyFiles(c.T, c.path("board"), "board.json")
}

// blocked checks that the lock, whose bytes are given, stops an open, which says so in one line with its
// remedy, and that nothing is changed.
func (c *world) blocked(lock, says string) {
	c.Helper()
	log, board := c.read(c.path("spawn-log.json")), c.read(c.path("board", "board.json"))
	out, stderr := c.run(2, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0.05")
	c.oneLine(out, stderr, says)
	fileHolds(c.T, c.lock(), lock)
	fileHolds(c.T, c.path("spawn-log.json"), log)
	fileHolds(c.T, c.path("board", "board.json"), board)
	onlyFiles(c.T, c.path(), "board", "spawn-log.json", "spawn-log.json.lock")
}

// oneLine: it says in one line who is in the way and which command helps.
func (c *world) oneLine(out, stderr, says string) {
	c.Helper()
	if out != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "stile: lock /") ||
		!strings.Contains(stderr, "/.stile/agents/ada/spawn-log.json.lock is held by "+says) ||
		!strings.Contains(stderr, "stile dispatch unlock --force --agent ada (only once the holder's process is gone or stuck, never while it is still running)") {
		c.Errorf("%q on stdout, and on stderr:\n%swant %q, and the command", out, stderr, says)
	}
}
