package robustness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stile-lock/stile/kernlock"
	"golang.org/x/sys/unix"
)

func init() { children["blocked"] = withAllSignalsBlocked }

// withAllSignalsBlocked becomes the child "wait", as a parent starts it that
// has blocked every signal.
func withAllSignalsBlocked(args []string) error {
	runtime.LockOSThread()
	all := ^uint64(0)
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0); e != 0 {
		return e
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(childEnv, "wait"); err != nil {
		return err
	}
	return unix.Exec(self, append([]string{self}, args...), os.Environ())
}

// A wait must end at its deadline also in a process that was started with
// every signal blocked: the one that ends it too.
func TestWaitEndsInAProcessWithSignalsBlocked(t *testing.T) {
	target := filepath.Join(t.TempDir(), "f")
	holder := startChild(t, "hold", target)
	holder.expect("held")
	c := startChild(t, "blocked", target, "50ms")
	c.expect("waiting")
	c.expect("timeout")
}

func TestNextHolderEntersWhenTheHolderIsKilled(t *testing.T) {
	target := filepath.Join(t.TempDir(), "f")
	for range 20 {
		holder := startChild(t, "hold", target)
		holder.expect("held")
		w := startChild(t, "wait", target, "1h")
		w.expect("waiting")
		mustBlock(t, target, 1)
		holder.kill()
		w.expect("acquired")
	}
}

func TestKilledWaiterLeavesTheQueue(t *testing.T) {
	target := filepath.Join(t.TempDir(), "f")
	holder := startChild(t, "hold", target)
	holder.expect("held")
	var ws []*child
	for i := range 4 {
		w := startChild(t, "wait", target, "1h")
		w.expect("waiting")
		mustBlock(t, target, i+1)
		ws = append(ws, w)
	}
	ws[0].kill() // at the head, in flock
	ws[2].kill() // in the middle
	mustBlock(t, target, 2)
	holder.tell("")
	holder.expect("released")
	ws[1].expect("acquired")
	ws[3].expect("acquired")
}

// A stopped process at the head of the queue must not keep those behind it
// from a lock that nobody holds.
func TestStoppedHeadOfTheQueueBlocksNobody(t *testing.T) {
	target := filepath.Join(t.TempDir(), "f")
	holder := startChild(t, "hold", target)
	holder.expect("held")
	head := startChild(t, "wait", target, "1h")
	head.expect("waiting")
	mustBlock(t, target, 1)
	second := startChild(t, "wait", target, "1h")
	second.expect("waiting")
	mustBlock(t, target, 2)
	stop(t, head)
	holder.tell("")
	holder.expect("released")
	second.expect("acquired")
	third := startChild(t, "wait", target, "1h")
	third.expect("waiting")
	third.expect("acquired")
	// And it gets the lock itself once it runs again.
	if err := head.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	head.expect("acquired")
}

// stop stops a process and returns when the kernel shows it as stopped.
func stop(t *testing.T, c *child) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := strings.Cut(string(b), ") "); strings.HasPrefix(rest, "T") {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("never stopped")
}

// A stalled holder gives each waiter its timeout and one incident, and the
// record names it.
func TestStoppedHolderTimesWaitersOut(t *testing.T) {
	target := filepath.Join(t.TempDir(), "f")
	holder := startChild(t, "hold", target)
	holder.expect("held")
	stop(t, holder)
	for range 3 {
		w := startChild(t, "wait", target, "20ms")
		w.expect("waiting")
		w.expect("timeout")
	}
	log, err := kernlock.Incidents(target, kernlock.Options{})
	if err != nil || len(log.Rows) != 3 {
		t.Fatalf("%d incidents, %v", len(log.Rows), err)
	}
	for _, in := range log.Rows {
		if in.Holder == nil || in.Holder.PID != int64(holder.cmd.Process.Pid) ||
			in.HolderState != kernlock.Current || in.HolderChanged {
			t.Errorf("incident %+v", in)
		}
	}
}
