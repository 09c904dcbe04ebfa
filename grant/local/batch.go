package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"sync"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// batchOpen is how many objects of a batch are on their way to the disk at a time.
const batchOpen = 8

// Batch puts objects of one kind together: none of them is there before Commit or Place, and all of them wait for
// the disk at once. Its Put may be called from several goroutines.
type Batch struct {
	b    *box
	ctx  context.Context
	kind grant.Kind

	made  chan error // of the folders
	slots chan struct{}
	going sync.WaitGroup

	placed bool

	mu    sync.Mutex
	items []batched
	err   error // of a sync
}

type batched struct {
	temp   string // empty: the object was there, whole
	digest grant.Digest
}

// Batch begins one. Commit or Discard ends it, or Place together with the publication of a page.
func (s *Store) Batch(ctx context.Context, container string, kind grant.Kind) (*Batch, error) {
	b, err := s.box(container)
	if err != nil {
		return nil, err
	}
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	if err := b.sweep(); err != nil {
		return nil, err
	}
	t := &Batch{b: b, ctx: ctx, kind: kind, made: make(chan error, 1), slots: make(chan struct{}, batchOpen)}
	go func() { t.made <- b.makeObjects(kind) }()
	return t, nil
}

// Put is Store.Put but for its end: the object is there when Commit or Place has succeeded.
func (t *Batch) Put(r io.Reader) (grant.Digest, int64, error) {
	digest, size, err := t.put(r)
	if err != nil {
		return "", 0, fmt.Errorf("store an object of %s: %w", display.Text(t.b.name), err)
	}
	return digest, size, nil
}

func (t *Batch) put(r io.Reader) (digest grant.Digest, size int64, err error) {
	s := t.b.s
	attempt, err := s.seams.Hex24()
	if err != nil {
		return "", 0, err
	}
	t.slots <- struct{}{}
	held := true
	defer func() {
		if held {
			<-t.slots
		}
	}()
	name := format.Make(t.b.path(pendingName, pendingBase), format.Temp, "", s.seams.Process.Tag(), s.seams.Process.Self().PID, attempt)
	f, err := s.seams.FS.Create(name, 0o666)
	if err != nil {
		sweep.Remove(s.seams, name) // in case it was made all the same
		return "", 0, err
	}
	sum := sha256.New()
	size, err = io.CopyBuffer(io.MultiWriter(f, sum), &reader{t.ctx, r}, make([]byte, bufferSize))
	if err != nil {
		err = errors.Join(err, f.Close())
		sweep.Remove(s.seams, name)
		return "", 0, err
	}
	digest = grant.Digest(hex.EncodeToString(sum.Sum(nil)))
	if t.b.whole(filepath.Join(t.b.objects(t.kind), string(digest)), digest) {
		err = f.Close()
		sweep.Remove(s.seams, name)
		t.add(batched{digest: digest})
		return digest, size, err
	}
	t.add(batched{name, digest})
	held = false
	t.going.Go(func() {
		t.failed(sync1(f))
		<-t.slots
	})
	return digest, size, nil
}

func sync1(f vfs.File) error {
	err := f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (t *Batch) add(it batched) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = append(t.items, it)
}

func (t *Batch) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// Commit makes all objects appear, durably. On an error some may be there, each of them whole. After Place it makes
// the names durable, unless a page has been published since.
func (t *Batch) Commit() error {
	err := t.Place()
	if err == nil {
		err = t.b.vouchObjects()
	}
	return err
}

// Place makes all objects appear, whole and on the disk but for their names. Those are made durable by Commit, or
// before the next page of the container that this store publishes, while that page is on its way to the disk: so
// whoever lands waits once for both.
func (t *Batch) Place() error {
	if t.placed {
		return nil
	}
	err := t.wait()
	placed := 0
	for ; placed < len(t.items) && err == nil; placed++ {
		if it := t.items[placed]; it.temp != "" {
			err = t.b.place(it.temp, t.kind, it.digest)
		}
	}
	t.clean(placed)
	if err != nil {
		return fmt.Errorf("store objects of %s: %w", display.Text(t.b.name), err)
	}
	t.placed = true
	// For those too that were there: whoever put them may not have come to that.
	t.b.s.remember(t.b.name, func(m *memory) {
		m.placed = maps.Clone(m.placed)
		if m.placed == nil {
			m.placed = map[grant.Kind]int64{}
		}
		m.placings++
		m.placed[t.kind] = m.placings
	})
	return nil
}

// Discard ends a batch of which nothing is wanted. After Commit it does nothing.
func (t *Batch) Discard() {
	_ = t.wait()
	t.clean(0)
}

func (t *Batch) wait() error {
	t.going.Wait()
	if t.made == nil {
		return nil
	}
	err := <-t.made
	t.made = nil
	if err == nil {
		err = t.err
	}
	return err
}

// clean removes what was not placed.
func (t *Batch) clean(from int) {
	for _, it := range t.items[from:] {
		if it.temp != "" {
			sweep.Remove(t.b.s.seams, it.temp)
		}
	}
	t.items = nil
}
