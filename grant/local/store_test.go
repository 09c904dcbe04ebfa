package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// estate is a folder with the container atlas, and stores of processes that start there.
type estate struct {
	t     *testing.T
	dir   string
	state string
	clock *granttest.Clock
	n     int
}

func newEstate(t *testing.T) *estate {
	e := &estate{t: t, dir: estateDir(t), state: filepath.Join(t.TempDir(), "stile"), clock: granttest.NewClock()}
	e.do(e.open(), grant.Create{Meta: e.meta(grant.Operator("olga"))})
	return e
}

func (e *estate) open() *Store {
	e.t.Helper()
	s, err := Open(e.dir, Options{State: e.state, Seams: &seam.Set{Clock: clock{e.clock}}})
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

func (e *estate) meta(by grant.Actor) grant.Meta {
	e.n++
	return grant.Meta{Container: "atlas", Nonce: fmt.Sprintf("nonce-%04d", e.n), By: by}
}

func (e *estate) do(s *Store, cmd grant.Command) grant.Revision {
	e.t.Helper()
	rev, _, err := s.Do(e.t.Context(), grant.Request{Command: cmd})
	if err != nil {
		e.t.Fatal(err)
	}
	return rev
}

func (e *estate) path(elem ...string) string {
	return filepath.Join(append([]string{e.dir, "containers", "atlas"}, elem...)...)
}

func (e *estate) petition(who string) grant.Petition {
	return grant.Petition{Meta: e.meta(grant.Agent(who))}
}

// TestNames is a contract with docs/format.md.
func TestNames(t *testing.T) {
	e := newEstate(t)
	for i := range 20 {
		e.do(e.open(), e.petition(fmt.Sprint("agent", i)))
	}
	if got := names(t, e.path()); got != "head pages pending" {
		t.Errorf("the container has %s", got)
	}
	if got := names(t, e.path("pages")); !strings.HasPrefix(got, "0001-0000000000000001.json 0001-0000000000000002.json ") {
		t.Errorf("the pages are %s", got)
	}
	if data, err := os.ReadFile(e.path("head")); err != nil || string(data) != "0001-0000000000000017.json\n" {
		t.Errorf("the hint is %q, %v", data, err)
	}
	for _, name := range []string{"1-1.json", "0001-0000000000000000.json", "0000-0000000000000001.json", "0001-0000000000000001", "0001--000000000000001.json",
		"0001-000000000000001a.json", "00001-0000000000000001.json", "0001-00000000000000001.json", "0001-9999999999999999.json"} {
		if p, ok := parsePlace(name); ok {
			t.Errorf("%s is taken for %v", name, p)
		}
	}
	for _, p := range []place{{1, 1}, {12345, 1 << 52}} {
		if q, ok := parsePlace(p.name()); !ok || q != p {
			t.Errorf("%s is read as %v", p.name(), q)
		}
	}
}

// TestHeadIsFoundByHint: with a thousand revisions neither finding the head nor the next swap lists them, nor looks
// at more names than a stride or two.
func TestHeadIsFoundByHint(t *testing.T) {
	s := newSim(t, classes[0])
	s.upTo(1)
	first := s.store(s.mem, 1, nil)
	if err := s.run(first, grant.Petition{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if err := s.run(first, grant.Touch{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	counts := counter{}
	late := s.store(s.mem, 2, counts.hook)
	if head, err := late.Head(t.Context(), "atlas"); err != nil || head.Page().Rev != 302 {
		t.Fatalf("head %v, %v", head.Ref(), err)
	}
	if counts["list /e/containers/atlas/pages"] != 0 || counts["lstat"] > 2*stride+8 {
		t.Errorf("to find the head: %v", counts)
	}
	// A lost hint costs a listing, and nothing else.
	if err := s.mem.Remove("/e/containers/atlas/head"); err != nil {
		t.Fatal(err)
	}
	if head, err := s.store(s.mem, 3, nil).Head(t.Context(), "atlas"); err != nil || head.Page().Rev != 302 {
		t.Fatalf("without a hint: head %v, %v", head.Ref(), err)
	}
	for _, hint := range []string{"", "x", "0001-0000000000000001.json", "0001-0000000000000302.json\n0001", strings.Repeat("x", 1000)} {
		s.mem.Put("/e/containers/atlas/head", []byte(hint), 0o600)
		if head, err := s.store(s.mem, 4, nil).Head(t.Context(), "atlas"); err != nil || head.Page().Rev != 302 {
			t.Fatalf("with the hint %q: head %v, %v", hint, head.Ref(), err)
		}
	}
}

// TestLinksAreNotFollowed: case 34, a link in a cloned estate leads nowhere.
func TestLinksAreNotFollowed(t *testing.T) {
	for _, at := range []string{"containers", "containers/atlas", "containers/atlas/pages", "containers/atlas/pages/0001-0000000000000001.json"} {
		t.Run(at, func(t *testing.T) {
			e := newEstate(t)
			inside := filepath.Join(e.dir, at)
			outside := filepath.Join(t.TempDir(), "outside")
			if err := errors.Join(os.Rename(inside, outside), os.Symlink(outside, inside)); err != nil {
				t.Skip(err)
			}
			s := e.open()
			if rev, err := s.Head(t.Context(), "atlas"); err == nil {
				t.Fatalf("read through a link: revision %d", rev.Page().Rev)
			}
			if _, _, err := s.Do(t.Context(), grant.Request{Command: e.petition("anna")}); err == nil {
				t.Fatal("wrote through a link")
			}
			if info, err := os.Stat(outside); err != nil || info.IsDir() && at == "containers/atlas/pages" && names(t, outside) != "0001-0000000000000001.json" {
				t.Errorf("outside: %v", err)
			}
		})
	}
}

// TestOddPages: what is no regular file in the place of a page is a block that names it and the command.
func TestOddPages(t *testing.T) {
	plant := map[string]func(name string) error{
		"folder":         func(name string) error { return os.Mkdir(name, 0o700) },
		"dangling link":  func(name string) error { return os.Symlink("nowhere", name) },
		"too large":      func(name string) error { return os.WriteFile(name, make([]byte, maxPage+1), 0o600) },
		"other's page":   nil,
		"wrong revision": nil,
	}
	for what, f := range plant {
		t.Run(what, func(t *testing.T) {
			e := newEstate(t)
			name := e.path("pages", place{1, 2}.name())
			switch what {
			case "other's page":
				other := grant.Create{Meta: e.meta(grant.Operator("olga"))}
				other.Container = "borea"
				rev := e.do(e.open(), other)
				if err := os.WriteFile(name, rev.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			case "wrong revision":
				if err := os.Link(e.path("pages", first.name()), name); err != nil {
					t.Skip(err)
				}
			default:
				if err := f(name); err != nil {
					t.Skip(err)
				}
			}
			_, _, err := e.open().Do(t.Context(), grant.Request{Command: e.petition("anna")})
			var blocked *BlockError
			if !errors.As(err, &blocked) || !errors.Is(err, grant.ErrBadPage) || !strings.Contains(err.Error(), place{1, 2}.name()) ||
				!strings.Contains(err.Error(), "stile grant restore atlas") {
				t.Fatalf("got %v", err)
			}
			if _, kept, err := e.open().Restore(t.Context(), grant.Restore{Meta: e.meta(grant.Operator("olga")), Reason: "odd"}); err != nil || kept == "" {
				t.Fatalf("the command that helps: kept %q, %v", kept, err)
			} else if _, err := os.Lstat(e.path(kept)); err != nil {
				t.Error("what was set aside is not kept")
			}
			e.do(e.open(), e.petition("anna"))
		})
	}
}

// TestNewerPage: a page of a later format is left alone, by its own name.
func TestNewerPage(t *testing.T) {
	e := newEstate(t)
	data, err := os.ReadFile(e.path("pages", first.name()))
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(data), `"v":1}`, `"v":2}`, 1)
	if err := os.WriteFile(e.path("pages", place{1, 2}.name()), []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	s := e.open()
	for _, err := range []error{
		func() error { _, err := s.Head(t.Context(), "atlas"); return err }(),
		func() error { _, _, err := s.Do(t.Context(), grant.Request{Command: e.petition("anna")}); return err }(),
		func() error {
			_, _, err := s.Restore(t.Context(), grant.Restore{Meta: e.meta(grant.Operator("olga")), Reason: "newer"})
			return err
		}(),
	} {
		if !errors.Is(err, grant.ErrNewer) {
			t.Errorf("got %v", err)
		}
	}
	if got, err := os.ReadFile(e.path("pages", place{1, 2}.name())); err != nil || string(got) != later {
		t.Error("it was touched")
	}
}

// TestDamagedObject is read as damaged, and mended by putting it again.
func TestDamagedObject(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	put := func() grant.Digest {
		d, _, err := s.Put(t.Context(), "atlas", grant.KindArtifact, strings.NewReader(artifact))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	read := func(d grant.Digest) error {
		f, err := s.Get(t.Context(), "atlas", grant.KindArtifact, d)
		if err != nil {
			return err
		}
		defer f.Close()
		buf := make([]byte, 1<<10)
		for err == nil {
			_, err = f.Read(buf)
		}
		return err
	}
	d := put()
	name := e.path("objects", "artifacts", string(d))
	if err := os.WriteFile(name, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := read(d); !errors.Is(err, ErrBadObject) {
		t.Errorf("a damaged object reads %v", err)
	}
	if put() != d || errors.Is(read(d), ErrBadObject) {
		t.Error("putting it again does not mend it")
	}
	if _, err := s.Get(t.Context(), "atlas", "../pages", d); grant.CodeOf(err) != grant.CodeBadInput {
		t.Errorf("an unknown kind: %v", err)
	}
	if _, err := s.Get(t.Context(), "atlas", grant.KindArtifact, "../head"); grant.CodeOf(err) != grant.CodeBadInput {
		t.Errorf("no digest: %v", err)
	}
	if _, err := s.Get(t.Context(), "atlas", grant.KindArtifact, d[:63]+"0"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such object: %v", err)
	}
}

// A folder that came without its empty ones, as git makes it, works.
func TestPendingFolderMissing(t *testing.T) {
	e := newEstate(t)
	if err := os.Remove(e.path("pending")); err != nil {
		t.Fatal(err)
	}
	e.do(e.open(), e.petition("anna"))
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for estate, id := range map[string]string{"": "", file: "", filepath.Join(file, "none"): "", t.TempDir(): "../up"} {
		if _, err := Open(estate, Options{Estate: id}); err == nil {
			t.Errorf("opened %q as %q", estate, id)
		}
	}
	s := newEstate(t).open()
	for _, name := range []string{"", "..", "a/b", `a\b`, ".hidden", strings.Repeat("x", 241), "a\nb"} {
		if _, err := s.Head(t.Context(), name); grant.CodeOf(err) != grant.CodeBadInput {
			t.Errorf("container %q: %v", name, err)
		}
	}
	if _, _, err := s.Restore(t.Context(), grant.Restore{Meta: grant.Meta{Container: "none", Nonce: "a-restore", By: grant.Operator("olga")}, Reason: "why"}); !errors.Is(err, grant.ErrLockMissing) {
		t.Errorf("restored what never was: %v", err)
	}
	if names, err := s.Containers(t.Context()); err != nil || len(names) != 1 {
		t.Errorf("containers %q, %v", names, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	if _, err := s.Head(ctx, "atlas"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// counter counts operations by kind, and listings by folder too.
type counter map[string]int

func (c counter) hook(op vfstest.Op) error {
	c[op.Kind]++
	if op.Kind == "list" {
		c["list "+op.Name]++
	}
	return nil
}

// TestPageInAnothersPlace: a process that knows a page well is not taken in by a copy of it under a later name.
func TestPageInAnothersPlace(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	rev, err := s.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.path("pages", place{1, 2}.name()), rev.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var blocked *BlockError
	if _, err := s.Head(t.Context(), "atlas"); !errors.As(err, &blocked) {
		t.Errorf("got %v", err)
	}
}
