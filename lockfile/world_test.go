package lockfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// world is one folder on the real file system with a guarded file in it, and a say in who is dead.
type world struct {
	t     *testing.T
	class string
	dir   string
	path  string
	lock  string
	// dead pids; every other pid in an actor's judgement is alive. Guarded by mu.
	mu   sync.Mutex
	dead map[int64]bool
	// probed is every pid that was judged on this host.
	probed []int64
}

const testHost = "here"

func newWorld(t *testing.T, class string) *world {
	dir := t.TempDir()
	if testDir != "" {
		var err error
		if dir, err = os.MkdirTemp(testDir, "lockfile"); err != nil { //nolint:usetesting // on that volume
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	if class == classes[0] && volumeWithoutLinks() {
		t.Skip("no hard links on this volume")
	}
	path := filepath.Join(dir, "log")
	return &world{t: t, class: class, dir: dir, path: path, lock: path + ".lock", dead: map[int64]bool{}}
}

// actor is a process of this world: options that make the code believe that it is pid.
func (w *world) actor(pid int64) Options { return w.actorFS(pid, classFS(w.class)) }

func (w *world) actorFS(pid int64, fsys vfs.FS) Options {
	self := proc.Holder{PID: pid, Host: testHost}
	return Options{NoSync: true, Timeout: time.Minute, Seams: &seam.Set{
		FS:      fsys,
		Process: seam.NewProcess(func() proc.Holder { return self }, func() string { return proc.HostTagFor(testHost, nil) }, true),
		Judge:   w.judge,
	}}
}

func (w *world) judge(h proc.Holder, _ string) proc.Judgement {
	if h.Host != "" && h.Host != testHost {
		return proc.Judgement{Verdict: proc.Unknown, Reason: proc.OtherHost}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probed = append(w.probed, h.PID)
	if w.dead[h.PID] {
		return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
	}
	return proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
}

func (w *world) dies(pid int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[pid] = true
}

// onStep sets the actor's step hook.
func onStep(o Options, f func(seam.Step)) Options {
	set := *o.Seams
	set.OnStep = f
	o.Seams = &set
	return o
}

// once runs f the first time that the step is reached.
func once(step seam.Step, f func()) func(seam.Step) {
	var o sync.Once
	return func(s seam.Step) {
		if s == step {
			o.Do(f)
		}
	}
}

// stall returns a hook that stops at the step, a channel closed when it has, and the function that
// lets it go on.
func stall(step seam.Step) (hook func(seam.Step), reached chan struct{}, resume func()) {
	reached = make(chan struct{})
	gate := make(chan struct{})
	return once(step, func() { close(reached); <-gate }), reached, func() { close(gate) }
}

func (w *world) plant(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// lockOf is a lock's content.
func lockOf(pid int64, host string) string {
	l := format.Lock{PID: pid, Host: host, Token: "0123456789abcdef01234567", AcquiredAt: "2026-01-02T03:04:05.678Z"}
	return string(l.Encode())
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) names() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// only checks that nothing but these names is in the folder.
func (w *world) only(names ...string) {
	w.t.Helper()
	if got := w.names(); !slices.Equal(got, names) {
		w.t.Fatalf("the folder has %q, want %q", got, names)
	}
}

// records checks that the guarded file has each of the records exactly once, in any order.
func (w *world) records(ids ...string) {
	w.t.Helper()
	got := strings.Fields(w.read("log"))
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		w.t.Fatalf("the file has the records %q, want %q", got, ids)
	}
}

func (w *world) update(o Options, id string) {
	w.t.Helper()
	if err := update(w.t.Context(), w.path, o, id); err != nil {
		w.t.Fatal(err)
	}
}

// refused checks that one try finds the lock held, by a holder of this description.
func (w *world) refused(o Options, state HolderState) *HeldError {
	w.t.Helper()
	o.Timeout = -1
	h, err := Acquire(w.t.Context(), w.path, o)
	if err == nil {
		w.t.Fatalf("the lock was taken; released: %v", h.Release())
	}
	return w.isHeld(err, state)
}

func (w *world) isHeld(err error, state HolderState) *HeldError {
	w.t.Helper()
	var held *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
		w.t.Fatalf("got %v, want a HeldError", err)
	}
	if held.State.Holder.State != state {
		w.t.Fatalf("the holder is %s, want %s", held.State.Holder.State, state)
	}
	return held
}

// in runs f in a goroutine and returns the channel of its error.
func in(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func (w *world) nil(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// waits returns options whose waiting can be watched: the channel gets a value each time the actor
// begins to wait, and the wait then ends when it is received from.
func waits(o Options) (Options, chan time.Duration) {
	ch := make(chan time.Duration)
	set := *o.Seams
	set.Clock = gatedClock{ch}
	// Without this the waiter would watch the folder instead.
	set.FS = struct{ vfs.FS }{set.FS}
	o.Seams = &set
	return o, ch
}

type gatedClock struct{ ch chan time.Duration }

func (c gatedClock) Now() time.Time { return time.Now() }

func (c gatedClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case c.ch <- d:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish lets an actor from waits wait as often as it wants, until it is done.
func finish(waiting chan time.Duration, done chan error) error {
	for {
		select {
		case <-waiting:
		case err := <-done:
			return err
		}
	}
}
