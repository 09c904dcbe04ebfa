package vfs

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A waiter ends its watch when it has just got the lock, while everybody waits for it: to close the
// watch, even in the background, cost it a fifth of the whole handoff. So a process keeps the watch it
// used last for a second or so, for its next wait in the same place; then the watch is closed.

// spareFor is how much longer than its last wait a watch may be kept. A user has few inotify instances.
// Tests change it.
var spareFor = time.Second

// spare is the one watch that is kept. Its mutex also guards each watch's armed.
var spare struct {
	sync.Mutex
	w *watch
}

// lent is a watch in one caller's hands, so that a second Close cannot give away what is another's by now.
type lent struct{ *watch }

// Close keeps the watch or ends it.
func (l *lent) Close() error {
	w := l.watch
	if w == nil {
		return nil
	}
	l.watch = nil
	if w.keep() {
		return nil
	}
	return w.end()
}

// lend makes a new watch one that may be kept.
func (w *watch) lend(place string, events uint32) *lent {
	w.place, w.events = place, events
	spare.Lock()
	defer spare.Unlock()
	w.armed = true
	w.expiry = time.AfterFunc(spareFor, w.expired)
	return &lent{w}
}

// arm puts off the end to spareFor after a wait of d. The timer is set before the watch is given up and
// not then: to begin a timer may wake a thread, which is what the close is put off for.
func (w *watch) arm(d time.Duration) {
	if w.expiry == nil {
		return
	}
	spare.Lock()
	defer spare.Unlock()
	w.armed = true
	w.expiry.Reset(d + spareFor)
}

// keep makes w the spare watch if there is none and w's timer is still to come.
func (w *watch) keep() bool {
	spare.Lock()
	defer spare.Unlock()
	if !w.armed || spare.w != nil {
		return false
	}
	spare.w = w
	return true
}

// expired ends a watch that nobody has asked for since. One in use is not kept when it is given up.
func (w *watch) expired() {
	spare.Lock()
	w.armed = false
	kept := spare.w == w
	if kept {
		spare.w = nil
	}
	spare.Unlock()
	if kept {
		_ = w.end()
	}
}

// takeSpare returns the spare watch if it is of this place, as good as new; otherwise nil.
func takeSpare(place, base string, events uint32) *lent {
	spare.Lock()
	w := spare.w
	if w == nil || w.place != place || w.base != base || w.events != events {
		spare.Unlock()
		return nil
	}
	spare.w = nil
	spare.Unlock()
	w.arm(0)
	// The path may lead to another folder by now.
	if wd, err := unix.InotifyAddWatch(w.inotify, place, events|unix.IN_ONLYDIR); err != nil || wd != w.folder {
		_ = w.end()
		return nil
	}
	w.follow(0)                         // its pid may be another process's by now
	_, _ = unix.Read(w.wake, w.buf[:8]) // left by a wait that was cancelled
	for {
		if n, err := unix.Read(w.inotify, w.buf[:]); n <= 0 || err != nil {
			return &lent{w} // what happened meanwhile is no news: the caller looks for itself now
		}
	}
}
