//go:build unix

package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

// need skips the test, by name, where a program it needs is not installed.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s, which is not installed", program)
	}
	return path
}

// peers are other programs that lock path exclusively, say "held", and let go
// on a line.
var peers = map[string]func(t *testing.T, path string) *exec.Cmd{
	"flock(1)": func(t *testing.T, path string) *exec.Cmd {
		return exec.Command(need(t, "flock"), path, "sh", "-c", "echo held; read line; echo released")
	},
	"Python": func(t *testing.T, path string) *exec.Cmd {
		return exec.Command(need(t, "python3"), "-c", `
import fcntl, sys
f = open(sys.argv[1], "a+")
fcntl.flock(f, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
fcntl.flock(f, fcntl.LOCK_UN)
print("released", flush=True)
`, path)
	},
}

func TestPeersExcludeUsAndAreExcluded(t *testing.T) {
	for name, peer := range peers {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "f")
			lock := target + ".lock"

			// They hold: we are kept out, and enter when they let go.
			c := start(t, peer(t, lock))
			c.expect("held")
			l, dup, err := kernlock.TryAcquire(target, kernlock.Options{})
			if err != nil || l != nil {
				t.Fatalf("entered beside %s: %v", name, err)
			}
			if dup.Holder != nil {
				t.Errorf("a holder without a record was named %+v", dup.Holder)
			}
			_, err = kernlock.Acquire(context.Background(), target, kernlock.Options{Timeout: 20 * time.Millisecond})
			var timeout *kernlock.TimeoutError
			if !errors.As(err, &timeout) || !strings.Contains(err.Error(), "holder unknown") {
				t.Errorf("timeout against %s: %v", name, err)
			}
			w := startChild(t, "wait", target, "1h")
			w.expect("waiting")
			mustBlock(t, target, 1)
			c.tell("")
			c.expect("released")
			w.expect("acquired")

			// We hold: they are kept out, and enter when we let go.
			l, err = kernlock.Acquire(context.Background(), target, kernlock.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c = start(t, peer(t, lock))
			mustBlock(t, target, 1)
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
			c.expect("held")
			c.tell("")
			c.expect("released")
		})
	}
}

// reference writes a holder record as the reference implementation does: it
// locks, truncates, writes JSON with sorted keys, and on the way out again
// with released_at. It prints what it reads of ours.
const reference = `
import fcntl, hashlib, json, os, socket, sys
from datetime import datetime, timezone
target = os.path.realpath(sys.argv[1])
def now():
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
f = open(target + ".lock", "a+")
fcntl.flock(f, fcntl.LOCK_EX)
f.seek(0)
text = f.read()
try:
    print(json.dumps(json.loads(text)) if text else "{}", flush=True)
except ValueError:
    print("unreadable", flush=True)
rec = {"schema_version": "file_lock_holder_v0",
       "lock_id": hashlib.sha256(target.encode()).hexdigest()[:16],
       "policy": "mutation", "pid": os.getpid(), "host": socket.gethostname(),
       "agent_id": "reference", "operation": "test", "acquired_at": now()}
def write():
    f.seek(0); f.truncate()
    f.write(json.dumps(rec, sort_keys=True, separators=(",", ":")) + "\n")
    f.flush()
write()
print("held", flush=True)
sys.stdin.readline()
rec["released_at"] = now()
write()
fcntl.flock(f, fcntl.LOCK_UN)
print("released", flush=True)
`

// The reference reads our records and we read its, while held and after.
func TestRecordsAreReadableBothWays(t *testing.T) {
	python := need(t, "python3")
	target := filepath.Join(t.TempDir(), "f")
	l, err := kernlock.Acquire(context.Background(), target, kernlock.Options{Agent: "ours", Operation: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}

	c := start(t, exec.Command(python, "-c", reference, target))
	var seen map[string]any
	if err := json.Unmarshal([]byte(c.line()), &seen); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"schema_version": "file_lock_holder_v0", "agent_id": "ours", "operation": "first",
		"policy": "mutation", "pid": float64(os.Getpid()), "lock_id": l.LockID(),
	} {
		if seen[key] != want {
			t.Errorf("the reference reads %s as %v, want %v", key, seen[key], want)
		}
	}
	if _, ok := seen["released_at"]; !ok {
		t.Error("the reference sees no released_at")
	}

	c.expect("held")
	r, err := kernlock.Status(target, kernlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Holder == nil || r.Holder.AgentID != "reference" || r.Holder.LockID != l.LockID() ||
		r.Liveness != kernlock.Live || r.Kernel == kernlock.KernelFree {
		t.Errorf("we read the reference's record as %+v %+v", r, r.Holder)
	}
	if r.Kernel == kernlock.KernelHeld && r.HolderState != kernlock.Current {
		t.Errorf("its record is not attributed to it: %s", r.HolderState)
	}
	c.tell("")
	c.expect("released")
	if r, err = kernlock.Status(target, kernlock.Options{}); err != nil || r.Liveness != kernlock.Released {
		t.Errorf("after its release: %+v, %v", r, err)
	}
	// And ours goes over it, whole.
	if l, err = kernlock.Acquire(context.Background(), target, kernlock.Options{Agent: "ours"}); err != nil || l.Warning() != nil {
		t.Fatal(err, l.Warning())
	}
	if r, err = kernlock.Status(target, kernlock.Options{}); err != nil || r.Holder == nil || r.Holder.AgentID != "ours" {
		t.Errorf("our record over the reference's: %+v, %v", r, err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
