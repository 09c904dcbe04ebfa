package vfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Watch uses inotify on the folder. A release moves the lock's name away, which is one event.
// Only moves are asked for: creations and removals of other names would wake every waiter for
// nothing, and a user may have few inotify instances (128 by default), so failing here is routine.
func (osFS) Watch(dir, base string) (Watch, error) {
	if w := takeSpare(dir, base, unix.IN_MOVED_FROM); w != nil {
		return w, nil
	}
	w, err := watchFor(dir, base, unix.IN_MOVED_FROM)
	if err != nil {
		return nil, err
	}
	return w.lend(dir, unix.IN_MOVED_FROM), nil
}

// WatchArrivals implements ArrivalWatcher. A link is a creation to inotify.
func (osFS) WatchArrivals(dir string) (Watch, error) {
	w, err := watchFor(dir, "", unix.IN_CREATE|unix.IN_MOVED_TO)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func watchFor(dir, base string, events uint32) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, pathErr("inotify", dir, err)
	}
	w := &watch{inotify: fd, pidfd: -1, wake: -1, base: base}
	if w.folder, err = unix.InotifyAddWatch(fd, dir, events|unix.IN_ONLYDIR); err != nil {
		return nil, errors.Join(pathErr("inotify", dir, err), w.Close())
	}
	w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(pathErr("eventfd", dir, err), w.Close())
	}
	return w, nil
}

type watch struct {
	inotify, wake int
	pidfd         int
	pid           int64  // whose pidfd it is; also set when none could be had
	base          string // empty: any name
	buf           [4096]byte

	folder int // inotify's number for it
	// Of a watch that may be kept: what it watches, and the timer that ends it.
	place  string
	events uint32
	expiry *time.Timer
	armed  bool // expired is still to run
}

// Wait blocks in poll(2) rather than in Go's network poller: it must also watch a process and stop
// on ctx, and a waiter woken straight by the kernel is some 40 µs sooner.
func (w *watch) Wait(ctx context.Context, d time.Duration, pid int64) error {
	w.arm(d)
	w.follow(pid)
	// The wake-up descriptor is shared with the AfterFunc, so its run must be over before Wait
	// returns and the caller can close the descriptor.
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(w.wake, one[:]) // it fails only when it is awake already
	})
	defer func() {
		if !stop() {
			<-ran
		}
	}()

	deadline := time.Now().Add(d)
	fds := []unix.PollFd{
		{Fd: int32(w.inotify), Events: unix.POLLIN},
		{Fd: int32(w.wake), Events: unix.POLLIN},
		{Fd: int32(w.pidfd), Events: unix.POLLIN}, // poll ignores a negative descriptor
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil
		}
		ts := unix.NsecToTimespec(left.Nanoseconds())
		n, err := unix.Ppoll(fds, &ts, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return pathErr("poll", w.base, err)
		}
		if n == 0 {
			return nil
		}
		if fds[2].Revents != 0 {
			// Level-triggered for good: forget it, so that a caller that cannot act on the death
			// does not spin.
			unix.Close(w.pidfd)
			w.pidfd = -1
			return nil
		}
		if fds[0].Revents != 0 {
			if left, err := w.drain(); left || err != nil {
				return err
			}
		}
	}
}

// follow keeps the pidfd of pid. Where it cannot be had, the death is seen by the caller's polling.
func (w *watch) follow(pid int64) {
	if pid == w.pid {
		return
	}
	if w.pidfd >= 0 {
		unix.Close(w.pidfd)
	}
	w.pid, w.pidfd = pid, -1
	if pid > 0 && pid <= 1<<31-1 {
		if fd, err := unix.PidfdOpen(int(pid), 0); err == nil {
			w.pidfd = fd
		}
	}
}

// drain reads what has happened in the folder and reports whether what is watched for has happened, or
// whether events were dropped or the folder itself went, when it may have.
func (w *watch) drain() (left bool, err error) {
	n, err := unix.Read(w.inotify, w.buf[:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return false, nil
	}
	if err != nil {
		return false, pathErr("inotify", w.base, err)
	}
	for buf := w.buf[:n]; len(buf) >= unix.SizeofInotifyEvent; {
		mask := binary.NativeEndian.Uint32(buf[4:])
		size := int(binary.NativeEndian.Uint32(buf[12:]))
		if unix.SizeofInotifyEvent+size > len(buf) {
			break
		}
		name := buf[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size]
		name, _, _ = bytes.Cut(name, []byte{0})
		if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 ||
			w.base == "" || string(name) == w.base {
			left = true
		}
		buf = buf[unix.SizeofInotifyEvent+size:]
	}
	return left, nil
}

// Close implements Watch.
func (w *watch) Close() error { return w.end() }

// end returns before the inotify instance is gone: for that the kernel waits some milliseconds, and
// the caller may have the lock by now. Nothing depends on when it is, or on what it answers.
func (w *watch) end() error {
	if w.expiry != nil {
		w.expiry.Stop()
	}
	var errs []error
	if fd := w.inotify; fd >= 0 {
		go func() { _ = unix.Close(fd) }()
	}
	for _, fd := range []int{w.wake, w.pidfd} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	w.inotify, w.wake, w.pidfd = -1, -1, -1
	return errors.Join(errs...)
}
