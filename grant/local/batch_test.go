package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

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
