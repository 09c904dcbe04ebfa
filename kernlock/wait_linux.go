//go:build linux && (amd64 || arm64)

package kernlock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// # The queue
//
// The kernel wakes every flock waiter of a file in order, but a releaser that
// comes back at once takes the lock again before the woken one has run: with
// holds of a millisecond one process gets nearly all of them. So waiters form
// a queue of their own: each waits for a byte-range lock on one byte of the
// lock file, far beyond its bytes, and only the one that has it, the head,
// waits in flock(2). It gives the byte back once it has the lock, so that the
// next one is at the head, and seen there, before the lock is let go again.
// Who comes newly and sees the byte locked joins instead of trying.
//
// The queue decides about turns alone. Exclusion is flock's, so programs that
// know nothing of the queue, flock(1) among them, exclude and are excluded as
// ever; they only may overtake. A waiter that dies leaves the queue with its
// description. Byte-range locks are of the open description (OFD), so two
// waiters in one process queue like two processes.

// queueByte is where waiters queue: no lock file is ever that long.
const queueByte = 1 << 40

func queueLock(typ int16) *unix.Flock_t {
	return &unix.Flock_t{Type: typ, Whence: unix.SEEK_SET, Start: queueByte, Len: 1}
}

// queueable says whether fd's filesystem keeps both kinds of lock in this
// kernel. On others a byte-range lock may collide with flock itself (NFS maps
// both to one) or be kept by a server that knows no queue.
func queueable(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch uint32(st.Type) { //nolint:unconvert // the type of Type differs by architecture
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.MSDOS_SUPER_MAGIC,
		unix.EXFAT_SUPER_MAGIC, zfsMagic, bcachefsMagic, ntfs3Magic:
		return true
	}
	return false
}

// Magic numbers that x/sys does not name.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
	ntfs3Magic    = 0x7366746e
)

// queued says whether others wait their turn on f.
func (f *lockFile) queued() bool {
	lk := queueLock(unix.F_WRLCK)
	return unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_GETLK, lk) == nil && lk.Type != unix.F_UNLCK
}

// A short hold is over before a thread could be put to sleep and woken, so a
// waiter first tries a few times on its processor. It stops as soon as others
// queue: their turn comes first.
const (
	spins    = 6
	spinTime = 4 * time.Microsecond
)

// spin tries for some microseconds to get the lock that was just found held.
func (h *Handle) spin(f *lockFile) (bool, error) {
	if !f.queueable || runtime.NumCPU() < 2 {
		return false, nil
	}
	for range spins {
		if f.queued() {
			return false, nil
		}
		for began := time.Now(); time.Since(began) < spinTime; {
		}
		if taken, err := f.try(h.opts.Shared); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// block waits for the lock until ctx ends. It returns the file that it
// locked, which is f or one opened since, and never both a file and an error.
func (h *Handle) block(ctx context.Context, f *lockFile) (*lockFile, error) {
	if !f.queueable {
		return h.poll(ctx, f)
	}
	in, ok := interruptible(ctx)
	if !ok {
		return h.poll(ctx, f)
	}
	defer in.leave()

	// A shared waiter that may only read cannot lock a byte for itself; it
	// queues in flock alone.
	if !f.readonly {
		w := h.watchQueue(in)
		err := in.run(w.over, func() error {
			return unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLKW, queueLock(unix.F_WRLCK))
		})
		if taken := w.stop(); taken != nil {
			_ = f.close() // and with it a turn that came after all
			return taken, nil
		}
		switch {
		case err == nil:
			defer func() {
				_ = unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLK, queueLock(unix.F_UNLCK))
			}()
		case ctx.Err() != nil:
			return nil, errWaitEnded
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOLCK):
			// No such locks, or none left: wait without the queue.
		default:
			return nil, lockError(err)
		}
	}
	how := unix.LOCK_EX
	if h.opts.Shared {
		how = unix.LOCK_SH
	}
	switch err := in.run(in.over, func() error { return unix.Flock(f.fd, how) }); {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, errWaitEnded
	default:
		return nil, lockError(err)
	}
}

