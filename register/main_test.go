package register

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// clock is set by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is one container in an estate on disk.
type world struct {
	t     *testing.T
	dir   string
	clock *clock
	store *local.Store
	reg   *Register
}

const box = "atlas"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), clock: &clock{t: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}}
	w.open(nil)
	w.must(w.do(grant.Create{Meta: w.meta(grant.Operator("op"))}))
	return w
}

func (w *world) open(fsys vfs.FS) {
	w.t.Helper()
	s, err := local.Open(w.dir, local.Options{State: filepath.Join(w.dir, "state"), Seams: &seam.Set{Clock: w.clock, FS: fsys}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store, w.reg = s, Of(s, box)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) nonce() string {
	n, err := (*seam.Set)(nil).Or().Hex24()
	w.must(err)
	return n
}

func (w *world) meta(by grant.Actor) grant.Meta {
	return grant.Meta{Container: box, Nonce: w.nonce(), By: by}
}

func (w *world) do(c grant.Command) error {
	_, _, err := w.store.Do(context.Background(), grant.Request{Command: c})
	return err
}

func (w *world) page() *grant.Page {
	w.t.Helper()
	rev, err := w.store.Head(context.Background(), box)
	w.must(err)
	return rev.Page()
}

// agent has a grant.
type agent struct {
	w    *world
	name string
	s    grant.Session
}

func (w *world) acquire(name string) *agent {
	w.t.Helper()
	a := &agent{w: w, name: name}
	copy(a.s.Secret[:], w.nonce())
	w.must(w.do(grant.Acquire{Meta: w.meta(grant.Agent(name)), Session: a.s.Secret.Hash()}))
	a.s.Grant = w.page().Grant
	return a
}

func (a *agent) landing(tree *Tree) Landing {
	a.w.t.Helper()
	return Landing{Command: grant.Land{Meta: a.w.meta(grant.Agent(a.name)), Session: a.s, Base: a.w.page().Register.Head}, Tree: tree}
}

func (a *agent) land(tree *Tree) (Receipt, error) {
	a.w.t.Helper()
	return a.w.reg.Land(context.Background(), a.landing(tree))
}

func (a *agent) release() error {
	back, err := a.w.reg.ReadBack(context.Background(), a.w.head())
	if err != nil {
		return err
	}
	return a.w.do(grant.Release{Meta: a.w.meta(grant.Agent(a.name)), Session: a.s, ReadBack: back})
}

// tree is one of files: names and contents in turn.
func tree(t *testing.T, files ...string) *Tree {
	t.Helper()
	tr := &Tree{}
	for i := 0; i < len(files); i += 2 {
		if err := tr.AddBytes(files[i], 0o644, []byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// cat reads a file of the register's content.
func (w *world) cat(which, name string) string {
	w.t.Helper()
	_, m, err := w.reg.Content(context.Background(), which)
	w.must(err)
	return string(w.read(m, name))
}

func (w *world) read(m *Manifest, name string) []byte {
	w.t.Helper()
	e, ok := m.Find(name)
	if !ok {
		w.t.Fatalf("%s is not there", name)
	}
	f, err := w.reg.Open(context.Background(), e)
	w.must(err)
	defer f.Close()
	data, err := io.ReadAll(f)
	w.must(err)
	return data
}

// verify checks the container's whole chain and that everything landed can be read.
func (w *world) verify() {
	w.t.Helper()
	ctx := context.Background()
	chain, err := grant.Chain(ctx, w.store, box)
	w.must(err)
	if err := grant.Verify(chain); err != nil {
		w.t.Fatal(err)
	}
	w.must(w.reg.Verify(ctx))
}

// folder describes a folder for comparing: each name with its kind, mode and content.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			got[name] = "folder"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			got[name] = "link " + to
			return err
		default:
			data, err := os.ReadFile(path)
			got[name] = info.Mode().String() + " " + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func codeIs(err error, code grant.Code) bool { return errors.Is(err, code) }

// object is the file of an object of the store.
func (w *world) object(kind grant.Kind, d grant.Digest) string {
	return filepath.Join(w.dir, "containers", box, "objects", string(kind), string(d))
}

func (w *world) damage(d grant.Digest) {
	w.t.Helper()
	name := w.object(grant.KindArtifact, d)
	data, err := os.ReadFile(name)
	w.must(err)
	data = bytes.Clone(data)
	data[len(data)/2] ^= 1
	w.must(os.WriteFile(name, data, 0o666))
}
