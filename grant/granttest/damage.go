package granttest

import (
	"errors"
	"time"

	"github.com/stile-lock/stile/grant"
)

// damageTests are those in which what is stored is not what was written.
var damageTests = []test{
	{"Failure23TornPage", failure23},
	{"Failure24PowerCut", failure24},
	{"Failure25OldBackup", failure25},
	{"Failure26PageDeleted", failure26},
	{"Failure27OutsiderWrites", failure27},
	{"PageMissingInTheMiddle", missing},
}

func (w *world) restore(seen grant.Witness) (grant.Revision, error) {
	cmd := grant.Restore{Meta: w.meta(grant.Operator("olga")), Reason: "it was damaged", Witness: seen}
	return w.place.Restore(w.ctx, w.place.Open(), cmd)
}

func failure23(w *world) {
	a := w.waits("anna")
	base, next := w.prepare(a.acquisition())
	for _, torn := range [][]byte{next.Bytes()[:len(next.Bytes())/2], {}, []byte("stray")} {
		before := w.head()
		w.place.Overwrite(container, grant.Ref{Epoch: base.Epoch, Rev: base.Rev + 1}, torn)
		s := w.place.Open()
		_, err := s.Head(w.ctx, container)
		if !errors.Is(err, grant.ErrBadPage) {
			w.t.Fatalf("with %q in the place of the next page: %v", torn, err)
		}
		if err := s.Swap(w.ctx, base, next); err == nil {
			w.t.Fatal("a torn page was written over")
		}
		if _, err := w.restore(grant.WitnessOf(before, grant.Witness{})); err != nil {
			w.t.Fatal(err)
		}
		if w.head().Hash() != before.Hash() {
			w.t.Fatal("after the one command that helps the head is another")
		}
	}
	w.must(a.acquire())
	a.landsAndReleases("anna's work")
}

func failure24(w *world) {
	a := w.holds("anna")
	w.must(a.land(a.landing("anna's work")))
	want := w.head()
	n := 0
	w.place.PowerCuts(func(s grant.Store) bool {
		n++
		head, err := s.Head(w.ctx, container)
		if err != nil || head.Hash() != want.Hash() {
			w.t.Errorf("image %d: %v", n, err)
			return false
		}
		chain, err := grant.Chain(w.ctx, s, container)
		if err = errors.Join(err, grant.Persisted(chain, w.acked...)); err != nil {
			w.t.Errorf("image %d: %v", n, err)
		}
		r, err := s.Get(w.ctx, container, grant.KindArtifact, head.Page().Landing.SHA256)
		if err != nil {
			w.t.Errorf("image %d: what landed: %v", n, err)
			return false
		}
		return r.Close() == nil
	})
	if n == 0 {
		w.t.Error("no image")
	}
	w.must(a.release())
}

func failure25(w *world) {
	a := w.holds("anna")
	restore := w.place.Backup()
	w.must(a.land(a.landing("anna's work")))
	for range 20 {
		w.must(a.works())
	}
	w.must(a.release())
	b := w.holds("ben")
	seen := grant.WitnessOf(w.head(), grant.Witness{})
	w.acked = nil // the backup takes them back; what may not be is that nobody notices
	restore()
	s := w.place.Open()
	try := func() (grant.Revision, error) {
		cmd := grant.Petition{Meta: w.meta(grant.Agent("carl"))}
		rev, _, err := grant.Do(w.ctx, s, grant.Request{Command: cmd, Env: w.envAt(s, grant.TimeOf(w.clock.Now()), seen)})
		return rev, err
	}
	w.fails(grant.CodeRollback, try)
	p := w.must(w.restore(seen))
	if p.Rev <= seen.Rev || p.Grant <= seen.Grant || p.Epoch <= seen.Epoch {
		w.t.Fatalf("restored at revision %d, grant %d, epoch %d; seen were %+v", p.Rev, p.Grant, p.Epoch, seen)
	}
	w.store = w.place.Open()
	w.quarantined(grant.CodeFenced, a, a.landing("anna's later work"))
	w.fails(grant.CodeFenced, b.reopened().heartbeat)
	w.must(try())
}

