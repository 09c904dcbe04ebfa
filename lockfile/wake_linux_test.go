package lockfile

import (
	"context"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
)

// A waiter is woken by the release, long before its own next look.
func TestWoken(t *testing.T) {
	fsys := &watchSpy{FS: vfs.OS()}
	fsys.began = make(chan struct{})
	w := newWorld(t, classes[0])
	h, err := Acquire(t.Context(), w.path, w.actor(7))
	w.nil(err)
	done := in(func() error { return update(t.Context(), w.path, w.actorFS(8, fsys), "a") })
	<-fsys.began
	w.nil(h.Release())
	w.nil(<-done)
	w.only("log")
}

// watchSpy makes the waits of a watch as long as they like, so that only a wake-up ends them.
type watchSpy struct {
	vfs.FS
	began chan struct{}
}

func (s *watchSpy) Watch(dir, base string) (vfs.Watch, error) {
	w, err := s.FS.(vfs.Watcher).Watch(dir, base)
	return &endlessWatch{w, s.began}, err
}

type endlessWatch struct {
	vfs.Watch
	began chan struct{}
}

func (w *endlessWatch) Wait(ctx context.Context, _ time.Duration, pid int64) error {
	close(w.began)
	return w.Watch.Wait(ctx, time.Hour, pid)
}
