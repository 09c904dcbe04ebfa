package register

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Landing is what is to land, and under which grant.
type Landing struct {
	// Command says who lands, on which base, and what they prove it with. Its Manifest is made here.
	Command grant.Land
	// Tree is what lands; nil or empty for an empty landing, which has its reason in Command.Empty.
	Tree *Tree
	// Manifest, instead of a Tree, lands a tree of which the store has every artifact already.
	Manifest *Manifest
	// Since and Anywhere are those of grant.Request: where to look for an earlier attempt with this nonce.
	Since    grant.Ref
	Anywhere bool
}

// Receipt is a landing that is there.
type Receipt struct {
	Landed
	Tree *Manifest // what it brought
	// Replayed: an earlier attempt with the same nonce had brought it.
	Replayed bool
}

// ErrNothing says that there is nothing to land, and no reason for that.
var ErrNothing = errors.New("there is nothing to land")

// Land stores the artifacts and lands them, in this order. A *grant.Refusal says that nothing has landed; where it
// is for the grant's sake it comes in a *RefusedError, and what was brought is kept. Any other error leaves the
// register as it was and the grant held: the same command works when its cause is gone. grant.ErrUnknown: nobody
// knows; the same command, with its nonce and Since, finds out.
func (r *Register) Land(ctx context.Context, l Landing) (Receipt, error) {
	return r.LandBy(ctx, l, func(ctx context.Context, c grant.Land, _ func(grant.Revision, bool) Receipt) (grant.Land, grant.Revision, bool, error) {
		rev, replayed, err := r.do(ctx, grant.Request{Command: c, Since: l.Since, Anywhere: l.Anywhere})
		return c, rev, replayed, err
	})
}

// Carry carries a landing out whose artifacts are stored, through the register's own store, which makes them durable
// before the page has its name: it gives the command as it was tried, with its nonce, and
// what grant.Do gives. receipt makes of that what LandBy will return.
type Carry func(ctx context.Context, c grant.Land, receipt func(rev grant.Revision, replayed bool) Receipt) (tried grant.Land, rev grant.Revision, replayed bool, err error)

// LandBy is Land for a caller who carries commands out by other means: the Since and Anywhere of l are not used.
func (r *Register) LandBy(ctx context.Context, l Landing, carry Carry) (Receipt, error) {
	var receipt Receipt
	err := r.guarded(ctx, func() error {
		put, err := r.putter(ctx)
		if err != nil {
			return err
		}
		defer put.Discard()
		m, err := r.storeLanding(ctx, &l, put)
		if err != nil {
			return err
		}
		made := func(rev grant.Revision, replayed bool) Receipt { return Receipt{landedBy(rev), m, replayed} }
		tried, rev, replayed, err := carry(ctx, l.Command, made)
		var refusal *grant.Refusal
		if errors.As(err, &refusal) && refusal.Quarantined() {
			if err := put.Commit(); err != nil {
				return &RefusedError{Refusal: refusal, Err: err}
			}
			return r.quarantine(ctx, tried, refusal)
		}
		if err != nil {
			return err
		}
		receipt = made(rev, replayed)
		// If it had landed before, no page has come since: but this may have mended what was damaged.
		return put.Commit()
	})
	return receipt, err
}

// storeLanding stores the artifacts of a landing and its manifest. They wait for the disk together, and their names
// together with the page that is published next.
func (r *Register) storeLanding(ctx context.Context, l *Landing, put putter) (m *Manifest, err error) {
	if m, err = r.bring(ctx, *l, put); err != nil {
		return nil, err
	}
	if l.Command.Manifest, err = putManifest(m, put); err != nil {
		return nil, err
	}
	return m, put.Place()
}

// putter stores artifacts that have to be there when Place has succeeded, and not before: durably when a page has
// been published since, or Commit has succeeded.
type putter interface {
	Put(r io.Reader) (grant.Digest, int64, error)
	Place() error
	Commit() error
	Discard()
}

func (r *Register) putter(ctx context.Context) (putter, error) {
	if s, ok := r.store.(*local.Store); ok {
		return s.Batch(ctx, r.container, grant.KindArtifact)
	}
	return &single{ctx, r}, nil
}

// single stores one after the other.
type single struct {
	ctx context.Context
	r   *Register
}

func (s *single) Put(from io.Reader) (grant.Digest, int64, error) {
	return s.r.store.Put(s.ctx, s.r.container, grant.KindArtifact, from)
}
func (*single) Place() error  { return nil }
func (*single) Commit() error { return nil }
func (*single) Discard()      {}