func failure26(w *world) {
	a := w.holds("anna")
	a.landsAndReleases("anna's work")
	seen := grant.WitnessOf(w.head(), grant.Witness{})
	w.acked = nil
	w.place.Lose(container)
	s := w.place.Open()
	for _, cmd := range []grant.Command{
		grant.Create{Meta: w.meta(grant.Operator("olga")), Params: grant.DefaultParams()},
		grant.Acquire{Meta: w.meta(grant.Agent("ben")), Session: w.agent("ben").session.Secret.Hash()},
	} {
		w.fails(grant.CodeLockMissing, func() (grant.Revision, error) {
			rev, _, err := grant.Do(w.ctx, s, grant.Request{Command: cmd, Env: w.envAt(s, grant.TimeOf(w.clock.Now()), seen)})
			return rev, err
		})
	}
	p := w.must(w.restore(seen))
	if p.Rev <= seen.Rev || p.Grant <= seen.Grant {
		w.t.Fatalf("restored at revision %d, grant %d; seen were %+v", p.Rev, p.Grant, seen)
	}
	w.store = w.place.Open()
	b := w.holds("ben")
	if b.session.Grant <= seen.Grant {
		w.t.Fatalf("grant %d came back", b.session.Grant)
	}
	b.landsAndReleases("ben's work")
}

func failure27(w *world) {
	a := w.holds("anna")
	honest := w.head()
	seen := grant.WitnessOf(honest, grant.Witness{})
	forged := *honest.Page()
	forged.Holder = &grant.Holder{Agent: "mallory", Session: w.agent("mallory").session.Secret.Hash()}
	other, err := grant.Seal(&forged)
	if err != nil {
		w.t.Fatal(err)
	}
	w.place.Overwrite(container, honest.Ref(), other.Bytes())
	s := w.place.Open()
	w.fails(grant.CodeRollback, func() (grant.Revision, error) {
		cmd := grant.Petition{Meta: w.meta(grant.Agent("carl"))}
		rev, _, err := grant.Do(w.ctx, s, grant.Request{Command: cmd, Env: w.envAt(s, grant.TimeOf(w.clock.Now()), seen)})
		return rev, err
	})
	env, _ := w.env(s)(w.ctx, honest)
	next, err := grant.Apply(honest, grant.Heartbeat{Meta: a.meta(), Session: a.session}, env)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Swap(w.ctx, honest.Ref(), next); err == nil {
		w.t.Fatal("a page was built on one that was replaced")
	}
	w.place.Overwrite(container, honest.Ref(), honest.Bytes())
	a.landsAndReleases("anna's work")

	// In the middle of the chain, too, nobody who reads the history misses it.
	w.place.Overwrite(container, honest.Ref(), other.Bytes())
	if _, err := grant.Chain(w.ctx, w.place.Open(), container); err == nil {
		w.t.Error("a changed page in the middle goes unnoticed")
	}
	w.place.Overwrite(container, honest.Ref(), honest.Bytes())
}

func missing(w *world) {
	a := w.waits("anna")
	for range 40 {
		w.must(w.do(a.store, grant.Touch{Meta: a.meta()}))
	}
	head := w.head()
	data := map[grant.Ref][]byte{}
	for _, r := range w.chain() {
		data[r.Ref()] = r.Bytes()
	}
	for back := range int64(40) {
		at := grant.Ref{Epoch: 1, Rev: head.Page().Rev - back}
		w.place.Miss(container, at)
		s := w.place.Open()
		now, err := s.Head(w.ctx, container)
		switch {
		case err != nil: // it blocks
		case now.Hash() == head.Hash(): // and the history tells
			if _, err := grant.Chain(w.ctx, s, container); err == nil {
				w.t.Errorf("a page %d before the head is gone, and nobody says so", back)
			}
		case back == 0: // the witness tells
			if grant.CheckWitness(now, grant.WitnessOf(head, grant.Witness{})) == nil {
				w.t.Error("the last page is gone, and no witness says so")
			}
		default:
			w.t.Errorf("with the page %d before the head gone, revision %d is the head", back, now.Page().Rev)
		}
		for ref, bytes := range data {
			if ref.Rev == at.Rev {
				w.place.Overwrite(container, at, bytes)
			}
		}
	}
	if _, err := w.store.Read(w.ctx, container, grant.Ref{Epoch: 1, Rev: 1 << 40}); !errors.Is(err, grant.ErrLockMissing) {
		w.t.Errorf("a revision that never was: %v", err)
	}
}

// works makes one more revision.
func (a *agent) works() (grant.Revision, error) {
	a.w.pass(time.Second)
	return a.heartbeat()
}

// reopened is the same session in another process.
func (a *agent) reopened() *agent {
	b := *a
	b.store = a.w.place.Open()
	return &b
}
