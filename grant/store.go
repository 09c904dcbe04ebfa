package grant

import (
	"context"
	"io"
)

// Ref names a revision of a container.
type Ref struct {
	Epoch int64
	Rev   int64
	Hash  Digest // of the page's bytes; may be empty where a revision is only asked for
}

// Revision is a page together with its bytes, which are the canonical ones. Make one with [Seal] or [Open];
// the zero Revision stands for no page.
type Revision struct {
	page  *Page
	bytes []byte
	hash  Digest
}

// Page is the page; nil for no page. Do not change it.
func (r Revision) Page() *Page { return r.page }

// Bytes are the page's canonical bytes. Do not change them.
func (r Revision) Bytes() []byte { return r.bytes }

// Hash is the SHA-256 of Bytes.
func (r Revision) Hash() Digest { return r.hash }

// Ref names the revision; the zero Ref for no page.
func (r Revision) Ref() Ref {
	if r.page == nil {
		return Ref{}
	}
	return Ref{Epoch: r.page.Epoch, Rev: r.page.Rev, Hash: r.hash}
}

// Store keeps the pages of containers and the objects beside them. Errors of the system (no space, no
// permission) are themselves; besides those a Store answers with the Err values of this package, wrapped or not.
//
// A Store promises: Head is a linearizable read; Swap a compare-and-swap whose success is durable; objects are
// create-only; history is kept whole, and nothing ever goes by age.
type Store interface {
	// Containers lists the names of the containers, in order.
	Containers(ctx context.Context) ([]string, error)

	// Head reads the last revision of the last epoch. ErrLockMissing, ErrBadPage, ErrNewer.
	Head(ctx context.Context, container string) (Revision, error)

	// Read reads one revision; Hash of at is not looked at. ErrLockMissing when there is none such, ErrBadPage, ErrNewer.
	Read(ctx context.Context, container string, at Ref) (Revision, error)

	// Swap publishes next if the head is base, and not otherwise: ErrConflict. The zero base is no page, and
	// then next is the first of its epoch; so is a next with a higher epoch than base, whose base is what a
	// restore found. ErrUnknown when nobody can tell whether it happened.
	Swap(ctx context.Context, base Ref, next Revision) error

	// Put stores an object under its SHA-256, durably, unless it is there; it returns that and the size.
	Put(ctx context.Context, container string, kind Kind, r io.Reader) (Digest, int64, error)

	// Get opens an object; fs.ErrNotExist when there is none. Who reads checks the hash.
	Get(ctx context.Context, container string, kind Kind, hash Digest) (io.ReadCloser, error)

	// Objects lists the objects of a kind, in order.
	Objects(ctx context.Context, container string, kind Kind) ([]Digest, error)
}

// Kind is what an object is for. Kinds have nothing in common: an object of one is not found under another.
type Kind string

// The kinds of objects.
const (
	KindArtifact   Kind = "artifacts"  // what has landed, or is about to
	KindQuarantine Kind = "quarantine" // refused landings, each a JSON document, and what they name
	KindStaging    Kind = "staging"    // results of reproductions
)

// Clock is what a Store has besides when its contenders share one clock. Stamps are then of SourceStore.
type Clock interface {
	Now(ctx context.Context) (Time, error)
}

// Watcher is what a Store has besides when it can wait for a change.
type Watcher interface {
	// Watch returns when the head is no longer at, at once if it is not; or with the context's error. It may
	// return too early.
	Watch(ctx context.Context, container string, at Ref) error
}
