package granttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing/iotest"
	"time"

	"github.com/stile-lock/stile/grant"
)

// storeTests are what a Store says it does, apart from failures.
var storeTests = []test{
	{"Containers", containers},
	{"History", history},
	{"SwapIsExact", swapIsExact},
	{"Objects", objects},
	{"Watch", watch},
	{"TurnBased", turnBased},
	{"ClockSteps", clockSteps},
}

func containers(w *world) {
	for _, name := range []string{"zebra", "a b", "ünïcode", "hidden"} {
		cmd := grant.Create{Meta: w.meta(grant.Operator("olga"))}
		cmd.Container = name
		if _, _, err := grant.Do(w.ctx, w.store, grant.Request{Command: cmd, Env: w.env(w.store)}); err != nil {
			w.t.Fatal(err)
		}
	}
	names, err := w.place.Open().Containers(w.ctx)
	if want := []string{"a b", container, "hidden", "zebra", "ünïcode"}; err != nil || !slices.Equal(names, want) {
		w.t.Fatalf("containers %q, %v; want %q", names, err, want)
	}
	if _, err := w.store.Head(w.ctx, "none"); !errors.Is(err, grant.ErrLockMissing) {
		w.t.Errorf("the head of none: %v", err)
	}
	w.fails(grant.CodeExists, func() (grant.Revision, error) {
		return w.do(w.store, grant.Create{Meta: w.meta(grant.Operator("olga"))})
	})
}

func history(w *world) {
	a := w.waits("anna")
	var want []grant.Revision
	for range 40 {
		rev, err := w.do(a.store, grant.Touch{Meta: a.meta()})
		w.must(rev, err)
		want = append(want, rev)
	}
	s := w.place.Open()
	for _, r := range want {
		is, err := s.Read(w.ctx, container, grant.Ref{Epoch: r.Ref().Epoch, Rev: r.Ref().Rev})
		if err != nil || !bytes.Equal(is.Bytes(), r.Bytes()) {
			w.t.Fatalf("revision %d is read otherwise: %v", r.Ref().Rev, err)
		}
	}
	next := w.head().Ref()
	next.Rev++
	for _, at := range []grant.Ref{next, {Epoch: 2, Rev: 1}, {Epoch: 1, Rev: 0}, {}} {
		if _, err := s.Read(w.ctx, container, at); !errors.Is(err, grant.ErrLockMissing) {
			w.t.Errorf("revision %+v: %v", at, err)
		}
	}
}

