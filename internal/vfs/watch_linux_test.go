package vfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
)

// A watch wakes for its own name being moved and for nothing else; the name's coming, other names
// and unlinking wake nobody.
func TestWatch(t *testing.T) {
	fsys := vfs.OS().(vfs.Watcher)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	w, err := fsys.Watch(dir, "lock")
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	for _, name := range []string{"lock", "other"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(at("other"), at("another")); err != nil {
		t.Fatal(err)
	}

	woken := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	wait := func() { woken <- w.Wait(ctx, time.Hour, 0) }
	go wait()
	select {
	case err := <-woken:
		t.Fatalf("woken by another name, %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := os.Rename(at("lock"), at("moved")); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	go wait()
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := w.Wait(t.Context(), time.Millisecond, 0); err != nil {
		t.Fatal(err)
	}
}

// A watch for arrivals wakes for every way in which a name can come.
func TestWatchArrivals(t *testing.T) {
	fsys := vfs.OS().(vfs.ArrivalWatcher)
	dir, other := t.TempDir(), t.TempDir()
	w, err := fsys.WatchArrivals(dir)
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	if err := os.WriteFile(filepath.Join(other, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, come := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "created"), nil, 0o600) },
		func() error { return os.Link(filepath.Join(other, "a"), filepath.Join(dir, "linked")) },
		func() error { return os.Rename(filepath.Join(other, "a"), filepath.Join(dir, "moved")) },
	} {
		woken := make(chan error)
		go func() { woken <- w.Wait(t.Context(), time.Hour, 0) }()
		if err := come(); err != nil {
			t.Fatal(err)
		}
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatchSeesDeath(t *testing.T) {
	fsys := vfs.OS().(vfs.Watcher)
	w, err := fsys.Watch(t.TempDir(), "lock")
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Skip(err)
	}
	woken := make(chan error)
	go func() { woken <- w.Wait(t.Context(), time.Hour, int64(p.Pid)) }()
	p.Kill()
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	p.Wait()
}
