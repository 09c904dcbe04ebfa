package register

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/grant"
)

// Landed is a landing, as its page has it.
type Landed struct {
	Seq      int64         `json:"seq"`  // 1, 2, … in the register
	Head     grant.Digest  `json:"head"` // the register's head after it
	Base     grant.Digest  `json:"base"` // and before; empty for the first
	ID       string        `json:"id"`   // the landing's nonce
	Manifest grant.Digest  `json:"manifest"`
	Empty    string        `json:"empty"` // why there was nothing to land
	Fenced   bool          `json:"fenced"`
	Grant    int64         `json:"grant"`
	N        int64         `json:"n"` // 1, 2, … within the grant
	Agent    string        `json:"agent"`
	Session  grant.Digest  `json:"session"`
	Stamp    grant.Stamp   `json:"stamp"`
	Note     string        `json:"note"`
	IDs      []grant.Range `json:"ids"`
	Epoch    int64         `json:"epoch"`
	Rev      int64         `json:"rev"` // of the page that brought it
}

// landedBy takes the landing out of the page that brought it.
func landedBy(rev grant.Revision) Landed {
	p := rev.Page()
	l := p.Landing
	ids := l.IDs
	if ids == nil {
		ids = []grant.Range{}
	}
	return Landed{
		Seq: p.Register.Seq, Head: l.New, Base: l.Base, ID: l.ID, Manifest: l.SHA256, Empty: l.Empty, Fenced: p.Op == grant.OpFinish,
		Grant: p.Grant, N: l.N, Agent: p.Holder.Agent, Session: p.Holder.Session, Stamp: p.Stamp, Note: p.Note, IDs: ids, Epoch: p.Epoch, Rev: p.Rev,
	}
}

// lands tells whether a page brought a landing. Before is the page that it followed, nil for none.
func lands(p, before *grant.Page) bool {
	return p.Landing != nil && (p.Op == grant.OpLand || p.Op == grant.OpFinish) && (before == nil || before.Register.Seq < p.Register.Seq)
}

// ErrNoLanding says that there is no such landing.
var ErrNoLanding = errors.New("there is no such landing")

// ErrGap says that the history does not go back to the container's first page: what landed before is not known.
var ErrGap = errors.New("the history has a gap")

// All goes through the landings, the latest first. Its last pair may be an error: ErrGap where pages were lost
// and a restore went on without them; else what the store said.
func (r *Register) All(ctx context.Context) iter.Seq2[Landed, error] {
	return func(yield func(Landed, error) bool) {
		head, err := r.store.Head(ctx, r.container)
		if err != nil {
			yield(Landed{}, err)
			return
		}
		r.from(ctx, head, yield)
	}
}

func (r *Register) from(ctx context.Context, at grant.Revision, yield func(Landed, error) bool) {
	pages := &ahead{r: r}
	for {
		p := at.Page()
		before, err := pages.before(ctx, p)
		if err != nil {
			yield(Landed{}, err)
			return
		}
		if lands(p, before.Page()) && !yield(landedBy(at), nil) {
			return
		}
		switch q := before.Page(); {
		case q == nil && p.Op == grant.OpCreate:
			return
		case q == nil, q.Register.Seq < p.Register.Seq && !lands(p, q):
			yield(Landed{}, fmt.Errorf("%w before revision %d: a restore went on without pages that were lost", ErrGap, p.Rev))
			return
		}
		at = before
	}
}

// before reads the page that p followed; the zero Revision for none.
func (a *ahead) before(ctx context.Context, p *grant.Page) (grant.Revision, error) {
	ref := grant.Ref{Epoch: p.Epoch, Rev: p.Rev - 1}
	switch {
	case p.PrevHash == "":
		return grant.Revision{}, nil
	case p.Op == grant.OpRestore && p.Audit != nil:
		ref = grant.Ref{Epoch: p.Audit.SeenEpoch, Rev: p.Audit.Seen}
	}
	rev, err := a.get(ctx, ref)
	switch {
	case errors.Is(err, grant.ErrLockMissing):
		return grant.Revision{}, fmt.Errorf("%w: revision %d is missing in the middle", grant.ErrBadPage, ref.Rev)
	case err != nil:
		return grant.Revision{}, err
	case rev.Hash() != p.PrevHash:
		return grant.Revision{}, fmt.Errorf("%w: revision %d is not the one that revision %d followed", grant.ErrRollback, ref.Rev, p.Rev)
	}
	return rev, nil
}

// At finds a landing: by its number, by its id, or by its head, or manifest, or the first eight digits or more of
// one of these; the latest for "". ErrNoLanding.
func (r *Register) At(ctx context.Context, which string) (Landed, error) {
	seq, number := int64(0), false
	if n, err := strconv.ParseInt(which, 10, 64); err == nil && len(which) < 8 {
		seq, number = n, true
	}
	for l, err := range r.All(ctx) {
		switch {
		case err != nil:
			return Landed{}, err
		case which == "", number && l.Seq == seq, !number && l.is(which):
			return l, nil
		case number && l.Seq < seq:
			return Landed{}, fmt.Errorf("%w: %d; the latest is %d", ErrNoLanding, seq, l.Seq)
		}
	}
	if which == "" {
		return Landed{}, fmt.Errorf("%w: nothing has landed yet", ErrNoLanding)
	}
	return Landed{}, fmt.Errorf("%w: %s", ErrNoLanding, shown(which))
}

func (l *Landed) is(which string) bool {
	const least = 8
	return l.ID == which || len(which) >= least && (strings.HasPrefix(string(l.Head), which) || strings.HasPrefix(string(l.Manifest), which))
}

// Content is a landing together with the tree that was the register's after it: its own, or for a landing that
// brought none, that of the last one before which did. The tree is nil while none had landed.
func (r *Register) Content(ctx context.Context, which string) (Landed, *Manifest, error) {
	l, err := r.At(ctx, which)
	if err != nil {
		return Landed{}, nil, err
	}
	d, err := r.contentBy(ctx, l.Manifest)
	if err != nil || d == "" {
		return l, nil, err
	}
	m, err := r.Manifest(ctx, d)
	if err != nil {
		return Landed{}, nil, err
	}
	return l, m, nil
}
