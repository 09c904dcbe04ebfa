package kernlock

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// handles opens n handles of one new target.
func handles(t *testing.T, n int, o Options) []*Handle {
	t.Helper()
	target := filepath.Join(t.TempDir(), "f")
	var all []*Handle
	for range n {
		h, err := Open(target, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		all = append(all, h)
	}
	return all
}

func acquire(t *testing.T, h *Handle) *Lock {
	t.Helper()
	l, err := h.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waitForWaiters returns when the kernel shows n waiters of h's lock.
func waitForWaiters(t *testing.T, h *Handle, n int) {
	t.Helper()
	for range 5000 {
		k := lookKernel().facts(h.names.lock)
		if k.waiters < 0 {
			t.Skip("needs the kernel's list of waiters: /proc/locks of the initial pid namespace")
		}
		if k.waiters == n {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("never saw %d waiters", n)
}

// goroutines waits until no more than want are left, and says how many are.
func goroutines(want int) int {
	n := runtime.NumGoroutine()
	for i := 0; n > want && i < 1000; i++ {
		<-time.After(time.Millisecond)
		n = runtime.NumGoroutine()
	}
	return n
}

func TestCancelledWaitsEndAndLeaveNoGoroutine(t *testing.T) {
	hs := handles(t, 3, Options{Timeout: time.Hour})
	holder := acquire(t, hs[0])
	before := runtime.NumGoroutine()
	for i := range 200 {
		// One waits at the head of the queue, in flock, and one behind it.
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(chan error, 2)
		for _, h := range hs[1:] {
			go func() {
				l, err := h.Acquire(ctx)
				if err == nil {
					_ = l.Release()
				}
				errs <- err
			}()
		}
		if i%2 == 0 { // and otherwise while they are on their way
			waitForWaiters(t, hs[0], 2)
		}
		cancel()
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
	if n := goroutines(before); n > before {
		t.Errorf("%d goroutines before, %d after", before, n)
	}
	mustRelease(t, holder)
	mustRelease(t, acquire(t, hs[1]))
	if log, err := Incidents(hs[0].Target(), Options{}); err != nil || len(log.Rows) != 0 {
		t.Errorf("a cancelled wait left an incident: %v, %v", log, err)
	}
}

func TestCancelNamesItsCause(t *testing.T) {
	hs := handles(t, 2, Options{Timeout: time.Hour})
	defer mustRelease(t, acquire(t, hs[0]))
	why := errors.New("the agent was told to stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		waitForWaiters(t, hs[0], 1)
		cancel(why)
	}()
	if _, err := hs[1].Acquire(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Error(err)
	}
}

// With its signal ignored a wait can only poll. It must then still end, and
// still get the lock.
func TestIgnoredSignalFallsBackToPolling(t *testing.T) {
	sig := syscall.Signal(interruptSignal)
	signal.Ignore(sig)
	t.Cleanup(func() { handleAgain(sig) })
	if _, ok := interruptible(context.Background()); ok {
		t.Fatal("an ignored signal counts as usable")
	}
	hs := handles(t, 2, Options{Timeout: time.Hour})
	l := acquire(t, hs[0])
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := hs[1].Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	got := make(chan *Lock)
	go func() { got <- acquire(t, hs[1]) }()
	mustRelease(t, l)
	mustRelease(t, <-got)
}

// handleAgain undoes a signal.Ignore: Reset alone would leave it ignored.
func handleAgain(sig os.Signal) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	signal.Stop(c)
}

// After os/signal has touched the signal, its handler restarts calls again.
func TestSignalHandlerIsPreparedForEachWait(t *testing.T) {
	sig := syscall.Signal(interruptSignal)
	for range 3 {
		signal.Ignore(sig)
		handleAgain(sig)
		in, ok := interruptible(context.Background())
		if !ok {
			t.Fatal("not usable after a reset")
		}
		var sa sigaction
		if rtSigaction(nil, &sa) != 0 || sa.flags&saRestart != 0 {
			t.Errorf("flags are %#x", sa.flags)
		}
		in.leave()
	}
}

// unwatched keeps waiters from looking past the head of their queue, which
// they do when it seems not to run.
func unwatched(t *testing.T) {
	t.Helper()
	was := watchFirst
	watchFirst = time.Hour
	t.Cleanup(func() { watchFirst = was })
}

func TestWaitersGetTheirTurnInOrder(t *testing.T) {
	unwatched(t)
	const n = 6
	hs := handles(t, n+1, Options{Timeout: time.Hour})
	l := acquire(t, hs[n])
	order := make(chan int, n)
	for i, h := range hs[:n] {
		go func() {
			l, err := h.Acquire(context.Background())
			order <- i
			if err == nil {
				_ = l.Release()
			}
		}()
		waitForWaiters(t, h, i+1)
	}
	mustRelease(t, l)
	for i := range n {
		if got := <-order; got != i {
			t.Errorf("turn %d went to waiter %d", i, got)
		}
	}
}

// A lock that is free each time one looks, but was held in between, is on its way to the next in the queue: who looks
// must not overtake them. One that nobody had is taken past a head that does not come.
func TestFreeLockThatChangesHandsIsNotAbandoned(t *testing.T) {
	h := handles(t, 2, Options{Timeout: time.Hour})
	f, err := openLockFile(&h[0].names, &h[0].opts)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	pauses := 0
	if h[0].abandoned(f, func() bool {
		if pauses++; pauses == looks {
			mustRelease(t, acquire(t, h[1]))
		}
		return true
	}) {
		t.Fatal("a lock that others get is taken for abandoned")
	}
	if pauses != looks {
		t.Errorf("looked %d times more, want %d", pauses, looks)
	}
	mustRelease(t, acquire(t, h[1])) // and it was let go
	if !h[0].abandoned(f, func() bool { return true }) {
		t.Error("a lock that nobody comes for is not abandoned")
	}
	if _, held, err := h[1].TryAcquire(); err != nil || held == nil {
		t.Errorf("what was abandoned was not taken: %v", err)
	}
}

// The holder that comes back at once must not overtake who waited meanwhile.
func TestReleaserDoesNotOvertakeTheQueue(t *testing.T) {
	unwatched(t)
	hs := handles(t, 2, Options{Timeout: time.Hour})
	for range 50 {
		l := acquire(t, hs[0])
		order := make(chan string, 2)
		done := make(chan bool)
		go func() {
			l := acquire(t, hs[1])
			order <- "waiter"
			mustRelease(t, l)
			close(done)
		}()
		waitForWaiters(t, hs[0], 1)
		mustRelease(t, l)
		l = acquire(t, hs[0])
		order <- "releaser"
		mustRelease(t, l)
		if first := <-order; first != "waiter" {
			t.Fatalf("%s came first", first)
		}
		<-done
	}
}

// The same of a holder that came out of the queue itself, as all do under load.
func TestQueuedHolderDoesNotOvertakeTheQueue(t *testing.T) {
	unwatched(t)
	hs := handles(t, 3, Options{Timeout: time.Hour})
	for range 50 {
		first := acquire(t, hs[0])
		order := make(chan string, 2)
		inside, go2, done := make(chan bool), make(chan bool), make(chan bool)
		go func() {
			l := acquire(t, hs[1]) // through the queue
			close(inside)
			<-go2
			mustRelease(t, l)
			l = acquire(t, hs[1])
			order <- "releaser"
			mustRelease(t, l)
			done <- true
		}()
		waitForWaiters(t, hs[0], 1)
		mustRelease(t, first)
		<-inside
		go func() {
			l := acquire(t, hs[2])
			order <- "waiter"
			mustRelease(t, l)
			done <- true
		}()
		waitForWaiters(t, hs[0], 1)
		close(go2)
		if got := <-order; got != "waiter" {
			t.Fatalf("%s came first", got)
		}
		<-done
		<-done
	}
}

// Shared waiters take their turn one by one and are then inside at once.
func TestSharedWaiters(t *testing.T) {
	hs := handles(t, 1, Options{})
	l := acquire(t, hs[0])
	shared := make(chan *Lock)
	for range 3 {
		go func() {
			l, err := Acquire(context.Background(), hs[0].Target(), Options{Shared: true, Timeout: time.Hour})
			if err != nil {
				t.Error(err)
			}
			shared <- l
		}()
	}
	waitForWaiters(t, hs[0], 3)
	mustRelease(t, l)
	var all []*Lock
	for range 3 {
		all = append(all, <-shared)
	}
	if _, dup, err := hs[0].TryAcquire(); err != nil || dup == nil {
		t.Errorf("an exclusive holder got in beside shared ones: %v", err)
	}
	f, err := openLockFile(&hs[0].names, &hs[0].opts)
	if err != nil {
		t.Fatal(err)
	}
	if f.queued() {
		t.Error("a shared holder keeps its place in the queue, and so the next one out")
	}
	_ = f.close()
	for _, l := range all {
		mustRelease(t, l)
	}
}
