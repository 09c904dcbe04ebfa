package lockfile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// A child is this test binary again, told by one variable what to do. It starts before any flag is
// read.
const childEnv = "STILE_LOCKFILE_CHILD"

func TestMain(m *testing.M) {
	if order := os.Getenv(childEnv); order != "" {
		os.Exit(childMain(order))
	}
	os.Exit(m.Run())
}

// order is what a child does to Path.
type order struct {
	Path  string
	Class string
	Do    string // update, try, unlock, force, cycle
	ID    string // the record that an update adds
	// At these steps: say so on stdout and wait for a line on stdin; kill yourself.
	Pause, Kill seam.Step
	Times       int // updates, with IDs ID.0, ID.1, …
}

func childMain(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	set := &seam.Set{FS: classFS(o.Class), OnStep: func(step seam.Step) {
		if step == o.Pause {
			o.Pause = "" // once
			fmt.Println(step)
			_, _ = in.ReadString('\n')
		}
		if step == o.Kill {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	}}
	var err error
	switch o.Do {
	case "update":
		for n := range max(1, o.Times) {
			id := o.ID
			if o.Times > 0 {
				id = fmt.Sprintf("%s.%d", o.ID, n)
			}
			if err = update(context.Background(), o.Path, Options{NoSync: true, Seams: set}, id); err != nil {
				break
			}
		}
	case "try":
		err = update(context.Background(), o.Path, Options{NoSync: true, Timeout: -1, Seams: set}, o.ID)
	case "cycle":
		return cycle(o.Path, in)
	case "unlock", "force":
		_, err = Unlock(context.Background(), o.Path, UnlockOptions{Force: o.Do == "force", Seams: set})
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

func start(t testing.TB, o order) *child { return startUnder(t, o) }

// startUnder starts the child as the last argument of another command.
func startUnder(t testing.TB, o order, command ...string) *child {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	command = append(command, os.Args[0])
	c := &child{t: t, cmd: exec.Command(command[0], command[1:]...)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.cmd.Process.Kill(); c.cmd.Wait() })
	return c
}

// reaches waits until the child stands at the step.
func (c *child) reaches(step seam.Step) {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != string(step) {
		c.t.Fatalf("the child said %q, %v; want %s", line, err, step)
	}
}

func (c *child) goOn() { fmt.Fprintln(c.stdin) }

// dies waits until the child has killed itself.
func (c *child) dies() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.out)
	c.cmd.Wait()
	if c.cmd.ProcessState.ExitCode() >= 0 && runtime.GOOS != "windows" {
		c.t.Fatalf("the child was not killed: %v %s", c.cmd.ProcessState, rest)
	}
}

func (c *child) succeeds() {
	c.t.Helper()
	rest, _ := io.ReadAll(c.out)
	c.cmd.Wait()
	if !c.cmd.ProcessState.Success() {
		c.t.Fatalf("the child: %v: %s", c.cmd.ProcessState, rest)
	}
}

// The two classes of file system, as tests name them.
var classes = []string{"hard links", "no hard links"}

// classFS is the system's files, with link() failing in the second class. On a volume where it fails by
// itself nothing is in between.
func classFS(class string) vfs.FS {
	if class == classes[0] || volumeWithoutLinks() {
		return vfs.OS()
	}
	return noLinkFS(vfs.OS(), syscall.ENOTSUP)
}

// testDir is a folder on the volume that the tests are to run on; empty when any will do.
var testDir = os.Getenv("STILE_TEST_DIR")

// volumeWithoutLinks reports whether link() fails on the volume that the tests are to run on.
var volumeWithoutLinks = sync.OnceValue(func() bool {
	if testDir == "" {
		return false
	}
	dir, err := os.MkdirTemp(testDir, "links")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "a")
	return os.WriteFile(name, nil, 0o600) == nil && os.Link(name, name+"2") != nil
})

// noLinkFS fails link() as a file system without hard links does: a taken name is still EEXIST.
func noLinkFS(base vfs.FS, errno error) vfs.FS {
	return vfstest.Wrap(base, func(op vfstest.Op) error {
		if op.Kind != "link" {
			return nil
		}
		err := errno
		if _, lerr := base.Lstat(op.New); lerr == nil {
			err = syscall.EEXIST
		}
		return &os.LinkError{Op: "link", Old: op.Name, New: op.New, Err: err}
	})
}

// update is the whole read-modify-write: it adds the record id and runs again when the lock was lost.
func update(ctx context.Context, path string, o Options, id string) error {
	deadline := time.Now().Add(o.timeout())
	for {
		h, err := Acquire(ctx, path, o)
		if err != nil {
			return err
		}
		err = addRecord(h, id)
		rerr := h.Release()
		switch {
		case (errors.Is(err, ErrLost) || errors.Is(err, ErrStale)) && time.Now().Before(deadline):
			continue
		case err != nil:
			return errors.Join(err, rerr)
		case errors.Is(rerr, ErrLost):
			return nil // forced away after the commit, which stands
		}
		return rerr
	}
}

func addRecord(h *Hold, id string) error {
	old, err := h.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return h.Commit(append(old, id+"\n"...))
}
