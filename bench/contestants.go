package main

import (
	"context"
	"fmt"
	"os"
	"time"

	gofrs "github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/lockedfile"
	"golang.org/x/sys/unix"

	"github.com/stile-lock/stile/kernlock"
)

// passage is how a worker goes through the lock: lock waits as long as it
// takes.
type passage struct {
	lock   func() error
	unlock func() error
}

// contestant is one way to lock a file. The C ones are run by the program
// that the bench compiles from c/floor.c, under the same worker commands.
type contestant struct {
	id    string
	about string
	open  func(path string) (passage, error) // nil for C
}

// foreverish is the longest wait that a benchmark asks for. No waiter gets
// near it.
const foreverish = time.Hour

var contestants = []contestant{
	{"kernlock", "stile, no record, handle kept", openKernlock(kernlock.Options{NoRecord: true})},
	{"kernlock+record", "stile, holder record, handle kept", openKernlock(kernlock.Options{})},
	{"kernlock-once", "stile, no record, one-shot Acquire", onceKernlock(kernlock.Options{NoRecord: true})},
	{"kernlock+record-once", "stile, holder record, one-shot Acquire", onceKernlock(kernlock.Options{})},
	{"gofrs", "gofrs/flock, Lock", openGofrs},
	{"gofrs-ctx", "gofrs/flock, TryLockContext every 10 ms: its way to wait with a deadline", openGofrsContext},
	{"lockedfile", "go-internal lockedfile, Mutex", openLockedfile},
	{"flock-go", "open, flock(2), unlock, close from Go; blocks, no checks, no deadline", openRaw},
	{"flock-go-kept", "flock(2) from Go on a descriptor that stays open", openRawKept},
	{"c-flock", "C: open, flock(2), unlock, close", nil},
	{"c-floor", "C: the system calls of kernlock without a record: flock, statx, unlock on a kept descriptor", nil},
	{"c-floor+record", "C: the same, and a read and two writes of a record", nil},
}

func findContestant(id string) (contestant, bool) {
	for _, c := range contestants {
		if c.id == id {
			return c, true
		}
	}
	return contestant{}, false
}

func openKernlock(opts kernlock.Options) func(string) (passage, error) {
	return func(path string) (passage, error) {
		opts.Timeout = foreverish
		opts.Agent, opts.Operation = "bench", "cycle"
		h, err := kernlock.Open(path, opts)
		if err != nil {
			return passage{}, err
		}
		ctx := context.Background()
		var l *kernlock.Lock
		return passage{
			lock:   func() (err error) { l, err = h.Acquire(ctx); return err },
			unlock: func() error { return l.Release() },
		}, nil
	}
}

func onceKernlock(opts kernlock.Options) func(string) (passage, error) {
	return func(path string) (passage, error) {
		opts.Timeout = foreverish
		opts.Agent, opts.Operation = "bench", "cycle"
		ctx := context.Background()
		var l *kernlock.Lock
		return passage{
			lock:   func() (err error) { l, err = kernlock.Acquire(ctx, path, opts); return err },
			unlock: func() error { return l.Release() },
		}, nil
	}
}

func openGofrs(path string) (passage, error) {
	f := gofrs.New(path + ".lock")
	return passage{f.Lock, f.Unlock}, nil
}

func openGofrsContext(path string) (passage, error) {
	f := gofrs.New(path + ".lock")
	ctx := context.Background()
	return passage{
		lock: func() error {
			ok, err := f.TryLockContext(ctx, 10*time.Millisecond)
			if err == nil && !ok {
				return fmt.Errorf("neither a lock nor an error")
			}
			return err
		},
		unlock: f.Unlock,
	}, nil
}

func openLockedfile(path string) (passage, error) {
	m := lockedfile.MutexAt(path + ".lock")
	var unlock func()
	return passage{
		lock:   func() (err error) { unlock, err = m.Lock(); return err },
		unlock: func() error { unlock(); return nil },
	}, nil
}

func rawLock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

func openRaw(path string) (passage, error) {
	path += ".lock"
	fd := -1
	return passage{
		lock: func() (err error) {
			fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
			if err != nil {
				return os.NewSyscallError("open", err)
			}
			return rawLock(fd)
		},
		unlock: func() error {
			if err := unix.Flock(fd, unix.LOCK_UN); err != nil {
				return err
			}
			return unix.Close(fd)
		},
	}, nil
}

func openRawKept(path string) (passage, error) {
	fd, err := unix.Open(path+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	return passage{
		lock:   func() error { return rawLock(fd) },
		unlock: func() error { return unix.Flock(fd, unix.LOCK_UN) },
	}, err
}
