package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// testPublishFails: whatever goes wrong after the exclusive step, nothing is removed but the writer's
// own pending file, and a lock that has replaced ours stays.
func testPublishFails(w *world) {
	for _, kind := range []string{"write", "close"} {
		stage, own := "log.lock.pending-", true
		if w.class == classes[1] {
			stage, own = "log.lock", false
		}
		other := lockOf(9, testHost)
		base := classFS(w.class)
		var failed bool
		fsys := vfstest.Wrap(base, func(op vfstest.Op) error {
			_, name := filepath.Split(op.Name)
			if op.Kind != kind || name != stage && !(own && strings.HasPrefix(name, stage)) || failed {
				return nil
			}
			failed = true
			if !own {
				// An operator has forced the half-made lock out, and a new holder is in. On Windows nobody can:
				// the file is open, and what stands there later is another's all the same.
				if err := os.Remove(w.lock); (err == nil) == (runtime.GOOS == "windows") {
					w.t.Errorf("the half-made lock is removed: %v", err)
				}
			}
			w.plant("log.lock", other)
			return syscall.EIO
		})
		o := w.actorFS(8, fsys)
		o.Timeout = -1
		_, err := Acquire(w.t.Context(), w.path, o)
		if !failed || !errors.Is(err, syscall.EIO) || errors.Is(err, ErrHeld) {
			w.t.Fatalf("%s: %v", kind, err)
		}
		w.only("log.lock")
		if got := w.read("log.lock"); got != other {
			w.t.Errorf("the replacement is now %q", got)
		}
		w.nil(os.Remove(w.lock))
	}
}

func testLinkFails(w *world) {
	for i, errno := range []syscall.Errno{
		syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.EXDEV, syscall.EMLINK, syscall.ENOSYS,
	} {
		fsys := noLinkFS(classFS(classes[0]), errno)
		var want []string
		for n := range 2 {
			id := fmt.Sprintf("%d.%d", i, n)
			want = append(want, id)
			w.update(w.actorFS(7, fsys), id)
			w.only("log")
		}
		for _, dead := range []bool{false, true} {
			if dead {
				w.dies(66)
				w.plant("log.lock", lockOf(66, testHost))
			}
			var running []chan error
			for n := range 8 {
				id := fmt.Sprintf("%d.%v.%d", i, dead, n)
				want = append(want, id)
				running = append(running, in(func() error {
					return update(w.t.Context(), w.path, w.actorFS(int64(10+n), fsys), id)
				}))
			}
			for _, done := range running {
				w.nil(<-done)
			}
			w.only("log")
		}
		w.records(want...)
		w.nil(os.Remove(w.path))
	}
	// A missing name is itself: the pending file or the folder has gone.
	for _, kind := range []string{"link"} {
		in := &vfstest.Injector{Err: &os.LinkError{Err: syscall.ENOENT}, Only: func(op vfstest.Op) bool { return op.Kind == kind }}
		_, err := Acquire(w.t.Context(), w.path, w.actorFS(7, vfstest.Wrap(classFS(classes[0]), in.Before)))
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrHeld) {
			w.t.Errorf("ENOENT from link: %v", err)
		}
		w.only()
	}
}
