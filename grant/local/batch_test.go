package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

var anyClock = (*seam.Set)(nil).Or().Clock

var batchOf = []string{"one", "two", "three", ""}

// putBatch stores them together.
func putBatch(s *Store) (digests []grant.Digest, err error) {
	t, err := s.Batch(context.Background(), "atlas", grant.KindArtifact)
	if err != nil {
		return nil, err
	}
	defer t.Discard()
	for _, text := range batchOf {
		d, n, err := t.Put(strings.NewReader(text))
		if err == nil && n != int64(len(text)) {
			err = fmt.Errorf("%d bytes of %d", n, len(text))
		}
		if err != nil {
			return nil, err
		}
		digests = append(digests, d)
	}
	return digests, t.Commit()
}

// holdsBatch wants every object of a batch whole, or with missing whole or not there.
func holdsBatch(s *Store, digests []grant.Digest, missing bool) error {
	for i, d := range digests {
		f, err := s.Get(context.Background(), "atlas", grant.KindArtifact, d)
		if err != nil {
			if missing {
				continue
			}
			return err
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil || string(text) != batchOf[i] {
			return fmt.Errorf("%q, %w", text, err)
		}
	}
	return nil
}

func batchWorld(t *testing.T) (*vfstest.Mem, *Store) {
	t.Helper()
	mem := vfstest.NewMem("/e", "/s")
	s := openMem(t, mem, anyClock)
	meta := grant.Meta{Container: "atlas", Nonce: "create-it", By: grant.Operator("op")}
	if _, _, err := s.Do(t.Context(), grant.Request{Command: grant.Create{Meta: meta}}); err != nil {
		t.Fatal(err)
	}
	return mem, s
}

// Whatever operation fails: an error says so and leaves no unpublished file, no object is half there, and success
// means that all of them survive a power cut.
func TestBatch(t *testing.T) {
	_, s := batchWorld(t)
	want, err := putBatch(s)
	if err != nil {
		t.Fatal(err)
	}
	failed, done := 0, false
	for n := 0; !done; n++ {
		mem, _ := batchWorld(t)
		in := &vfstest.Injector{At: n, Err: syscall.ENOSPC}
		armed := false
		store := openMem(t, vfstest.Wrap(mem, func(op vfstest.Op) error {
			if !armed {
				return nil
			}
			return in.Before(op)
		}), anyClock)
		armed = true
		_, err := putBatch(store)
		armed = false
		where := "no operation"
		if done = len(in.Hits()) == 0; !done {
			where = in.Hits()[0].String()
		}
		if err != nil {
			failed++
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v", where, err)
		}
		if err := holdsBatch(openMem(t, mem, anyClock), want, err != nil); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		survives := func() {
			t.Helper()
			for image := range mem.CrashImages(20, uint64(n)) {
				if err := holdsBatch(openMem(t, image, anyClock), want, false); err != nil {
					t.Fatalf("%s: after a power cut: %v", where, err)
				}
			}
		}
		if err == nil {
			survives()
		}
		// What could not be removed, the next batch of the process removes.
		if _, err := putBatch(store); err != nil {
			t.Fatalf("%s: again: %v", where, err)
		}
		survives()
		if left := mem.Names("/e/containers/atlas/pending"); len(left) > 0 {
			t.Fatalf("%s: left %q", where, left)
		}
	}
	if failed < 15 {
		t.Errorf("only %d operations were failed", failed)
	}
}

// A batch that is given up leaves nothing, and one whose source fails stores nothing of it.
func TestBatchGivenUp(t *testing.T) {
	mem, s := batchWorld(t)
	b, err := s.Batch(t.Context(), "atlas", grant.KindArtifact)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Put(strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, _, err := b.Put(io.MultiReader(strings.NewReader("y"), failing{broken})); !errors.Is(err, broken) {
		t.Error(err)
	}
	b.Discard()
	b.Discard()
	if list, err := s.Objects(t.Context(), "atlas", grant.KindArtifact); err != nil || len(list) > 0 {
		t.Errorf("%q, %v", list, err)
	}
	if left := mem.Names("/e/containers/atlas/pending"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Where a page is on the disk that names objects, they are, too: wherever the process is killed between the placing of
// a batch and the end of the landing, and the power fails, and also where somebody else's page comes between.
func TestBatchBeforeItsPage(t *testing.T) {
	for _, noLinks := range []bool{false, true} {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprintf("links %v, another page between %v", !noLinks, between), func(t *testing.T) {
				named, images := 0, 0
				for n, done := 0, false; !done; n++ {
					mem, s := batchWorld(t)
					var secret grant.Secret
					meta := func(nonce string) grant.Meta {
						return grant.Meta{Container: "atlas", Nonce: nonce, By: grant.Agent("ada")}
					}
					if _, _, err := s.Do(t.Context(), grant.Request{Command: grant.Acquire{Meta: meta("acquire-it"), Session: secret.Hash()}}); err != nil {
						t.Fatal(err)
					}
					in := &vfstest.Injector{At: n, Kill: true}
					armed := false
					store := openMem(t, vfstest.Wrap(mem, func(op vfstest.Op) error {
						if noLinks && op.Kind == "link" {
							return syscall.EPERM
						}
						if !armed {
							return nil
						}
						return in.Before(op)
					}), &hurried{})
					// So that the store knows whether there are links.
					if _, _, err := store.Do(t.Context(), grant.Request{Command: grant.Heartbeat{Meta: meta("first-beat"), Session: grant.Session{Grant: 1, Secret: secret}}}); err != nil {
						t.Fatal(err)
					}
					armed = true
					digests, err := landBatch(t, store, meta, secret, between)
					done = len(in.Hits()) == 0
					if done && err != nil {
						t.Fatal(err)
					}
					for image := range mem.CrashImages(10, uint64(n)) {
						images++
						after := openMem(t, image, &hurried{})
						head, err := after.Head(t.Context(), "atlas")
						switch {
						case errors.Is(err, grant.ErrBadPage) && noLinks: // torn, by name
						case err != nil && !done:
							t.Fatalf("killed at %v: %v", in.Hits(), err)
						case err != nil:
							t.Fatal(err)
						case head.Page().Landing == nil && done:
							t.Fatal("what was acknowledged is not there")
						case head.Page().Landing != nil:
							named++
							if err := holdsBatch(after, digests, false); err != nil {
								t.Fatalf("killed at %v: the page is there, and %v", in.Hits(), err)
							}
						}
					}
				}
				if named < 10 || named == images {
					t.Errorf("of %d images %d have the page", images, named)
				}
			})
		}
	}
}

// hurried is a clock on which waiting takes no time but its own.
type hurried struct{ ahead atomic.Int64 }

func (h *hurried) Now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

func (h *hurried) Sleep(ctx context.Context, d time.Duration) error {
	h.ahead.Add(int64(d))
	return ctx.Err()
}

func landBatch(t *testing.T, s *Store, meta func(nonce string) grant.Meta, secret grant.Secret, between bool) (digests []grant.Digest, err error) {
	t.Helper()
	b, err := s.Batch(t.Context(), "atlas", grant.KindArtifact)
	if err != nil {
		return nil, err
	}
	defer b.Discard()
	for _, text := range batchOf {
		d, _, err := b.Put(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		digests = append(digests, d)
	}
	if err := b.Place(); err != nil {
		return digests, err
	}
	proof := grant.Session{Grant: 1, Secret: secret}
	if between {
		if _, _, err := s.Do(t.Context(), grant.Request{Command: grant.Heartbeat{Meta: meta("heartbeat"), Session: proof}}); err != nil {
			return digests, err
		}
	}
	if _, _, err := s.Do(t.Context(), grant.Request{Command: grant.Land{Meta: meta("land-them"), Session: proof, Manifest: digests[0]}}); err != nil {
		return digests, err
	}
	return digests, b.Commit()
}

// While the objects' folder cannot be synced nothing is published that could name them. A heartbeat is.
func TestHeartbeatBesideObjectsThatCannotBeSynced(t *testing.T) {
	for _, noLinks := range []bool{false, true} {
		mem, s := batchWorld(t)
		var secret grant.Secret
		meta := func(nonce string) grant.Meta {
			return grant.Meta{Container: "atlas", Nonce: nonce, By: grant.Agent("ada")}
		}
		if _, _, err := s.Do(t.Context(), grant.Request{Command: grant.Acquire{Meta: meta("acquire-it"), Session: secret.Hash()}}); err != nil {
			t.Fatal(err)
		}
		broken := false
		store := openMem(t, vfstest.Wrap(mem, func(op vfstest.Op) error {
			if noLinks && op.Kind == "link" {
				return syscall.EPERM
			}
			if broken && op.Kind == "syncdir" && strings.Contains(op.Name, objectsName) {
				return syscall.EIO
			}
			return nil
		}), &hurried{})
		b, err := store.Batch(t.Context(), "atlas", grant.KindArtifact)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Discard()
		d, _, err := b.Put(strings.NewReader("what was made"))
		if err = errors.Join(err, b.Place()); err != nil {
			t.Fatal(err)
		}
		proof := grant.Session{Grant: 1, Secret: secret}
		land := grant.Request{Command: grant.Land{Meta: meta("land-them"), Session: proof, Manifest: d}}
		broken = true
		if _, _, err := store.Do(t.Context(), land); !errors.Is(err, syscall.EIO) {
			t.Errorf("links %v: landed with names that are not on the disk: %v", !noLinks, err)
		}
		if _, _, err := store.Do(t.Context(), grant.Request{Command: grant.Heartbeat{Meta: meta("beat-now"), Session: proof}}); err != nil {
			t.Errorf("links %v: %v", !noLinks, err)
		}
		broken = false
		if _, _, err := store.Do(t.Context(), land); err != nil {
			t.Errorf("links %v: %v", !noLinks, err)
		}
	}
}
