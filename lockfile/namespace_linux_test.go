package lockfile

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
)

// inNamespace is a command that runs another in a pid namespace of its own, with the same host name.
func inNamespace(t *testing.T) []string {
	t.Helper()
	command := []string{"unshare", "-pf", "--mount-proc", "--kill-child"}
	if out, err := exec.Command(command[0], append(command[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no pid namespaces here: %v: %s", err, out)
	}
	return command
}

// A holder in another pid namespace with our host name, whose pid means nothing here, or another
// process: blocked, never broken; and the same the other way round. In sibling namespaces both are pid 1.
func TestCase01And02HolderInAnotherNamespace(t *testing.T) {
	command := inNamespace(t)
	eachClass(t, func(w *world) {
		c := startUnder(t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Pause: seam.HoldRead}, command...)
		c.reaches(seam.HoldRead)
		before := w.read("log.lock")
		_ = w.refused(w.real(), Unknown)
		sibling := startUnder(t, order{Path: w.path, Class: w.class, Do: "try", ID: "sibling"}, command...)
		if line, _ := sibling.out.ReadString('\n'); !strings.Contains(line, "pid 1 ") || !strings.Contains(line, "(unknown)") {
			t.Errorf("a sibling said %q", line)
		}
		if got := w.read("log.lock"); got != before {
			t.Fatal("the lock was touched")
		}
		c.goOn()
		c.succeeds()
		w.records("child")
		w.only("log")
	})
}

// A holder that died in another namespace stays a block, and what it left beside the lock is not swept
// from here: its names carry another host part.
func TestDeadInAnotherNamespace(t *testing.T) {
	command := inNamespace(t)
	eachClass(t, func(w *world) {
		c := startUnder(t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Pause: seam.CommitTempWritten}, command...)
		c.reaches(seam.CommitTempWritten)
		// The first process of a namespace cannot kill itself; --kill-child ends it with its parent.
		w.nil(c.cmd.Process.Kill())
		_, _ = io.ReadAll(c.out) // ended when nobody holds the pipe any more
		c.cmd.Wait()
		names := w.names()
		if !slices.Contains(names, "log.lock") || len(names) != 2 {
			t.Fatalf("the child left %q", names)
		}
		if strings.Contains(fmt.Sprint(names), proc.HostTag()) {
			t.Errorf("the child's names %q carry our host part", names)
		}
		_ = w.refused(w.real(), Unknown)
		if _, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams}); err != nil {
			t.Fatal(err)
		}
		w.update(w.real(), "after")
		w.records("after")
		if got := w.names(); len(got) != 2 {
			t.Errorf("swept: %q is left", got)
		}
	})
}
