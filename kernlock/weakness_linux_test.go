package kernlock

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

	"github.com/stile-lock/stile/internal/proc"
	"golang.org/x/sys/unix"
)

type result struct {
	l   *Lock
	err error
}

// acquireAside waits for the lock in a goroutine; the kernel shows it waiting
// on the file at n.lock when it returns.
func acquireAside(t *testing.T, n *names) <-chan result {
	t.Helper()
	before := statusNow(t, n).Waiters
	done := make(chan result, 1)
	go func() {
		l, err := Acquire(context.Background(), n.target, Options{Timeout: time.Hour})
		done <- result{l, err}
	}()
	eventually(t, func() bool { return statusNow(t, n).Waiters > before })
	return done
}

func TestWeakness03LockFileDeletedOrReplaced(t *testing.T) {
	listed(t)
	for name, remove := range map[string]func(n *names) error{
		"deleted": func(n *names) error { return os.Remove(n.lock) },
		"replaced": func(n *names) error {
			if err := os.WriteFile(n.lock+"-new", nil, 0o600); err != nil {
				return err
			}
			return os.Rename(n.lock+"-new", n.lock)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTarget(t)
			old := mustAcquire(t, n.target, Options{})
			must(t, old.Fence())
			waiter := acquireAside(t, n)
			must(t, remove(n))
			if err := old.Fence(); !errors.Is(err, ErrLost) {
				t.Errorf("fence of the holder: %v", err)
			}
			newcomer := mustAcquire(t, n.target, Options{})
			must(t, newcomer.Fence())
			mustRelease(t, old)
			// The waiter has the old file's lock now, and must notice: it
			// waits for the newcomer.
			eventually(t, func() bool { return statusNow(t, n).Waiters > 0 || len(waiter) > 0 })
			select {
			case r := <-waiter:
				t.Fatalf("the waiter and the newcomer both hold: %v, %v", r.l, r.err)
			default:
			}
			must(t, newcomer.Fence())
			mustRelease(t, newcomer)
			r := <-waiter
			must(t, r.err)
			must(t, r.l.Fence())
			mustRelease(t, r.l)
		})
	}
}

// TestIdleDescriptionGoneStale: a handle keeps its description between two
// holds, and must not take it for the file when that was replaced.
func TestIdleDescriptionGoneStale(t *testing.T) {
	n := newTarget(t)
	h, err := Open(n.target, Options{})
	must(t, err)
	defer func() { must(t, h.Close()) }()
	for range 3 {
		l, err := h.Acquire(context.Background())
		must(t, err)
		mustRelease(t, l)
		must(t, os.Remove(n.lock))
		newcomer := mustAcquire(t, n.target, Options{})
		if l, d, err := h.TryAcquire(); d == nil {
			t.Fatalf("both hold: %v, %v", l, err)
		}
		mustRelease(t, newcomer)
	}
}

// smallDisk mounts a tmpfs of the given options.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("may not mount a small disk: ", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// TestWeakness08NoSpaceForTheRecord is case 20, too.
func TestWeakness08NoSpaceForTheRecord(t *testing.T) {
	dir := smallDisk(t, "size=64k,mode=0777")
	target := filepath.Join(dir, "target")
	writeFile(t, target, nil)
	fill, err := os.Create(filepath.Join(dir, "fill"))
	must(t, err)
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	must(t, fill.Close())

	for range 2 { // with a new lock file, and with one that is there
		l := mustAcquire(t, target, Options{})
		if w := l.Warning(); !errors.Is(w, unix.ENOSPC) || errors.Is(w, ErrHeld) {
			t.Errorf("warning %v", w)
		}
		must(t, l.Fence())
		e := mustTimeOut(t, target, Options{})
		if !errors.Is(e.RecordErr, unix.ENOSPC) || e.Incident.HolderState == Current {
			t.Errorf("%v, %+v", e.RecordErr, e.Incident)
		}
		mustRelease(t, l)
	}
	n, err := resolve(target, false)
	must(t, err)
	if b := readFile(t, n.lock); len(b) != 0 {
		t.Errorf("the lock file holds %q", b)
	}
	must(t, os.Remove(filepath.Join(dir, "fill")))
	l := mustAcquire(t, target, Options{})
	must(t, l.Warning())
	mustRelease(t, l)
	if r := statusNow(t, &n); r.Liveness != Released {
		t.Errorf("%+v", r)
	}
}

