//go:build unix && !aix && !solaris

package kernlock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// statusNow is Status of n, which must succeed.
func statusNow(t *testing.T, n *names) *Report {
	t.Helper()
	r, err := Status(n.target, Options{})
	must(t, err)
	return r
}

// listed skips a test where the system does not list its locks.
func listed(t *testing.T) {
	t.Helper()
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{})
	defer mustRelease(t, l)
	if lookKernel().facts(n.lock).state != KernelHeld {
		t.Skip("this system does not list its locks")
	}
}

func TestInheritedLockOutlivesItsHolder(t *testing.T) {
	n := newTarget(t)
	f := startFamily(t, spawnArg{Target: n.target, Options: Options{Agent: "parent"}, Inherit: true})
	f.killParent()
	f.tellGrand("alive")
	f.expect("alive")
	l, d, err := TryAcquire(n.target, Options{})
	if d == nil {
		t.Fatalf("the lock was free while what inherited it lives: %v, %v", l, err)
	}
	if d.Holder == nil || d.Holder.AgentID != "parent" || !d.Holder.ReleasedAt.IsZero() {
		t.Errorf("%+v", d.Holder)
	}
	if r := statusNow(t, n); r.Kernel == KernelHeld && (r.HolderState != Current || d.HolderState != Current) {
		t.Errorf("state %s, %s; want current: %+v", r.HolderState, d.HolderState, r)
	}
	e := mustTimeOut(t, n.target, Options{})
	if !strings.Contains(e.Error(), "held by parent") {
		t.Errorf("%v", e)
	}
	must(t, f.grand.Close())
	// It is gone when its output is at its end.
	if rest, err := f.out.ReadString('\n'); err == nil {
		t.Fatalf("the grandchild said %q", rest)
	}
	mustRelease(t, mustAcquire(t, n.target, Options{}))
}

func TestWeakness17ExecedChildDoesNotHold(t *testing.T) {
	n := newTarget(t)
	f := startFamily(t, spawnArg{Target: n.target})
	f.killParent()
	f.tellGrand("alive")
	f.expect("alive")
	l, d, err := TryAcquire(n.target, Options{})
	if l == nil {
		t.Fatalf("held by a process that did not inherit it: %+v, %v", d, err)
	}
	mustRelease(t, l)
}

func TestReleaseFreesWhatWasNotInherited(t *testing.T) {
	n := newTarget(t)
	f := startFamily(t, spawnArg{Target: n.target})
	f.tell("release")
	f.expect("released")
	mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
	f.tellGrand("alive")
	f.expect("alive")
}

func TestStillHeldNamesWhatHolds(t *testing.T) {
	listed(t)
	n := newTarget(t)
	f := startFamily(t, spawnArg{Target: n.target, Inherit: true})
	f.tell("release")
	var pid int
	var list string
	if _, err := fmt.Sscanf(f.hear(), "still %d %s", &pid, &list); err != nil {
		t.Fatal(err)
	}
	var left []Process
	must(t, json.Unmarshal([]byte(list), &left))
	comm := strings.TrimSpace(string(readFile(t, "/proc/"+strconv.Itoa(pid)+"/comm")))
	if len(left) != 1 || left[0].PID != pid || left[0].Name != comm {
		t.Errorf("%+v; want %d %s", left, pid, comm)
	}
	if text := f.hear(); !strings.Contains(text, fmt.Sprintf("%s (pid %d)", comm, pid)) {
		t.Errorf("%q", text)
	}
	if r := statusNow(t, n); r.Kernel != KernelHeld || r.HolderState != Current || r.Holder == nil || !r.Holder.ReleasedAt.IsZero() {
		t.Errorf("%+v", r)
	}
	must(t, f.grand.Close())
}

func TestInheritedReleaseWithNobodyLeft(t *testing.T) {
	n := newTarget(t)
	f := startFamily(t, spawnArg{Target: n.target, Inherit: true})
	f.tell("wait")
	must(t, f.grand.Close())
	f.expect("ended")
	f.tell("release")
	f.expect("released")
	r := statusNow(t, n)
	if r.Holder == nil || r.Holder.ReleasedAt.IsZero() || r.Liveness != Released || r.Kernel == KernelHeld {
		t.Errorf("%+v of %+v", r, r.Holder)
	}
	mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
}

// TestInheritedReleaseLeavesALaterRecord: between our close and the look at
// who is left, another may have come and gone. Its record is the later one.
func TestInheritedReleaseLeavesALaterRecord(t *testing.T) {
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{Agent: "early"})
	must(t, l.Inherit())
	enc := newEncoder(n, &Options{Policy: Mutation, Agent: "later"}, goldenSelf)
	now := time.Now()
	later := enc.append(nil, now, now.Add(time.Second), len(readFile(t, n.lock)))
	writeFile(t, n.lock, later)
	mustRelease(t, l)
	if got := readFile(t, n.lock); !bytes.Equal(got, later) {
		t.Errorf("the later record became %s", got)
	}
}

// TestInheritedReleaseMeetsANewHolder: a waiter that gets the lock from an
// inherited release is no process left behind.
func TestInheritedReleaseMeetsANewHolder(t *testing.T) {
	n := newTarget(t)
	for range 20 {
		l := mustAcquire(t, n.target, Options{})
		c := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Agent: "next", Timeout: time.Hour}})
		eventually(t, func() bool { w := statusNow(t, n).Waiters; return w != 0 })
		must(t, l.Inherit()) // not before: the child is not to inherit it
		mustRelease(t, l)
		c.expect("held")
		r := statusNow(t, n)
		if r.Holder == nil || r.Holder.AgentID != "next" || !r.Holder.ReleasedAt.IsZero() {
			t.Errorf("%+v", r.Holder)
		}
		c.tell("release")
		c.expect("released")
		c.finish()
	}
}

func TestInheritedDescriptor(t *testing.T) {
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{})
	must(t, l.Inherit())
	must(t, l.Inherit())
	// A duplicate that closes does not let go.
	dup, err := os.Open(fmt.Sprintf("/dev/fd/%d", l.Descriptor()))
	if err == nil {
		must(t, dup.Close())
	}
	_ = mustTimeOut(t, n.target, Options{})
	mustRelease(t, l)
	mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
}

// eventually waits until f is true. No test that passes waits for its bound.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for began := time.Now(); !f(); <-time.After(time.Millisecond) {
		if time.Since(began) > childPatience {
			t.Fatal("it never came about")
		}
	}
}

// TestReleaseDespiteADuplicate: a child between fork and exec has a duplicate
// of every descriptor, and must not keep the lock by that.
func TestReleaseDespiteADuplicate(t *testing.T) {
	n := newTarget(t)
	h, err := Open(n.target, Options{})
	must(t, err)
	defer func() { must(t, h.Close()) }()
	for _, acquire := range []func() *Lock{
		func() *Lock { return mustAcquire(t, n.target, Options{}) },
		func() *Lock { l, _, err := h.TryAcquire(); must(t, err); return l },
	} {
		l := acquire()
		fd, err := unix.Dup(int(l.Descriptor()))
		must(t, err)
		mustRelease(t, l)
		mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
		must(t, unix.Close(fd))
	}
}
