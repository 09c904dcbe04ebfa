//go:build linux && (amd64 || arm64)

package kernlock

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// # The queue
//
// The kernel wakes every flock waiter of a file in order, but a releaser that
// comes back at once takes the lock again before the woken one has run: with
// holds of a millisecond one process gets nearly all of them. So waiters form
// a queue of their own: each waits for a byte-range lock on one byte of the
// lock file, far beyond its bytes, and only the one that has it, the head,
// waits in flock(2). It gives the byte back once it has the lock. Who comes
// newly and sees somebody queue joins instead of trying.
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

// block waits for the lock until ctx ends.
func (h *Handle) block(ctx context.Context, f *lockFile) error {
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
		switch err := in.run(func() error {
			return unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLKW, queueLock(unix.F_WRLCK))
		}); {
		case err == nil:
			defer func() {
				_ = unix.FcntlFlock(uintptr(f.fd), unix.F_OFD_SETLK, queueLock(unix.F_UNLCK))
			}()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOLCK):
			// No such locks, or none left: wait without the queue.
		default:
			return lockError(err)
		}
	}
	how := unix.LOCK_EX
	if h.opts.Shared {
		how = unix.LOCK_SH
	}
	switch err := in.run(func() error { return unix.Flock(f.fd, how) }); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return lockError(err)
	}
}
