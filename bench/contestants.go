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
	"github.com/stile-lock/stile/lockfile"
	"github.com/stile-lock/stile/record"
)

// passage is how a worker goes through the lock: lock waits as long as it
// takes.
type passage struct {
	lock   func() error
	unlock func() error
	write  func(text string) error // under the lock; nil: a new file renamed over the old
	long   func()                  // called by whoever will hold for long; may be nil
}

// contestant is one way to lock a file, or to change one under a lock. Those
// of another language are run by the program that the bench compiles from
// c/floor.c, or by a script in peers/, under the same worker commands.
type contestant struct {
	id    string
	about string
	open  func(path string) (passage, error)
	in    string      // "c", "node", "python" or "etcd"; "" for Go
	doc   docOpener   // of a document's appends
	line  linesOpener // of appended lines
}

// foreverish is the longest wait that a benchmark asks for. No waiter gets
// near it.
const foreverish = time.Hour

var contestants = []contestant{
	{id: "kernlock", about: "stile, no record, handle kept", open: openKernlock(kernlock.Options{NoRecord: true})},
	{id: "kernlock+record", about: "stile, holder record, handle kept", open: openKernlock(kernlock.Options{})},
	{id: "kernlock-once", about: "stile, no record, one-shot Acquire", open: onceKernlock(kernlock.Options{NoRecord: true})},
	{id: "kernlock+record-once", about: "stile, holder record, one-shot Acquire", open: onceKernlock(kernlock.Options{})},
	{id: "grant", about: "stile, a grant in a folder, lock and unlock: acquire; a landing that names what is there, and release; each synced", open: openGrant},
	{id: "grant+empty", about: "the same with an empty landing whose manifest is stored, synced", open: openGrantEmpty},
	{id: "gofrs", about: "gofrs/flock, Lock", open: openGofrs},
	{id: "gofrs-ctx", about: "gofrs/flock, TryLockContext every 10 ms: its way to wait with a deadline", open: openGofrsContext},
	{id: "lockedfile", about: "go-internal lockedfile, Mutex", open: openLockedfile},
	{id: "flock-go", about: "open, flock(2), unlock, close from Go; blocks, no checks, no deadline", open: openRaw},
	{id: "flock-go-kept", about: "flock(2) from Go on a descriptor that stays open", open: openRawKept},
	{id: "c-flock", about: "C: open, flock(2), unlock, close", in: "c"},
	{id: "c-floor", about: "C: the system calls of kernlock without a record: flock, statx, unlock on a kept descriptor", in: "c"},
	{id: "c-floor+record", about: "C: the same, and a read and two writes of a record", in: "c"},
	{id: "lockfile", about: "stile, Acquire and Release of a lock file, NoSync", open: openLockFile},
	{id: "c-lockfile", about: "C: the system calls of lockfile", in: "c"},
	{id: "proper-lockfile", about: "npm's proper-lockfile, lock and release; waiting, it tries again every 1 to 5 ms", in: "node"},
	{id: "record.Append", about: "stile, record.Append under a kernel lock, NoSync", doc: openAppend(record.UpdateOptions{NoSync: true})},
	{id: "record.Append+lockfile", about: "the same under a lock file", doc: openAppend(underLockFile)},
	{id: "record.Append+sync", about: "stile, record.Append under a kernel lock", doc: openAppend(record.UpdateOptions{})},
	{id: "lockfile+json", about: "stile, lock file, Read, encoding/json, Commit; NoSync", doc: openLockFileJSON},
	{id: "gofrs+json", about: "gofrs/flock, encoding/json, a new file renamed over the old", doc: openGofrsJSON},
	{id: "gofrs+json+sync", about: "the same with fsync of the new file and the folder", doc: openGofrsJSONSync},
	{id: "lockedfile.Transform", about: "go-internal lockedfile, Transform with encoding/json (writes in place)", doc: openTransform},
	{id: "proper-lockfile+write-file-atomic", about: "npm's both, JSON.parse and stringify, fsync off", in: "node"},
	{id: "proper-lockfile+write-file-atomic+sync", about: "the same with fsync, its default", in: "node"},
	{id: "filelock", about: "Python's filelock, tries every ms", in: "python"},
	{id: "filelock+json", about: "Python's filelock, tries every ms; json, os.replace", in: "python"},
	{id: "c-copy", about: "C: open, copy, rename; no lock, one process", in: "c"},
	{id: "c-copy+sync", about: "C: the same with fsync of the new file and the folder", in: "c"},
	{id: "record.Lines", about: "stile, record.Lines, no holder record", line: openLines(record.LineOptions{Lock: plainLock})},
	{id: "record.Lines+sync", about: "the same with Sync", line: openLines(record.LineOptions{Lock: plainLock, Sync: true})},
	{id: "sqlite-normal", about: "SQLite (mattn's driver), WAL, synchronous NORMAL, one INSERT a line", line: openSQLite("sqlite-normal")},
	{id: "sqlite-normal-modernc", about: "the same with modernc's driver", line: openSQLite("sqlite-normal-modernc")},
	{id: "sqlite-full", about: "SQLite (mattn's driver), WAL, synchronous FULL", line: openSQLite("sqlite-full")},
	{id: "sqlite-full-modernc", about: "the same with modernc's driver", line: openSQLite("sqlite-full-modernc")},
	{id: "bbolt-kept", about: "bbolt, one transaction a line, NoSync; the file stays open, so nobody else can write", line: openBolt(true, true)},
	{id: "bbolt-kept+sync", about: "the same, synced", line: openBolt(true, false)},
	{id: "bbolt", about: "bbolt, NoSync, opened for each line, since an open file keeps others out", line: openBolt(false, true)},
	{id: "bbolt+sync", about: "the same, synced", line: openBolt(false, false)},
	{id: "etcd", about: "etcd's concurrency.Mutex on a server of one member beside the clients, its data on the same file system", in: "etcd"},
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
	return passage{lock: f.Lock, unlock: f.Unlock}, nil
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

func openLockFile(path string) (passage, error) {
	ctx := context.Background()
	var h *lockfile.Hold
	return passage{
		lock: func() (err error) {
			h, err = lockfile.Acquire(ctx, path, lockfile.Options{NoSync: true, Timeout: foreverish})
			return err
		},
		unlock: func() error { return h.Release() },
		write:  func(text string) error { return h.Commit([]byte(text)) },
	}, nil
}
