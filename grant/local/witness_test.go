package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stile-lock/stile/grant"
)

// TestWitness: it rises and never falls, tells of a rollback, and a file that cannot be read costs one step of it.
func TestWitness(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	old := e.do(s, e.petition("anna"))
	kept, err := os.ReadFile(e.path("pages", first.name()))
	if err != nil {
		t.Fatal(err)
	}
	var last grant.Revision
	for range 5 {
		last = e.do(s, grant.Touch{Meta: e.meta(grant.Agent("anna"))})
	}
	s.Remember("atlas", old) // a slow process
	w, err := e.open().Witness("atlas")
	if err != nil || w.Rev != last.Page().Rev || w.Hash != last.Hash() {
		t.Fatalf("witness %+v, %v", w, err)
	}
	dir := s.witnessDir("atlas")
	if info, err := os.Stat(dir); err != nil || modesTell && info.Mode().Perm() != 0o700 {
		t.Errorf("others may look: %v, %v", info.Mode(), err)
	}
	file := filepath.Join(dir, names(t, dir))
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := e.open().Witness("atlas"); err != nil || w.Rev != last.Page().Rev-1 {
		t.Errorf("with the last one torn: %+v, %v", w, err)
	}
	// What is added behind half a line is a line, and whoever was killed over that half is in nobody's way.
	var log bytes.Buffer
	said, err := Open(e.dir, Options{State: e.state, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	said.Remember("atlas", last)
	if w, err := said.Witness("atlas"); err != nil || w.Rev != last.Page().Rev || log.Len() != 0 {
		t.Errorf("after a torn one: %+v, %v, %s", w, err, log.String())
	}
	for _, s := range []*Store{s, e.open()} {
		if w, err := s.Witness("atlas"); err != nil || w.Rev != last.Page().Rev {
			t.Errorf("added to what was torn: %+v, %v", w, err)
		}
	}
	if err := errors.Join(os.RemoveAll(e.path()), os.MkdirAll(e.path("pages"), 0o700), os.WriteFile(e.path("pages", first.name()), kept, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.open().Do(t.Context(), grant.Request{Command: e.petition("ben")}); grant.CodeOf(err) != grant.CodeRollback {
		t.Errorf("after a rollback: %v", err)
	}
	if err := os.RemoveAll(e.path()); err != nil {
		t.Fatal(err)
	}
	create := grant.Create{Meta: e.meta(grant.Operator("olga"))}
	if _, _, err := e.open().Do(t.Context(), grant.Request{Command: create}); grant.CodeOf(err) != grant.CodeLockMissing {
		t.Errorf("created anew what was lost: %v", err)
	}
}

// TestWitnessFiles: of many pages a few short files stay, and no witness falls on the way: neither for those who had
// read them, nor for others.
func TestWitnessFiles(t *testing.T) {
	e := newEstate(t)
	stores := []*Store{e.open(), e.open()}
	e.do(stores[0], e.petition("anna"))
	began := map[string]bool{}
	for i := range 100 {
		rev := e.do(stores[i%2], grant.Touch{Meta: e.meta(grant.Agent("anna"))})
		for _, s := range append(stores, e.open()) {
			if w, err := s.Witness("atlas"); err != nil || w.Rev != rev.Page().Rev || w.Hash != rev.Hash() {
				t.Fatalf("at revision %d: %+v, %v", rev.Page().Rev, w, err)
			}
		}
		for _, name := range strings.Fields(names(t, stores[0].witnessDir("atlas"))) {
			began[name] = true
			info, err := os.Stat(filepath.Join(stores[0].witnessDir("atlas"), name))
			if err != nil || info.Size() > fullWitness {
				t.Fatalf("%s: %v, %v", name, info.Size(), err)
			}
		}
	}
	if n := len(strings.Fields(names(t, stores[0].witnessDir("atlas")))); n != keptWitnesses || len(began) <= keptWitnesses {
		t.Errorf("%d witness files are kept of %d", n, len(began))
	}
	// The last file goes: the one before it still tells.
	files := strings.Fields(names(t, stores[0].witnessDir("atlas")))
	if err := os.WriteFile(filepath.Join(stores[0].witnessDir("atlas"), files[1]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := parsePlace(files[1])
	for _, s := range append(stores, e.open()) {
		if w, err := s.Witness("atlas"); err != nil || w.Rev != p.rev-1 {
			t.Errorf("without the last file, which began with revision %d: %+v, %v", p.rev, w, err)
		}
	}
}

// TestWitnessOnePerPage: the witnesses of earlier versions, a file for each page, are read and gone on from.
func TestWitnessOnePerPage(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	var rev grant.Revision
	dir := s.witnessDir("atlas")
	for i := range 3 {
		rev = e.do(s, e.petition(fmt.Sprint("agent", i)))
	}
	data, err := os.ReadFile(filepath.Join(dir, names(t, dir)))
	if err = errors.Join(err, os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, line := range lines[2:] {
		name := place{1, int64(i + 3)}.name()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimSuffix(line, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if w, err := e.open().Witness("atlas"); err != nil || w.Rev != rev.Page().Rev {
		t.Fatalf("%+v, %v", w, err)
	}
	rev = e.do(e.open(), e.petition("later"))
	if w, err := e.open().Witness("atlas"); err != nil || w.Rev != rev.Page().Rev {
		t.Fatalf("%+v, %v", w, err)
	}
}

// A process that lives through a restore goes on with the new epoch.
func TestRestoreUnderARunningProcess(t *testing.T) {
	e := newEstate(t)
	old := e.open()
	for i := range 40 {
		e.do(old, e.petition(fmt.Sprint("agent", i)))
	}
	for rev := int64(20); rev <= 41; rev++ {
		if err := os.Remove(e.path("pages", place{1, rev}.name())); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := old.Head(t.Context(), "atlas"); !errors.Is(err, grant.ErrRollback) {
		t.Fatalf("pages went away: %v", err)
	}
	rev, _, err := e.open().Restore(t.Context(), grant.Restore{Meta: e.meta(grant.Operator("olga")), Reason: "pages were lost"})
	if err != nil || rev.Page().Epoch != 2 || rev.Page().Rev != 42 {
		t.Fatalf("restored: %v, %v", rev.Ref(), err)
	}
	for _, s := range []*Store{old, e.open()} {
		head, err := s.Head(t.Context(), "atlas")
		if err != nil || head.Page().Epoch != 2 {
			t.Fatalf("head %v, %v", head.Ref(), err)
		}
		e.do(s, e.petition(fmt.Sprint("later", e.n)))
	}
	chain, err := grant.Chain(t.Context(), e.open(), "atlas")
	if err = errors.Join(err, grant.Verify(chain)); err != nil {
		t.Fatal(err)
	}
	if is, err := e.open().Read(t.Context(), "atlas", grant.Ref{Epoch: 2, Rev: 42}); err != nil || is.Hash() != rev.Hash() {
		t.Errorf("the epoch's first page: %v", err)
	}
}

// A page that is missing where the head is looked for is a block, and a restore goes on above all that is left.
func TestGapBlocks(t *testing.T) {
	e := newEstate(t)
	for i := range 5 {
		e.do(e.open(), e.petition(fmt.Sprint("agent", i)))
	}
	if err := os.Remove(e.path("pages", place{1, 4}.name())); err != nil {
		t.Fatal(err)
	}
	var blocked *BlockError
	if _, err := e.open().Head(t.Context(), "atlas"); !errors.As(err, &blocked) || !strings.Contains(err.Error(), place{1, 4}.name()) {
		t.Fatalf("with a gap: %v", err)
	}
	rev, _, err := e.open().Restore(t.Context(), grant.Restore{Meta: e.meta(grant.Operator("olga")), Reason: "a page is missing"})
	if err != nil || rev.Page().Epoch != 2 || rev.Page().Rev <= 6 {
		t.Fatalf("restored: %v, %v", rev.Ref(), err)
	}
	e.do(e.open(), e.petition("later"))
}

// Another process of the user goes on between this one's look at the head and its look at the witness: no rollback.
func TestWitnessOfAnotherProcess(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	e.do(s, e.petition("anna"))
	stale, err := s.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	e.do(e.open(), e.petition("ben"))
	b, err := s.box("atlas")
	if err != nil {
		t.Fatal(err)
	}
	cmd := e.petition("carl")
	env, _, err := s.env(t.Context(), b, cmd, stale, false)
	if err != nil {
		t.Fatal(err)
	}
	next, err := grant.Apply(stale, cmd, env)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Swap(t.Context(), stale.Ref(), next); !errors.Is(err, grant.ErrConflict) {
		t.Errorf("a swap on the old head: %v", err)
	}
}

// Many processes of one user, each with the others' witness: all go through.
func TestWitnessAmongProcesses(t *testing.T) {
	e := newEstate(t)
	const n, each = 4, 10
	var stores []*Store
	var cmds [][]grant.Touch
	for i := range n {
		who := fmt.Sprint("agent", i)
		e.do(e.open(), e.petition(who))
		stores, cmds = append(stores, e.open()), append(cmds, nil)
		for range each {
			cmds[i] = append(cmds[i], grant.Touch{Meta: e.meta(grant.Agent(who))})
		}
	}
	errs := make(chan error)
	for i := range n {
		go func() {
			var err error
			for _, cmd := range cmds[i] {
				if _, _, derr := stores[i].Do(context.Background(), grant.Request{Command: cmd}); err == nil {
					err = derr
				}
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestScanWitness: a line is read the same by the quick way and the careful one, or by the careful one alone.
func TestScanWitness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digest := func(name string) grant.Digest {
			return grant.Digest(rapid.SampledFrom([]string{"", strings.Repeat("0a", 32), strings.Repeat("f9", 32)}).Draw(t, name))
		}
		number := rapid.Int64Range(-1, grant.MaxNumber)
		w := grant.Witness{Epoch: number.Draw(t, "epoch"), Grant: number.Draw(t, "grant"), Hash: digest("hash"), Next: number.Draw(t, "next"),
			Rev: number.Draw(t, "rev"), Register: grant.Register{Head: digest("head"), Seq: number.Draw(t, "seq")}}
		container := rapid.SampledFrom([]string{"atlas", "bench"}).Draw(t, "container")
		line, err := lineOf(container, w)
		if err != nil {
			t.Fatal(err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		sound := w.Epoch > 0 && w.Rev > 0 && w.Grant >= 0 && w.Next >= 0 && w.Register.Seq >= 0
		got, ok := scanWitness(line, container)
		if ok != sound || ok && got != w {
			t.Fatalf("%s\nscanned as %+v, %v", line, got, ok)
		}
		if rapid.Bool().Draw(t, "cut") {
			line = line[:rapid.IntRange(0, len(line)).Draw(t, "at")]
		} else {
			line[rapid.IntRange(0, len(line)-1).Draw(t, "at")] = rapid.SampledFrom([]byte(" 0a\"}{,:-\\\x00")).Draw(t, "byte")
		}
		quick, ok := scanWitness(line, "atlas")
		if !ok {
			return
		}
		var careful witnessLine
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&careful); err != nil || careful.V != 1 || careful.Container != "atlas" || careful.Witness != quick || !careful.whole(line) {
			t.Fatalf("%s\nscanned as %+v, decoded as %+v, %v", line, quick, careful, err)
		}
	})
}

// TestWitnessReadBefore: what was read before a commit is added to as it was read; when others have added since, it is
// read again, so that the last line stays the highest.
func TestWitnessReadBefore(t *testing.T) {
	e := newEstate(t)
	s, other := e.open(), e.open()
	e.do(s, e.petition("anna"))
	read, err := s.witnesses("atlas")
	if err != nil {
		t.Fatal(err)
	}
	own := e.do(s, grant.Touch{Meta: e.meta(grant.Agent("anna"))})
	later := e.do(other, grant.Touch{Meta: e.meta(grant.Agent("anna"))})
	s.rememberAfter("atlas", own, read)
	lines := func() []string {
		data, err := os.ReadFile(filepath.Join(s.witnessDir("atlas"), names(t, s.witnessDir("atlas"))))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
	n := len(lines())
	if w, err := parseWitness([]byte(lines()[n-1]), "atlas"); err != nil || w.Rev != later.Page().Rev {
		t.Errorf("the last line: %+v, %v", w, err)
	}
	if read, err = s.witnesses("atlas"); err != nil {
		t.Fatal(err)
	}
	more := e.do(other, grant.Touch{Meta: e.meta(grant.Agent("anna"))})
	s.rememberAfter("atlas", more, read)
	if len(lines()) != n+1 {
		t.Errorf("%d lines for one more page", len(lines())-n)
	}
}

// A restore whose answer was lost is found when it is given again, also when others have gone on since; another that
// uses its id is refused.
func TestRestoreIsFoundAgain(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	for range 3 {
		e.do(s, e.petition(fmt.Sprint("agent", e.n)))
	}
	if err := os.WriteFile(e.path("pages", place{1, 4}.name()), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := grant.Restore{Meta: e.meta(grant.Operator("olga")), Reason: "a page is torn", Witness: grant.Witness{Epoch: 1, Rev: 9}}
	first, kept, err := s.Restore(t.Context(), cmd)
	if err != nil || kept == "" || first.Page().Epoch != 2 {
		t.Fatalf("%v, %q, %v", first.Ref(), kept, err)
	}
	for range 2 {
		e.do(s, e.petition(fmt.Sprint("later", e.n)))
	}
	for _, s := range []*Store{s, e.open()} {
		again, _, err := s.RestoreIf(t.Context(), cmd, func(grant.Revision) error { return errors.New("asked of what is done") })
		if err != nil || again.Hash() != first.Hash() {
			t.Errorf("given again: %v, %v", again.Ref(), err)
		}
	}
	other := cmd
	other.Reason = "something else"
	if again, _, err := s.Restore(t.Context(), other); grant.CodeOf(err) == "" {
		t.Errorf("another with its id: %v, %v", again.Ref(), err)
	}
	if head, err := s.Head(t.Context(), "atlas"); err != nil || head.Page().Epoch != 2 || head.Page().Rev != first.Page().Rev+2 {
		t.Errorf("head %v, %v", head.Ref(), err)
	}
}