// The same page again is the same success; another on its base, or on one with another hash, is none.
func swapIsExact(w *world) {
	a := w.agent("anna")
	base, next := w.prepare(grant.Petition{Meta: a.meta()})
	_, rival := w.prepare(grant.Petition{Meta: w.meta(grant.Agent("ben"))})
	for range 3 {
		if err := w.place.Open().Swap(w.ctx, base, next); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.place.Open().Swap(w.ctx, base, rival); !errors.Is(err, grant.ErrConflict) {
		w.t.Errorf("another page on the same base: %v", err)
	}
	if err := w.place.Open().Swap(w.ctx, grant.Ref{}, rival); err == nil {
		w.t.Error("a page that follows nothing was swapped for one that does")
	}
	if h := w.head(); h.Hash() != next.Hash() {
		w.t.Error("the head is another")
	}
}

func objects(w *world) {
	digest := func(s string) grant.Digest {
		sum := sha256.Sum256([]byte(s))
		return grant.Digest(hex.EncodeToString(sum[:]))
	}
	large := strings.Repeat("0123456789abcdef", 1<<16)
	for _, text := range []string{"", "one", large, "one"} {
		d, n, err := w.store.Put(w.ctx, container, grant.KindArtifact, strings.NewReader(text))
		if err != nil || d != digest(text) || n != int64(len(text)) {
			w.t.Fatalf("put %d bytes: %s, %d, %v", len(text), d, n, err)
		}
	}
	if got := string(w.object(grant.KindArtifact, digest(large))); got != large {
		w.t.Error("a large object is read otherwise")
	}
	want := []grant.Digest{digest(""), digest("one"), digest(large)}
	slices.Sort(want)
	if list, err := w.place.Open().Objects(w.ctx, container, grant.KindArtifact); err != nil || !slices.Equal(list, want) {
		w.t.Errorf("objects %v, %v", list, err)
	}
	for _, kind := range []grant.Kind{grant.KindStaging, grant.KindQuarantine} {
		if list, err := w.store.Objects(w.ctx, container, kind); err != nil || len(list) != 0 {
			w.t.Errorf("%s has %v, %v", kind, list, err)
		}
		if r, err := w.store.Get(w.ctx, container, kind, digest("one")); !errors.Is(err, fs.ErrNotExist) {
			w.t.Errorf("%s has an artifact: %v, %v", kind, r, err)
		}
	}
	broken := iotest.TimeoutReader(strings.NewReader(large))
	if _, _, err := w.store.Put(w.ctx, container, grant.KindStaging, broken); !errors.Is(err, iotest.ErrTimeout) {
		w.t.Errorf("an object whose source fails: %v", err)
	}
	if list, err := w.store.Objects(w.ctx, container, grant.KindStaging); err != nil || len(list) != 0 {
		w.t.Errorf("it left %v, %v", list, err)
	}
	together(6, func(i int) {
		s := w.place.Open()
		text := fmt.Sprintf("text %d", i/2)
		if d, _, err := s.Put(w.ctx, container, grant.KindArtifact, strings.NewReader(text)); err != nil || d != digest(text) {
			w.t.Errorf("put beside others: %v", err)
			return
		}
		r, err := s.Get(w.ctx, container, grant.KindArtifact, digest(text))
		if err != nil {
			w.t.Error(err)
			return
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil || string(data) != text {
			w.t.Errorf("read beside others: %q, %v", data, err)
		}
	})
}

func watch(w *world) {
	s := w.place.Open().(grant.Watcher) // else it is not run
	a := w.waits("anna")
	old := w.head().Ref()
	woken := make(chan error)
	go func() { woken <- s.Watch(w.ctx, container, old) }()
	w.must(w.do(a.store, grant.Touch{Meta: a.meta()}))
	if err := <-woken; err != nil {
		w.t.Fatal(err)
	}
	if err := s.Watch(w.ctx, container, old); err != nil { // at once
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { woken <- s.Watch(ctx, container, w.head().Ref()) }()
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		w.t.Fatalf("a watch whose context ended: %v", err)
	}
}

// A client that cannot wait asks again, each time as another process, and keeps its place.
func turnBased(w *world) {
	a := w.holds("anna")
	b := w.waits("ben")
	w.waits("carl")
	for range 3 {
		w.fails(grant.CodeHeld, b.reopened().acquire)
		w.fails(grant.CodeDuplicate, func() (grant.Revision, error) { return w.do(w.place.Open(), grant.Petition{Meta: b.meta()}) })
	}
	a.landsAndReleases("anna's work")
	later := b.reopened()
	w.must(later.acquire())
	later.reopened().landsAndReleases("ben's work")
}

// An hour forth or back between any two commands: the invariants are checked after the test.
func clockSteps(w *world) {
	for i := range 12 {
		step := func() {
			w.pass([]time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour, time.Hour, -time.Hour}[i%6])
		}
		a := w.agent("anna")
		step()
		if _, err := a.acquire(); err != nil {
			w.pass(5 * time.Hour)
			w.must(a.acquire())
		}
		step()
		_, _ = a.heartbeat()
		step()
		if _, err := a.land(a.landing(fmt.Sprint("work ", i))); err != nil {
			continue
		}
		step()
		w.must(a.release())
	}
	if w.page().Register.Seq < 6 {
		w.t.Errorf("of twelve only %d landed", w.page().Register.Seq)
	}
}
