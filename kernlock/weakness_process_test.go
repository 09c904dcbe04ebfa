package kernlock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWeakness09FirstOpeners: of two that come first to a lock which has no
// file yet, one holds and the other is told so.
func TestWeakness09FirstOpeners(t *testing.T) {
	dir := t.TempDir()
	a, b := startChild(t, "contend", nil), startChild(t, "contend", nil)
	for i := range 20 {
		target := filepath.Join(dir, "target"+string(rune('a'+i)))
		a.tell(target)
		b.tell(target)
		got := [2]string{a.hear(), b.hear()}
		if got != [2]string{"held", "duplicate"} && got != [2]string{"duplicate", "held"} {
			t.Fatalf("round %d: %q", i, got)
		}
		a.tell("release")
		b.tell("release")
		a.expect("done")
		b.expect("done")
	}
	a.finish()
	b.finish()
}

func TestWeakness16WaitCanBeCancelled(t *testing.T) {
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{})
	reason := errors.New("the reason given")
	for name, c := range map[string]struct {
		make func() (context.Context, context.CancelFunc)
		want []error
	}{
		"cancelled before": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}, []error{context.Canceled}},
		"cancelled before, with a cause": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(reason)
			return ctx, func() {}
		}, []error{reason}},
		"cancelled while it waits": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			timer := time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
			return ctx, func() { timer.Stop() }
		}, []error{reason}},
		"a deadline of its own": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 20*time.Millisecond)
		}, []error{context.DeadlineExceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.make()
			defer cancel()
			got, err := Acquire(ctx, n.target, Options{Timeout: time.Hour})
			if err == nil {
				t.Fatalf("got %v", got)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%v does not match %v", err, want)
				}
			}
			if errors.Is(err, ErrTimeout) {
				t.Errorf("%v matches ErrTimeout", err)
			}
		})
	}
	if _, err := os.Lstat(n.incidents()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an incident was written for a context's end: %v", err)
	}
	// A context that outlives the policy's wait changes nothing.
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, err := Acquire(ctx, n.target, Options{Timeout: 20 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("%v; want a timeout", err)
	}
	mustRelease(t, l)
	if l, err := Acquire(ctx, n.target, Options{Timeout: time.Hour}); err != nil {
		t.Error(err)
	} else {
		mustRelease(t, l)
	}
}

func TestWeakness17OtherProcessesDoNotHold(t *testing.T) {
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{})
	// A process that was started in the hold, and outlives it.
	c := startChild(t, "idle", nil)
	c.expect("up")
	mustRelease(t, l)
	mustRelease(t, mustAcquire(t, n.target, Options{Timeout: TryOnce}))
	c.tell("end")
	c.finish()
}

func TestWeakness18Reentry(t *testing.T) {
	n, other := newTarget(t), newTarget(t)
	outer := mustAcquire(t, n.target, Options{})
	type key struct{}
	inner, err := Acquire(outer.Context(), other.target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	derived, cancel := context.WithTimeout(context.WithValue(inner.Context(), key{}, 1), time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{
		"own": outer.Context(), "of a lock inside": inner.Context(), "derived": derived,
		"without cancel": context.WithoutCancel(outer.Context()),
	} {
		for _, o := range []Options{{Timeout: time.Hour}, {Policy: SingleFlight}, {Timeout: time.Hour, Shared: true}} {
			got, err := Acquire(ctx, n.target, o)
			if !errors.Is(err, ErrReentrant) || !strings.Contains(err.Error(), n.target) {
				t.Errorf("context %s, %+v: %v, %v; want ErrReentrant that names the target", name, o, got, err)
			}
		}
		if _, err := Acquire(ctx, outer.LockPath(), Options{Exact: true, Timeout: time.Hour}); !errors.Is(err, ErrReentrant) {
			t.Errorf("context %s, the lock file named: %v", name, err)
		}
	}
	// Another goroutine, which has no such context, waits as others do.
	if _, err := Acquire(context.Background(), n.target, Options{Timeout: TryOnce}); !errors.Is(err, ErrTimeout) {
		t.Errorf("another goroutine: %v", err)
	}
	waiter := make(chan error, 1)
	go func() {
		l, err := Acquire(context.Background(), n.target, Options{Timeout: time.Hour})
		if err == nil {
			err = l.Release()
		}
		waiter <- err
	}()
	mustRelease(t, inner)
	mustRelease(t, outer)
	if err := <-waiter; err != nil {
		t.Errorf("another goroutine: %v", err)
	}
	// The hold is over: what still carries its values may lock again.
	ctx := context.WithoutCancel(outer.Context())
	l, err := Acquire(ctx, n.target, Options{})
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	mustRelease(t, l)
}

func TestContextEndsWithTheLock(t *testing.T) {
	n := newTarget(t)
	parent, cancel := context.WithCancel(context.Background())
	l, err := Acquire(parent, n.target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := l.Context()
	if ctx != l.Context() || ctx.Err() != nil {
		t.Error("not one context")
	}
	mustRelease(t, l)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrLost) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	for _, err := range []error{l.Release(), l.Fence(), l.Inherit()} {
		if err == nil {
			t.Error("nil after the release")
		}
	}
	if err := l.Release(); !errors.Is(err, ErrLost) {
		t.Errorf("second release: %v", err)
	}
	if l, err = Acquire(parent, n.target, Options{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-l.Context().Done()
	if err := l.Fence(); err != nil {
		t.Errorf("the lock ended with its parent's context: %v", err)
	}
	mustRelease(t, l)
	late := l.Context()
	<-late.Done()

	// A context that is first asked for after the release has ended already.
	if l, err = Acquire(context.Background(), n.target, Options{}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, l)
	<-l.Context().Done()
	if !errors.Is(context.Cause(l.Context()), ErrLost) {
		t.Errorf("cause %v", context.Cause(l.Context()))
	}
}

func TestKilledHolderLetsGo(t *testing.T) {
	n := newTarget(t)
	for range 5 {
		c := startChild(t, "hold", lockArg{Target: n.target, Options: Options{Agent: "victim"}})
		c.expect("held")
		if _, d, err := TryAcquire(n.target, Options{}); d == nil || d.Holder == nil || d.Holder.AgentID != "victim" {
			t.Fatalf("while it is held: %+v, %v", d, err)
		}
		c.kill()
		l, err := Acquire(context.Background(), n.target, Options{})
		if err != nil {
			t.Fatalf("after the holder was killed: %v", err)
		}
		mustRelease(t, l)
	}
}

func TestMonitorPolicy(t *testing.T) {
	n := newTarget(t)
	mustAcquire(t, n.target, Options{Agent: "holder"})
	_, err := Acquire(context.Background(), n.target, Options{Policy: Monitor})
	var e *TimeoutError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	w := e.Incident.Waiter
	if e.Incident.Policy != Monitor || w.TimeoutSeconds != 1 || w.WaitedSeconds < 1 || w.Operation != "monitor" {
		t.Errorf("%+v", e.Incident)
	}
	a := e.Incident.Action
	if a.RetryMode != "next_scheduled_poll_after_holder_inspection" || !strings.Contains(strings.Join(a.Steps, " "), a.RetryMode) {
		t.Errorf("%+v", a)
	}
}
