package kernlock

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newTarget makes a file to be locked and returns its names.
func newTarget(t testing.TB) *names {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	writeFile(t, path, []byte("data\n"))
	n, err := resolve(path, false)
	if err != nil {
		t.Fatal(err)
	}
	return &n
}

func mustAcquire(t testing.TB, target string, o Options) *Lock {
	t.Helper()
	l, err := Acquire(context.Background(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release() })
	return l
}

func mustRelease(t testing.TB, l *Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// mustTimeOut tries once while the lock is held.
func mustTimeOut(t testing.TB, target string, o Options) *TimeoutError {
	t.Helper()
	o.Timeout = TryOnce
	l, err := Acquire(context.Background(), target, o)
	var e *TimeoutError
	if !errors.As(err, &e) {
		t.Fatalf("%v, %v; want a timeout", l, err)
	}
	if !errors.Is(err, ErrTimeout) || e.Code() != "lock_acquire_timeout" {
		t.Errorf("code %q, %v", e.Code(), err)
	}
	return e
}

// safeReport fails t when something in r could reach a terminal unchecked.
func safeReport(t *testing.T, r *Report) {
	t.Helper()
	if r.Holder != nil {
		safeRecord(t, r.Holder)
	}
	for _, s := range []string{string(r.Content), string(r.Kernel), string(r.HolderState), string(r.Liveness)} {
		safeText(t, "report", s)
	}
	for _, p := range r.Holders {
		safeText(t, "process name", p.Name)
	}
	if r.AgeSeconds < -1 || r.AgeSeconds != r.AgeSeconds {
		t.Errorf("age %v", r.AgeSeconds)
	}
}

// checkContent goes through a lock's life over bytes that lie under its name.
func checkContent(t *testing.T, content []byte, foreign bool) {
	t.Helper()
	n := newTarget(t)
	writeFile(t, n.lock, content)
	untouched := func(when string) {
		t.Helper()
		if got := readFile(t, n.lock); foreign && !bytes.Equal(got, content) {
			t.Fatalf("%s: %d bytes of another's became %d", when, len(content), len(got))
		}
	}
	r, err := Status(n.target, Options{})
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	safeReport(t, r)
	untouched("status")
	if readFile := readFile(t, n.lock); !bytes.Equal(readFile, content) {
		t.Fatal("status changed the lock file")
	}

	l, d, err := TryAcquire(n.target, Options{})
	if errors.Is(err, ErrOtherFamily) {
		safeText(t, "error", err.Error())
		if got := readFile(t, n.lock); !bytes.Equal(got, content) {
			t.Fatal("a lock of the other family was changed")
		}
		return
	}
	if err != nil || d != nil {
		t.Fatalf("%v, %v", d, err)
	}
	if err := l.Fence(); err != nil {
		t.Errorf("fence: %v", err)
	}
	if w := l.Warning(); w != nil {
		safeText(t, "warning", w.Error())
	}
	// Another waiter, and another look, while it is held.
	e := mustTimeOut(t, n.target, Options{})
	safeText(t, "timeout", e.Error())
	if _, d, err := TryAcquire(n.target, Options{}); d == nil {
		t.Errorf("the second got no duplicate but %v", err)
	}
	if r, err = Status(n.target, Options{}); err != nil {
		t.Fatalf("status while held: %v", err)
	}
	safeReport(t, r)
	mustRelease(t, l)
	untouched("release")
	log, err := Incidents(n.target, Options{})
	if err != nil || len(log.Rows) != 1 || log.Skipped != 0 {
		t.Errorf("incidents: %+v, %v", log, err)
	}

	// Whoever waits while others' bytes lie there is told, and gets in.
	h, err := Open(n.target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l, err := h.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if onUnix := runtime.GOOS != "windows"; onUnix && foreign && (l.Warning() == nil || !strings.Contains(l.Warning().Error(), "left alone")) {
			t.Errorf("warning over another's bytes: %v", l.Warning())
		}
		mustRelease(t, l)
		untouched("a handle's release")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestHostileContent(t *testing.T) {
	for name, s := range hostileRecords {
		t.Run(name, func(t *testing.T) { checkContent(t, []byte(s), false) })
	}
}

func TestForeignContent(t *testing.T) {
	for name, s := range foreignFiles {
		t.Run(name, func(t *testing.T) { checkContent(t, []byte(s), true) })
	}
}

func FuzzLockFile(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		foreign := len(b) > 0 && !looksDamaged(b[:min(len(b), maxRecord)])
		if _, err := decode(b); err == nil {
			foreign = false
		}
		checkContent(t, b, foreign)
	})
}

// TestYarnLock is case 33: a lock file of another program beside a target.
func TestYarnLock(t *testing.T) {
	dir := t.TempDir()
	target, lock := filepath.Join(dir, "yarn"), filepath.Join(dir, "yarn.lock")
	content := []byte("# yarn lockfile v1\n\n" + strings.Repeat("left-pad@^1.0.0:\n  version \"1.3.0\"\n\n", 100))
	writeFile(t, lock, content)
	l := mustAcquire(t, target, Options{})
	c := startChild(t, "try", lockArg{Target: target})
	if got := c.hear(); !strings.HasPrefix(got, "duplicate ") {
		t.Errorf("another process: %s", got)
	}
	c.finish()
	mustRelease(t, l)
	if !bytes.Equal(readFile(t, lock), content) {
		t.Error("yarn.lock was changed")
	}
}

// TestContentBecomesForeign: what was empty when a handle opened it may be
// another's by the time of the next hold.
func TestContentBecomesForeign(t *testing.T) {
	n := newTarget(t)
	h, err := Open(n.target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	for _, s := range []string{"short", strings.Repeat("long", 1000)} {
		l, err := h.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		writeFile(t, n.lock, []byte(s))
		if l, err = h.Acquire(context.Background()); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		if got := readFile(t, n.lock); string(got) != s {
			t.Errorf("%d bytes of another's became %d", len(s), len(got))
		}
		writeFile(t, n.lock, nil)
	}
}

// TestContentBecomesForeignWhileHeld: the guarded program may itself make the
// file that our lock's name happens to be, as yarn does under a lock of yarn.
func TestContentBecomesForeignWhileHeld(t *testing.T) {
	for _, s := range []string{"x", strings.Repeat("y", 393), strings.Repeat("long", 1000)} {
		n := newTarget(t)
		l := mustAcquire(t, n.target, Options{})
		writeFile(t, n.lock, []byte(s))
		mustRelease(t, l)
		if got := readFile(t, n.lock); string(got) != s {
			t.Errorf("%d bytes of another's became %d", len(s), len(got))
		}
	}
}

// TestOtherFamilyIsRefused: a lock file that is held by its token, and not by
// the kernel, is neither locked nor touched.
func TestOtherFamilyIsRefused(t *testing.T) {
	for _, s := range []string{
		`{"hostname":"h","pid":5,"acquired_at":"2026-11-30T17:43:32Z","token":"0f0f"}`,
		`{"acquired_at":"2026-11-30T17:43:32Z","hostname":"h","pid":5,"token":"0f0f"}` + "\n",
	} {
		n := newTarget(t)
		writeFile(t, n.lock, []byte(s))
		for _, o := range []Options{{}, {Shared: true}, {NoRecord: true}, {Policy: SingleFlight}} {
			if l, d, err := TryAcquire(n.target, o); !errors.Is(err, ErrOtherFamily) {
				t.Errorf("%+v: %v, %v, %v; want ErrOtherFamily", o, l, d, err)
			}
		}
		if l, d, err := TryAcquire(n.lock, Options{Exact: true}); !errors.Is(err, ErrOtherFamily) {
			t.Errorf("exactly: %v, %v, %v; want ErrOtherFamily", l, d, err)
		}
		if r, err := Status(n.target, Options{}); err != nil || r.Content != ContentOther || r.Holder != nil {
			t.Errorf("status %+v, %v", r, err)
		}
		if got := readFile(t, n.lock); string(got) != s {
			t.Errorf("it became %q", got)
		}
	}
}
