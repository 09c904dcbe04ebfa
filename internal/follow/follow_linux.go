package follow

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// what wakes: a file made, moved here or written to. Removals do not: there is nothing new to read.
const what = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ONLYDIR

// Watch is the folders that are watched. It is used by one goroutine at a time.
type Watch struct {
	f      *os.File // nil: the system tells of nothing
	blind  bool     // some folder could not be watched
	events [16 << 10]byte
}

// New begins to watch; nothing yet.
func New() *Watch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &Watch{} // a user may have few of them: routine
	}
	return &Watch{f: os.NewFile(uintptr(fd), "inotify")}
}

// Add watches a folder, too; one that is watched already is watched on. A folder that cannot be watched is
// looked at now and then.
func (w *Watch) Add(dir string) {
	if w.f == nil {
		return
	}
	c, err := w.f.SyscallConn()
	if err == nil {
		cerr := c.Control(func(fd uintptr) { _, err = unix.InotifyAddWatch(int(fd), dir, what) })
		err = errors.Join(err, cerr)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) { // one that is gone changes no more
		w.blind = true
	}
}

// Wait returns when something has changed since the last Wait, after d, or with ctx's error.
func (w *Watch) Wait(ctx context.Context, d time.Duration) error {
	if w.f == nil || w.blind {
		d = min(d, moment)
	}
	if w.f == nil {
		return sleep(ctx, d)
	}
	if err := w.f.SetReadDeadline(time.Now().Add(d)); err != nil {
		return sleep(ctx, min(d, moment))
	}
	stop := context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		// One read for what woke, and further ones for what came with it.
		_, err := w.f.Read(w.events[:])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			return sleep(ctx, min(d, moment))
		}
		if err := w.f.SetReadDeadline(time.Now()); err != nil {
			return nil // woken all the same
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() error {
	if w.f == nil {
		return nil
	}
	return w.f.Close()
}
