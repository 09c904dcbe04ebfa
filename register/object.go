package register

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
)

// Register is what has landed in one container. Its methods may be called from any goroutine.
type Register struct {
	store     grant.Store
	container string
}

// Of gives the register of a container. It reads nothing.
func Of(store grant.Store, container string) *Register { return &Register{store, container} }

// doer is a store that does more around a command than grant.Do: the embedded one.
type doer interface {
	Do(ctx context.Context, r grant.Request) (grant.Revision, bool, error)
}

// guard is a store whose objects can be collected: nothing is while somebody guards them.
type guard interface {
	GuardObjects(ctx context.Context, container string) (release func() error, err error)
}

// do carries a command out.
func (r *Register) do(ctx context.Context, req grant.Request) (grant.Revision, bool, error) {
	if d, ok := r.store.(doer); ok {
		return d.Do(ctx, req)
	}
	if req.Env == nil {
		clock, ok := r.store.(grant.Clock)
		if !ok {
			return grant.Revision{}, false, errors.New("a store without a clock needs Request.Env")
		}
		req.Env = func(ctx context.Context, _ grant.Revision) (grant.Env, error) {
			now, err := clock.Now(ctx)
			return grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}}, err
		}
	}
	return grant.Do(ctx, r.store, req)
}

// guarded keeps the collection away while f runs.
func (r *Register) guarded(ctx context.Context, f func() error) error {
	g, ok := r.store.(guard)
	if !ok {
		return f()
	}
	release, err := g.GuardObjects(ctx, r.container)
	if err != nil {
		return err
	}
	// It ends with the descriptor, at the latest with the process; what f did stands.
	defer func() { _ = release() }()
	return f()
}

// ErrMissing says that an object which something names is not in the store.
var ErrMissing = errors.New("it is not in the store")

// ErrDamaged says that an object's bytes are not those of its name.
var ErrDamaged = errors.New("its bytes in the store are damaged")

// ObjectError says which artifact or document of the store cannot be had. It matches ErrMissing or ErrDamaged.
type ObjectError struct {
	Container string
	Name      string // of the artifact, or what the object is; safe to show
	SHA256    grant.Digest
	Err       error
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("read %s of %s: %v: object %s", e.Name, display.Text(e.Container), e.Err, e.SHA256)
}

// Unwrap gives ErrMissing, ErrDamaged or what the system said.
func (e *ObjectError) Unwrap() error { return e.Err }

// open gives an object's bytes, which are checked as they are read: the last Read is an *ObjectError instead of
// io.EOF when they were not those of its name.
func (r *Register) open(ctx context.Context, kind grant.Kind, d grant.Digest, name string) (io.ReadCloser, error) {
	if !valid(d) {
		return nil, &ObjectError{r.container, name, "none", ErrMissing}
	}
	f, err := r.store.Get(ctx, r.container, kind, d)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrMissing
	}
	if err != nil {
		return nil, &ObjectError{r.container, name, d, err}
	}
	c := &checked{ctx: ctx, container: r.container, f: f, name: name, want: d}
	if _, checks := r.store.(*local.Store); !checks {
		c.sum = sha256.New()
	}
	return c, nil
}

// checked is an object that is read.
type checked struct {
	ctx       context.Context
	container string
	f         io.ReadCloser
	sum       hash.Hash // nil where the store checks what it gives
	name      string
	want      grant.Digest
}

func (c *checked) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.f.Read(p)
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, local.ErrBadObject):
		err = ErrDamaged
	case errors.Is(err, io.EOF):
		if c.sum == nil || hex.EncodeToString(c.sum.Sum(nil)) == string(c.want) {
			return n, io.EOF
		}
		err = ErrDamaged
	}
	return n, &ObjectError{c.container, c.name, c.want, err}
}

func (c *checked) Close() error { return c.f.Close() }

// document reads a whole small object.
func (r *Register) document(ctx context.Context, kind grant.Kind, d grant.Digest, name string, limit int64) ([]byte, error) {
	f, err := r.open(ctx, kind, d, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &ObjectError{r.container, name, d, ErrDamaged}
	}
	return data, err
}

// Manifest reads the manifest of a landing.
func (r *Register) Manifest(ctx context.Context, d grant.Digest) (*Manifest, error) {
	data, err := r.document(ctx, grant.KindArtifact, d, "the manifest", maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s of %s: %w", d, display.Text(r.container), err)
	}
	return m, nil
}

func (r *Register) put(ctx context.Context, kind grant.Kind, data []byte) (grant.Digest, error) {
	d, _, err := r.store.Put(ctx, r.container, kind, bytes.NewReader(data))
	return d, err
}

// Open reads one file of a tree, checked as open has it.
func (r *Register) Open(ctx context.Context, e Entry) (io.ReadCloser, error) {
	if e.Kind != KindFile {
		return nil, fmt.Errorf("read %s: it is a %s", shown(e.Name), e.Kind)
	}
	return r.open(ctx, grant.KindArtifact, e.SHA256, shown(e.Name))
}