// A queue whose head does not run (stopped by ^Z, or by a debugger) would
// hold up everyone behind it although the lock is free. So whoever waits for
// a turn looks now and then whether the lock is free and stays free: then the
// head is not coming, and the lock is taken past it.
const (
	watchLast = 250 * time.Millisecond
	// headPatience is how long a head that runs may take to take a lock that
	// it is woken for: longer than a busy machine leaves it waiting for a
	// processor, since otherwise the order is lost.
	headPatience = 20 * time.Millisecond
	// looks are how often it is looked in that time whether the lock is still free.
	looks = 4
)

// watchFirst is a variable for tests of the order: those must not depend on
// how busy the machine is.
var watchFirst = 10 * time.Millisecond

// watch looks after one wait for a turn.
type watch struct {
	h  *Handle
	in *interrupter

	mu       sync.Mutex
	timer    *time.Timer
	pause    time.Duration
	stopped  bool
	done     chan struct{} // closed by stop
	finished sync.WaitGroup
	taken    *lockFile
	own      *lockFile // what the looks are made through
}

func (h *Handle) watchQueue(in *interrupter) *watch {
	w := &watch{h: h, in: in, pause: watchFirst, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.pause, w.look)
	return w
}

// over says that the wait for a turn need not go on.
func (w *watch) over() bool {
	if w.in.over() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken != nil
}

// stop ends it and returns the lock that it took, if it did.
func (w *watch) stop() *lockFile {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	close(w.done)
	w.mu.Unlock()
	w.finished.Wait()
	if w.own != nil {
		_ = w.own.close()
	}
	return w.taken
}

func (w *watch) look() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.finished.Add(1)
	w.mu.Unlock()
	defer w.finished.Done()

	f := w.takeAbandoned()
	w.mu.Lock()
	w.taken = f
	if f == nil && !w.stopped {
		w.pause = min(2*w.pause, watchLast)
		w.timer.Reset(w.pause)
	}
	w.mu.Unlock()
	if f != nil {
		w.in.sendUntil(w.done)
	}
}

// takeAbandoned takes the lock if it is free and nobody comes for it. It uses a description of its own, kept from
// one look to the next: the waiting one may get its turn at any moment.
func (w *watch) takeAbandoned() *lockFile {
	if w.own != nil {
		if same, err := w.own.at(w.h.names.lock); err != nil || !same { // it was replaced
			_ = w.own.close()
			w.own = nil
		}
	}
	if w.own == nil {
		f, err := openLockFile(&w.h.names, &w.h.opts)
		if err != nil {
			return nil
		}
		w.own = f
	}
	f := w.own
	taken := w.h.abandoned(f, func() bool {
		select {
		case <-w.done:
			return false
		case <-time.After(headPatience / looks):
			return true
		}
	})
	if taken {
		w.own = nil
		return f
	}
	return nil
}

// abandoned says whether the lock is free and nobody comes for it: then f holds it. It looks several times, and
// pauses in between, for as long as pause says that it shall go on.
//
// That it is free at each look is not enough. While many wait and each holds it but for an instant, it is free as
// often as not, on its way to the next. So nobody may have had it meanwhile, which the record tells; holds that
// write none are told by the number of looks alone.
func (h *Handle) abandoned(f *lockFile, pause func() bool) bool {
	var first, later [keepSize]byte
	for i := 0; ; i++ {
		if free, err := f.try(h.opts.Shared); err != nil || !free {
			return false
		}
		buf := &later
		if i == 0 {
			buf = &first
		}
		_, err := f.read(buf[:])
		switch {
		case err != nil, i > 0 && first != later:
			_ = f.unlock()
			return false
		case i == looks:
			return true
		}
		// The head has been woken for what we give back.
		if f.unlock() != nil || !pause() {
			return false
		}
	}
}
