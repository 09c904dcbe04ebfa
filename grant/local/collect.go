package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// ErrObjectsBusy says that the wait for the kernel lock of a container's objects ran out: they are being
// collected, or for a collection, somebody stores or lands some. The *kernlock.TimeoutError in it says who.
var ErrObjectsBusy = errors.New("objects are in use")

// guardTimeout is how long one who stores objects waits for a collection to end.
const guardTimeout = time.Minute

// GuardObjects keeps a container's objects from being collected until release is called or the process ends: for
// whoever puts objects that no page names yet. Any number may guard at once.
func (s *Store) GuardObjects(ctx context.Context, container string) (release func() error, err error) {
	b, err := s.box(container)
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	release, err = s.share(ctx, b.path(objectsName))
	return release, objectsBusy(err, container)
}

func kernelShare(ctx context.Context, target string) (func() error, error) {
	l, err := kernlock.Acquire(ctx, target, kernlock.Options{Shared: true, NoRecord: true, Timeout: guardTimeout, Operation: "land"})
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

func objectsBusy(err error, container string) error {
	if errors.Is(err, kernlock.ErrTimeout) {
		return fmt.Errorf("%w: container %s: %w", ErrObjectsBusy, display.Text(container), err)
	}
	return err
}

// Collection removes objects that nothing needs any more. While it is open nobody guards the container's objects.
type Collection struct {
	b       *box
	release func() error
	touched map[string]bool
}

// Collect begins a collection, waiting for all who guard; ErrObjectsBusy when that takes longer than wait.
func (s *Store) Collect(ctx context.Context, container string, wait time.Duration) (*Collection, error) {
	b, err := s.box(container)
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	l, err := kernlock.Acquire(ctx, b.path(objectsName), kernlock.Options{Timeout: wait, Operation: "register-gc"})
	if err != nil {
		return nil, objectsBusy(err, container)
	}
	c := &Collection{b: b, release: l.Release, touched: map[string]bool{}}
	if err := b.sweep(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Size is an object's, in bytes.
func (c *Collection) Size(kind grant.Kind, d grant.Digest) (int64, error) {
	info, err := c.b.s.seams.FS.Lstat(c.name(kind, d))
	return info.Size, err
}

func (c *Collection) name(kind grant.Kind, d grant.Digest) string {
	return c.b.objects(kind) + string(filepath.Separator) + string(d)
}

// Remove takes an object away. One that is not there is gone already.
func (c *Collection) Remove(kind grant.Kind, d grant.Digest) error {
	if err := errors.Join(checkKind(kind), checkDigest(d)); err != nil {
		return err
	}
	if err := c.b.s.seams.FS.Remove(c.name(kind, d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("collect an object of %s: %w", display.Text(c.b.name), err)
	}
	c.touched[c.b.objects(kind)] = true
	return nil
}

// Close ends the collection. What was removed is durably gone when it succeeds.
func (c *Collection) Close() error {
	var err error
	for dir := range c.touched {
		err = errors.Join(err, c.b.s.seams.FS.SyncDir(dir))
	}
	return errors.Join(err, c.release())
}
