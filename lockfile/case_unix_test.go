//go:build unix

package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
)

// A holder is stopped, an operator forces its lock away, another writes, and the holder goes on: its commit is
// refused, it begins again, and both records are there.
func TestCase07StoppedHolder(t *testing.T) {
	eachClass(t, func(w *world) {
		w.update(w.real(), "before")
		c := start(t, order{Path: w.path, Class: w.class, Do: "update", ID: "child", Pause: seam.HoldRead})
		c.reaches(seam.HoldRead)
		w.nil(c.cmd.Process.Signal(syscall.SIGSTOP))
		c.goOn() // it would, if it could
		_ = w.refused(w.real(), Alive)
		_, err := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
		w.nil(err)
		o := w.real()
		o.Timeout = time.Minute
		w.update(o, "other")
		w.records("before", "other")
		w.nil(c.cmd.Process.Signal(syscall.SIGCONT))
		c.succeeds()
		w.records("before", "other", "child")
		w.only("log")
	})
}

// What is no regular file is refused by every verb, on a real file system: nothing is followed, opened for long
// or changed.
func TestCase24OddLockPathsOnDisk(t *testing.T) {
	eachClass(t, func(w *world) {
		target := filepath.Join(w.dir, "target")
		w.nil(os.WriteFile(target, []byte(lockOf(noSuchPID, testHost)), 0o600))
		for kind, plant := range map[string]func() error{
			"link":   func() error { return os.Symlink(target, w.lock) },
			"fifo":   func() error { return syscall.Mkfifo(w.lock, 0o600) },
			"folder": func() error { return os.Mkdir(w.lock, 0o700) },
		} {
			w.nil(plant())
			before, err := os.Lstat(w.lock)
			w.nil(err)
			_, aerr := Acquire(t.Context(), w.path, w.real())
			_, serr := Status(w.path, w.real())
			_, uerr := Unlock(t.Context(), w.path, UnlockOptions{Force: true, Seams: w.real().Seams})
			for _, err := range []error{aerr, serr, uerr} {
				if !errors.Is(err, ErrNotLockFile) || errors.Is(err, ErrHeld) {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if after, err := os.Lstat(w.lock); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
				t.Errorf("%s: touched: %v", kind, err)
			}
			if got := w.read("target"); got != lockOf(noSuchPID, testHost) {
				t.Errorf("%s: the target is now %q", kind, got)
			}
			w.only("log.lock", "target")
			w.nil(os.Remove(w.lock))
		}
	})
}