func TestNoSpaceForTheLockFile(t *testing.T) {
	dir := smallDisk(t, "size=64k,nr_inodes=3")
	target := filepath.Join(dir, "target")
	writeFile(t, target, nil)
	writeFile(t, filepath.Join(dir, "other"), nil)
	l, d, err := TryAcquire(target, Options{})
	if !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrHeld) || errors.Is(err, ErrTimeout) || l != nil || d != nil {
		t.Errorf("%v, %v, %v; want ENOSPC", l, d, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestReadOnlyFilesystem(t *testing.T) {
	dir := smallDisk(t, "size=64k,mode=0777")
	target, fresh := filepath.Join(dir, "target"), filepath.Join(dir, "fresh")
	writeFile(t, target, nil)
	mustRelease(t, mustAcquire(t, target, Options{}))
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("may not remount: ", err)
	}
	for _, path := range []string{target, fresh} {
		if l, d, err := TryAcquire(path, Options{}); !errors.Is(err, unix.EROFS) || errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v, %v, %v; want EROFS", path, l, d, err)
		}
	}
	// A shared hold needs no more than to read.
	mustRelease(t, mustAcquire(t, target, Options{Shared: true}))
	if r, err := Status(target, Options{}); err != nil || r.Liveness != Released {
		t.Errorf("%+v, %v", r, err)
	}
}

// record writes r as n's record, by hand.
func writeRecord(t *testing.T, n *names, self proc.Holder) {
	t.Helper()
	enc := newEncoder(n, &Options{Policy: Mutation, Agent: "written"}, self)
	writeFile(t, n.lock, enc.append(nil, time.Now(), time.Time{}, 0))
}

func TestWeakness13ProofRules(t *testing.T) {
	listed(t)
	if !proc.InInitialPIDNamespace() {
		t.Skip("not in the initial pid namespace")
	}
	self := proc.Self()
	gone := exec.Command("/proc/self/exe", "-test.run=^$")
	must(t, gone.Run())
	with := func(f func(h *proc.Holder)) proc.Holder {
		h, id := self, *self.Proc
		h.Proc = &id
		f(&h)
		return h
	}
	// Only on a filesystem of this machine does another boot mean a restart.
	restarted, ofRestarted := Unknown, HolderUnproven
	if local, _, err := proc.FilesystemLocal(t.TempDir()); err == nil && local {
		restarted, ofRestarted = Dead, Previous
	}
	for name, c := range map[string]struct {
		h     proc.Holder
		live  Liveness
		state HolderState // while this process holds without a record
	}{
		"ourselves":                {self, Live, Current},
		"without proc":             {with(func(h *proc.Holder) { h.Proc = nil }), Live, Current},
		"our pid, used again":      {with(func(h *proc.Holder) { h.Proc.StartTime++ }), Dead, HolderUnproven},
		"our pid, of another boot": {with(func(h *proc.Holder) { h.Proc.BootID = "11111111-2222-3333-4444-555555555555" }), restarted, ofRestarted},
		"our pid, damaged boot id": {with(func(h *proc.Holder) { h.Proc.BootID = "x" }), Unknown, HolderUnproven},
		"a pid that is gone":       {with(func(h *proc.Holder) { h.PID = int64(gone.Process.Pid) }), Dead, Previous},
		"another host":             {with(func(h *proc.Holder) { h.Host = "elsewhere" }), ForeignHost, HolderUnproven},
		"another namespace":        {with(func(h *proc.Holder) { h.Proc.PidNS = 4026539999 }), Unknown, HolderUnproven},
		"an impossible pid":        {with(func(h *proc.Holder) { h.PID = 1 << 40 }), Unknown, Previous},
		"pid 0":                    {with(func(h *proc.Holder) { h.PID = 0 }), Unknown, Previous},
		"a negative pid":           {with(func(h *proc.Holder) { h.PID = -int64(os.Getpid()) }), Unknown, Previous},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTarget(t)
			l := mustAcquire(t, n.target, Options{NoRecord: true})
			writeRecord(t, n, c.h)
			r := statusNow(t, n)
			if r.Liveness != c.live || r.HolderState != c.state || r.Kernel != KernelHeld {
				t.Errorf("held: liveness %s, state %s, kernel %s; want %s, %s", r.Liveness, r.HolderState, r.Kernel, c.live, c.state)
			}
			if _, d, _ := TryAcquire(n.target, Options{}); d == nil || d.HolderState != c.state || d.Liveness != c.live {
				t.Errorf("duplicate %+v", d)
			}
			mustRelease(t, l)
			if r := statusNow(t, n); r.Kernel != KernelFree || r.HolderState != Previous || r.Liveness != c.live {
				t.Errorf("free: %+v", r)
			}
		})
	}
}

