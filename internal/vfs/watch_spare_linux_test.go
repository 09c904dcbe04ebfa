package vfs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func watchOf(t *testing.T, dir string) *lent {
	t.Helper()
	w, err := osFS{}.Watch(dir, "lock")
	if err != nil {
		t.Skip(err)
	}
	return w.(*lent)
}

// noSpare begins and ends a test without a watch that is kept. What is kept in it does not end by itself.
func noSpare(t *testing.T) {
	was := spareFor
	spareFor = time.Hour
	t.Cleanup(func() { spareFor = was })
	drop := func() {
		spare.Lock()
		w := spare.w
		spare.Unlock()
		if w != nil {
			w.expired()
		}
	}
	drop()
	t.Cleanup(drop)
}

func moveLock(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "lock")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
}

// wakesForNew fails unless w sleeps until the lock is moved.
func wakesForNew(t *testing.T, w *lent, dir string) {
	t.Helper()
	woken := make(chan error)
	go func() { woken <- w.Wait(t.Context(), time.Hour, 0) }()
	select {
	case err := <-woken:
		t.Fatalf("woken by what is over, %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	moveLock(t, dir)
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
}

// A watch that was kept is as good as a new one: neither what has happened in between nor a wait that was
// cancelled wakes it, and it does not follow a process that it followed before.
func TestKeptWatch(t *testing.T) {
	noSpare(t)
	dir := t.TempDir()
	first := watchOf(t, dir)
	inner := first.watch
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Wait(ctx, time.Hour, int64(os.Getpid())); err == nil {
		t.Fatal("a cancelled wait has no error")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	moveLock(t, dir)
	again := watchOf(t, dir)
	defer again.Close()
	if again.watch != inner {
		t.Fatal("it was not kept")
	}
	if again.pidfd >= 0 || again.pid != 0 {
		t.Error("it follows a process")
	}
	var buf [8]byte
	if n, err := (&osFile{fd: again.wake}).Read(buf[:]); n > 0 || err == nil {
		t.Error("it is awake")
	}
	wakesForNew(t, again, dir)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if other := watchOf(t, dir); other.watch == inner {
		t.Error("a second Close gave away another's watch")
	} else {
		other.Close()
	}
}

// A path may lead to another folder by the time the watch is asked for again.
func TestKeptWatchOfAnotherFolder(t *testing.T) {
	noSpare(t)
	dir := filepath.Join(t.TempDir(), "folder")
	for n, old := range []string{".1", ".2"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w := watchOf(t, dir)
		if n > 0 {
			moveLock(t, dir+".1")
		}
		wakesForNew(t, w, dir)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir, dir+old); err != nil {
			t.Fatal(err)
		}
	}
	if w, err := (osFS{}).Watch(dir, "lock"); err == nil {
		w.Close()
		t.Error("a folder that is gone is watched")
	}
}

// No more than one watch is kept, and that for a second: a user has few.
func TestKeptWatchEnds(t *testing.T) {
	noSpare(t)
	one, two := watchOf(t, t.TempDir()), watchOf(t, t.TempDir())
	first, second := one.watch, two.watch
	one.Close()
	two.Close()
	if first.inotify < 0 || second.inotify >= 0 {
		t.Fatal("not the first alone was kept")
	}
	first.expired()
	if first.inotify >= 0 || first.wake >= 0 {
		t.Error("it is still there after its time")
	}

	late := watchOf(t, t.TempDir())
	inner := late.watch
	inner.expired() // in use: not ended
	if inner.inotify < 0 {
		t.Fatal("ended while in use")
	}
	late.Close()
	if inner.inotify >= 0 {
		t.Error("kept with no timer to end it")
	}

	armed := watchOf(t, t.TempDir())
	inner = armed.watch
	inner.expired()
	if err := armed.Wait(t.Context(), time.Microsecond, 0); err != nil {
		t.Fatal(err)
	}
	armed.Close()
	if inner.inotify < 0 {
		t.Error("not kept after a wait that set the timer again")
	}
	if !inner.expiry.Stop() {
		t.Error("its timer does not run")
	}
	inner.expired()
}
