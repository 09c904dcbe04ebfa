//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/unix"
)

// lockFile is one open description of a lock file. Two of them exclude each
// other, in one process as in two.
type lockFile struct {
	fd       int
	dev, ino uint64
	uid      uint32
	readonly bool // opened for reading alone: shared holds only

	queueable bool // waiters may queue on it (wait_linux.go)

	content Content // as found when it was opened
	bare    bool    // the target did not exist when the mode was last set
	last    []byte  // the record last written through this description
}

// openFlags opens without following a link, without waiting for a FIFO's
// peer, without making a terminal ours, and not for children to inherit.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// openPatience is how long an opener bears with a lock file that it may not
// open yet: its maker gives it the target's mode just after making it.
const openPatience = 50 * time.Millisecond

// openLockFile opens n's lock file, making it when it is not there.
func openLockFile(n *names, o *Options) (*lockFile, error) {
	var began time.Time
	for {
		// Without O_CREAT first: in a sticky folder, with fs.protected_regular
		// set, it refuses somebody else's file although that may be opened.
		fd, err := open(n.lock, unix.O_RDWR|openFlags, 0)
		made, readonly := false, false
		if errors.Is(err, unix.ENOENT) {
			fd, err = open(n.lock, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|openFlags, createMode(n, o))
			if errors.Is(err, unix.EEXIST) {
				continue
			}
			made = err == nil
		}
		if o.Shared && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
			if rfd, rerr := open(n.lock, unix.O_RDONLY|openFlags, 0); rerr == nil {
				fd, err, readonly = rfd, nil, true
			}
		}
		if errors.Is(err, unix.EACCES) && !o.Exact && mayWriteSoon(n) {
			if began.IsZero() {
				began = time.Now()
			}
			if time.Since(began) < openPatience {
				time.Sleep(2 * time.Millisecond)
				continue
			}
		}
		if err != nil {
			return nil, openError(n, err)
		}
		f, err := newLockFile(fd, n)
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.readonly = readonly
		if err := f.look(n, o, made); err != nil {
			_ = f.close()
			return nil, err
		}
		return f, nil
	}
}

// createMode is the mode of a new lock file until it gets the target's. An
// exact file that is no <x>.lock is made as flock(1) makes it.
func createMode(n *names, o *Options) uint32 {
	if o.Exact && !n.record {
		return 0o666
	}
	return 0o600
}

var errGone = errors.New("lock file is gone")

// newLockFile checks what was opened; it closes fd on failure.
func newLockFile(fd int, n *names) (*lockFile, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = fmt.Errorf("stat lock file %s: %w", display.Text(n.lock), err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = badLockFile(n, "it is "+kindOf(uint32(st.Mode)))
	case st.Nlink == 0:
		err = errGone
	case st.Nlink > 1:
		err = badLockFile(n, fmt.Sprintf("it has %d hard links", st.Nlink))
	default:
		return &lockFile{fd: fd, dev: uint64(st.Dev), ino: st.Ino, uid: st.Uid, //nolint:unconvert // the type of Dev differs by system
			queueable: queueable(fd)}, nil
	}
	_ = unix.Close(fd)
	return nil, err
}

// look reads what the lock file holds, refuses the other family's, and gives
// a file of ours the target's mode.
func (f *lockFile) look(n *names, o *Options, made bool) error {
	var buf [keepSize]byte
	b, err := f.read(buf[:])
	if err != nil {
		return fmt.Errorf("read lock file %s: %w", display.Text(n.lock), err)
	}
	switch {
	case len(b) == 0:
		f.content = ContentEmpty
	case isPlainRecord(b):
		f.content = ContentRecord
	default:
		if b, err = f.read(make([]byte, maxRecord)); err != nil {
			return fmt.Errorf("read lock file %s: %w", display.Text(n.lock), err)
		}
		f.content, _, _ = classify(b)
	}
	if f.content == ContentOther {
		return fmt.Errorf("lock %s: %w", display.Text(n.lock), ErrOtherFamily)
	}
	if f.ours() && n.record && (made || f.content != ContentEmpty || !o.Exact) {
		f.adopt(n, made)
	}
	return nil
}

// ours says whether the file may be written and given a mode.
func (f *lockFile) ours() bool {
	return f.content == ContentEmpty || f.content == ContentRecord || f.content == ContentDamaged
}

// adopt gives the lock file the target's read and write bits and group (and,
// for root, its owner), so that those who share the file share its lock. A
// target that does not exist yet leaves it to its maker alone; the release
// asks again. What is not allowed is left as it is: those who then cannot
// open the lock are told so.
func (f *lockFile) adopt(n *names, made bool) {
	euid := os.Geteuid()
	var target, st unix.Stat_t
	if f.bare = unix.Stat(n.target, &target) != nil; f.bare {
		return
	}
	if !made && uint32(euid) != f.uid || unix.Fstat(f.fd, &st) != nil {
		return
	}
	uid, gid := -1, -1
	if euid == 0 && st.Uid != target.Uid {
		uid = int(target.Uid)
	}
	if st.Gid != target.Gid {
		gid = int(target.Gid)
	}
	if uid >= 0 || gid >= 0 {
		if unix.Fchown(f.fd, uid, gid) == nil && uid >= 0 {
			f.uid = target.Uid
		}
	}
	if want := uint32(target.Mode) & 0o666; uint32(st.Mode)&0o7777 != want {
		_ = unix.Fchmod(f.fd, want)
	}
}

// mayWriteSoon says whether the target would let us write although its lock
// file does not: as while the lock file is being made.
func mayWriteSoon(n *names) bool {
	var st unix.Stat_t
	return unix.Faccessat(unix.AT_FDCWD, n.target, unix.W_OK, unix.AT_EACCESS) == nil &&
		unix.Lstat(n.lock, &st) == nil && st.Size == 0
}

// try takes the lock if it is free.
func (f *lockFile) try(shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	switch err := flock(f.fd, how|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	default:
		return false, lockError(err)
	}
}

// unlock lets go, for every duplicate of the description: one that a child
// holds between fork and exec must not keep the lock.
func (f *lockFile) unlock() error { return flock(f.fd, unix.LOCK_UN) }

func (f *lockFile) close() error { return unix.Close(f.fd) }

// read reads from the start, as much as buf holds, with one call: of a plain
// file less than that is all there is.
func (f *lockFile) read(buf []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(f.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}

// write puts the record b over what the file holds, in one call. size is the
// file's size before.
func (f *lockFile) write(b []byte, size int64) error {
	for n := 0; n < len(b); {
		m, err := unix.Pwrite(f.fd, b[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		n += m
	}
	if size > int64(len(b)) {
		return unix.Ftruncate(f.fd, int64(len(b)))
	}
	return nil
}

func open(path string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Open(path, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func flock(fd, how int) error {
	for {
		err := unix.Flock(fd, how)
		if err != unix.EINTR {
			return err
		}
	}
}