// TestFlockHolderWithAnOldRecord: flock(1) holds, over the record of a holder
// that was killed.
func TestFlockHolderWithAnOldRecord(t *testing.T) {
	listed(t)
	flock, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("flock(1) is not installed")
	}
	n := newTarget(t)
	c := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Agent: "killed"}})
	c.expect("held")
	c.kill()
	other := startChild(t, "idle", nil, under(flock, n.lock))
	other.expect("up")
	r := statusNow(t, n)
	if r.Kernel != KernelHeld || r.Holder == nil || r.Liveness != Dead || r.HolderState != Previous {
		t.Errorf("%+v", r)
	}
	if len(r.Holders) != 1 || r.Holders[0].PID != other.cmd.Process.Pid || r.Holders[0].Name != "flock" {
		t.Errorf("holders %+v, want flock (pid %d)", r.Holders, other.cmd.Process.Pid)
	}
	e := mustTimeOut(t, n.target, Options{})
	if e.Incident.HolderState != Previous || !strings.Contains(e.Error(), "holder unknown") {
		t.Errorf("%+v, %v", e.Incident, e)
	}
	other.tell("end")
	other.finish()
	mustRelease(t, mustAcquire(t, n.target, Options{}))
}

// TestNamespaces are cases 1 and 2: a holder that cannot be seen, or that has
// our own number, is neither dead nor free.
func TestNamespaces(t *testing.T) {
	if err := exec.Command("unshare", "-pf", "--mount-proc", "true").Run(); err != nil {
		t.Skip("no pid namespaces: ", err)
	}
	inside := under("unshare", "-pf", "--kill-child", "--mount-proc")
	n := newTarget(t)
	a := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Agent: "inside"}}, inside)
	a.expect("held")

	look := func(how ...func(*exec.Cmd)) *Report {
		t.Helper()
		c := startChild(t, "status", lockArg{Target: n.target}, how...)
		var r Report
		must(t, json.Unmarshal([]byte(c.hear()), &r))
		c.finish()
		return &r
	}
	for where, r := range map[string]*Report{"outside": statusNow(t, n), "beside": look(inside)} {
		if r.Holder == nil || r.Holder.PID != 1 || r.Liveness != Unknown || r.HolderState == Previous || r.Kernel == KernelFree {
			t.Errorf("seen from %s: %+v of %+v", where, r, r.Holder)
		}
	}
	if e := mustTimeOut(t, n.target, Options{}); e.Incident.HolderState == Previous || !strings.Contains(e.Error(), "held by inside") {
		t.Errorf("%+v, %v", e.Incident, e)
	}
	b := startChild(t, "try", lockArg{Target: n.target}, inside)
	if got := b.hear(); !strings.HasPrefix(got, "duplicate ") || strings.Contains(got, `"dead"`) {
		t.Errorf("tried beside: %s", got)
	}
	b.finish()
	a.tell("release")
	a.expect("released")
	a.finish()
	if r := look(inside); r.Kernel != KernelUnknown || r.Waiters != -1 {
		t.Errorf("a free lock seen from inside: %+v", r)
	}
	if r := statusNow(t, n); r.Kernel != KernelFree || r.Liveness != Released {
		t.Errorf("a free lock seen from outside: %+v", r)
	}
}