// bring stores the artifacts of a landing.
func (r *Register) bring(ctx context.Context, l Landing, put putter) (*Manifest, error) {
	tree := l.Tree != nil && l.Tree.Len() > 0
	switch {
	case l.Manifest != nil && (tree || l.Command.Empty != ""), tree && l.Command.Empty != "":
		return nil, fmt.Errorf("%w: a landing is one of empty, a tree and a manifest", grant.CodeBadInput)
	case l.Manifest != nil && len(l.Manifest.Entries) == 0:
		return nil, fmt.Errorf("%w: the manifest has no entries", ErrNothing)
	case l.Manifest != nil:
		return l.Manifest, r.holds(ctx, l.Manifest)
	case l.Command.Empty != "":
		content, err := r.contentOf(ctx, l.Command.Base)
		return &Manifest{V: 1, Content: content, Empty: l.Command.Empty, Entries: []Entry{}}, err
	case !tree:
		return nil, ErrNothing
	}
	if err := putTree(ctx, l.Tree, put); err != nil {
		return nil, err
	}
	return &Manifest{V: 1, Entries: l.Tree.entries()}, nil
}

// together is how many artifacts are stored at a time: each waits for the disk, and the disk takes several at once.
const together = 4

// putTree stores a tree's files. After an error the others that were begun are brought to an end, so that nothing
// of this goes on behind the caller's back.
func putTree(ctx context.Context, t *Tree, put putter) error {
	var files []*item
	for i := range t.items {
		if t.items[i].Kind == KindFile {
			files = append(files, &t.items[i])
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *item)
	var all sync.WaitGroup
	for range min(together, len(files)) {
		all.Go(func() {
			for it := range next {
				if err := putItem(ctx, it, put); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, it := range files {
		if ctx.Err() != nil {
			break
		}
		next <- it
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

func putItem(ctx context.Context, it *item, put putter) error {
	err := it.read(ctx, func(from io.Reader) error {
		var err error
		it.SHA256, _, err = put.Put(from)
		return err
	})
	if err != nil {
		return fmt.Errorf("land %s: %w", shown(it.Name), err)
	}
	return nil
}

func putManifest(m *Manifest, put putter) (grant.Digest, error) {
	data, err := m.Encode()
	if err != nil {
		return "", err
	}
	if len(data) > maxManifest {
		return "", fmt.Errorf("%w: %d bytes, at most %d", ErrManifest, len(data), maxManifest)
	}
	d, _, err := put.Put(bytes.NewReader(data))
	return d, err
}

// holds checks that the store has all that a manifest names, whole.
func (r *Register) holds(ctx context.Context, m *Manifest) error {
	for _, e := range m.Entries {
		if e.Kind != KindFile {
			continue
		}
		if err := r.whole(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// whole reads an artifact to its end.
func (r *Register) whole(ctx context.Context, e Entry) error {
	f, err := r.Open(ctx, e)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(io.Discard, f)
	if err == nil && n != e.Size {
		err = fmt.Errorf("%w: %s has %d bytes, not %d", ErrManifest, shown(e.Name), n, e.Size)
	}
	return err
}

// contentOf is the manifest whose tree is the register's at a head; empty when there is none.
func (r *Register) contentOf(ctx context.Context, head grant.Digest) (grant.Digest, error) {
	if head == "" {
		return "", nil
	}
	l, err := r.At(ctx, string(head))
	if errors.Is(err, ErrNoLanding) {
		return "", nil // the landing will be told that the head is another
	}
	if err != nil {
		return "", err
	}
	return r.contentBy(ctx, l.Manifest)
}

// contentBy is the manifest of the tree that stands after the landing with a manifest.
func (r *Register) contentBy(ctx context.Context, d grant.Digest) (grant.Digest, error) {
	m, err := r.Manifest(ctx, d)
	if err != nil {
		return "", err
	}
	if len(m.Entries) > 0 {
		return d, nil
	}
	return m.Content, nil
}

// ReadBack proves for a release that what a page's grant has landed can be read: the manifest and every artifact,
// each to its end. It returns the register's head that follows from that; empty where the grant has landed nothing.
func (r *Register) ReadBack(ctx context.Context, head grant.Revision) (grant.Digest, error) {
	p := head.Page()
	l := p.Landing
	if l == nil {
		return "", nil
	}
	m, err := r.Manifest(ctx, l.SHA256)
	if err != nil {
		return "", err
	}
	if err := r.holds(ctx, m); err != nil {
		return "", err
	}
	return grant.HeadAfter(p.Container, l.Base, p.Register.Seq, p.Grant, l.ID, l.SHA256), nil
}

// Verify reads everything that ever landed, and every refused landing that is kept, to its end.
func (r *Register) Verify(ctx context.Context) error {
	var manifests []grant.Digest
	for l, err := range r.All(ctx) {
		if err != nil {
			return err
		}
		manifests = append(manifests, l.Manifest)
	}
	kept, err := r.Kept(ctx, false)
	if err != nil {
		return err
	}
	for _, k := range kept {
		manifests = append(manifests, k.Manifest)
	}
	seen := map[grant.Digest]bool{}
	for _, d := range manifests {
		m, err := r.Manifest(ctx, d)
		if err != nil {
			return err
		}
		for _, e := range m.Entries {
			if e.Kind != KindFile || seen[e.SHA256] {
				continue
			}
			seen[e.SHA256] = true
			if err := r.whole(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}
