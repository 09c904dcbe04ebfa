package register

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

func (w *world) collect(dry bool) Collected {
	w.t.Helper()
	c, err := Collect(context.Background(), w.store, box, time.Second, dry)
	w.must(err)
	return c
}

func TestCollect(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	_, err := a.land(tree(t, "a", "landed first"))
	w.must(err)
	_, err = a.land(tree(t, "a", "landed second"))
	w.must(err)
	stray, err := w.reg.put(ctx, grant.KindArtifact, []byte("of a landing that was killed"))
	w.must(err)
	strayResult, err := w.reg.put(ctx, grant.KindStaging, []byte("a result that was refused"))
	w.must(err)
	w.clock.advance(5 * time.Hour)
	_, err = a.land(tree(t, "late", "refused"))
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if got := w.collect(true); got.Objects != 2 || got.Bytes != 53 || got.Kept != 6 {
		t.Errorf("%+v", got)
	}
	for kind, d := range map[grant.Kind]grant.Digest{grant.KindArtifact: stray, grant.KindStaging: strayResult} {
		if _, err := os.Stat(w.object(kind, d)); err != nil {
			t.Error(err)
		}
	}
	if got := w.collect(false); got.Objects != 2 || got.Bytes != 53 {
		t.Errorf("%+v", got)
	}
	if got := w.collect(false); got.Objects != 0 || got.Kept != 6 {
		t.Errorf("%+v", got)
	}
	w.verify()
	_, err = w.reg.Discard(ctx, refused.Kept, grant.Operator("op"), "not needed")
	w.must(err)
	if got := w.collect(false); got.Objects != 2 {
		t.Errorf("%+v", got)
	}
	if k, err := w.reg.Find(ctx, refused.Kept.Short()); err != nil || k.Gone == nil {
		t.Errorf("the document of a discarded landing is gone: %v", err)
	}
	w.verify()
}

// Where the history or a document is not whole, nothing is removed.
func TestCollectRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		want error
		harm func(w *world)
	}{
		"a restore without the pages": {ErrGap, func(w *world) {
			seen := grant.WitnessOf(w.head(), grant.Witness{})
			w.must(os.RemoveAll(filepath.Join(w.dir, "containers", box, "pages")))
			w.must(os.Mkdir(filepath.Join(w.dir, "containers", box, "pages"), 0o777))
			w.open(nil)
			_, _, err := w.store.Restore(context.Background(), grant.Restore{Meta: w.meta(grant.Operator("op")), Reason: "the disk", Witness: seen})
			w.must(err)
		}},
		"a damaged manifest": {ErrDamaged, func(w *world) { w.damage(w.page().Landing.SHA256) }},
		"a torn document": {ErrDamaged, func(w *world) {
			w.must(os.WriteFile(w.object(grant.KindQuarantine, sumA), []byte("{"), 0o666))
		}},
		"a document of another program": {nil, func(w *world) {
			_, err := w.reg.put(context.Background(), grant.KindQuarantine, []byte("{}\n"))
			w.must(err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			a := w.acquire("a")
			_, err := a.land(tree(t, "a", "x"))
			w.must(err)
			// The folder of documents is there, with none in it.
			w.must(os.MkdirAll(filepath.Dir(w.object(grant.KindQuarantine, sumA)), 0o777))
			stray, err := w.reg.put(ctx, grant.KindArtifact, []byte("stray"))
			w.must(err)
			c.harm(w)
			_, err = Collect(ctx, w.store, box, time.Second, false)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(w.object(grant.KindArtifact, stray)); err != nil {
				t.Error(err)
			}
		})
	}
}

func (w *world) head() grant.Revision {
	w.t.Helper()
	rev, err := w.store.Head(context.Background(), box)
	w.must(err)
	return rev
}

// Who lands keeps the collection away, and the other way round.
func TestCollectWaits(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	release, err := w.store.GuardObjects(ctx, box)
	w.must(err)
	if _, err := Collect(ctx, w.store, box, time.Millisecond, false); !errors.Is(err, local.ErrObjectsBusy) {
		t.Error(err)
	}
	another, err := w.store.GuardObjects(ctx, box)
	w.must(err)
	w.must(another())
	w.must(release())
	w.collect(false)
}
