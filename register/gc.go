package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Collected is what a collection removed, or would remove.
type Collected struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Kept    int   `json:"kept"` // objects that something needs
}

// Collect removes the objects that no landing names, no refused one that is kept, and no reproduction, of all
// that ever were. It waits for those who are landing, and nobody begins to land meanwhile. Where the history or a
// document is not whole (ErrGap, grant.ErrBadPage, an *ObjectError), it removes nothing. Dry only counts.
//
// Documents of refused landings are never removed.
func Collect(ctx context.Context, store *local.Store, container string, wait time.Duration, dry bool) (done Collected, err error) {
	c, err := store.Collect(ctx, container, wait)
	if err != nil {
		return Collected{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	needed, err := Of(store, container).needed(ctx)
	if err != nil {
		return Collected{}, fmt.Errorf("nothing is collected: %w", err)
	}
	for _, kind := range []grant.Kind{grant.KindArtifact, grant.KindStaging} {
		all, err := store.Objects(ctx, container, kind)
		if err != nil {
			return done, err
		}
		for _, d := range all {
			if needed[kind][d] {
				done.Kept++
				continue
			}
			if err := ctx.Err(); err != nil {
				return done, err
			}
			n, err := c.Size(kind, d)
			if err == nil && !dry {
				err = c.Remove(kind, d)
			}
			if err != nil {
				return done, err
			}
			done.Objects++
			done.Bytes += n
		}
	}
	return done, nil
}

// needed is what may not be removed.
func (r *Register) needed(ctx context.Context) (map[grant.Kind]map[grant.Digest]bool, error) {
	artifacts, staging := map[grant.Digest]bool{}, map[grant.Digest]bool{}
	var manifests []grant.Digest
	// The whole history, since a block that was closed has left the page.
	head, err := r.store.Head(ctx, r.container)
	if err != nil {
		return nil, err
	}
	pages := &ahead{r: r}
	for at := head; ; {
		p := at.Page()
		for _, b := range p.Blocks {
			if b.Repro != nil {
				artifacts[b.Repro.Kernel], artifacts[b.Repro.Assumptions] = true, true
				staging[b.Repro.Result] = true
			}
		}
		before, err := pages.before(ctx, p)
		if err != nil {
			return nil, err
		}
		if lands(p, before.Page()) {
			manifests = append(manifests, p.Landing.SHA256)
		}
		if before.Page() == nil {
			break
		}
		at = before
	}
	if int64(len(manifests)) != head.Page().Register.Seq {
		return nil, fmt.Errorf("%w: %d of %d landings are known", ErrGap, len(manifests), head.Page().Register.Seq)
	}
	kept, err := r.Kept(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		manifests = append(manifests, k.Manifest)
	}
	slices.Sort(manifests)
	for _, d := range slices.Compact(manifests) {
		m, err := r.Manifest(ctx, d)
		if err != nil {
			return nil, err
		}
		artifacts[d] = true
		for _, e := range m.Entries {
			if e.Kind == KindFile {
				artifacts[e.SHA256] = true
			}
		}
	}
	return map[grant.Kind]map[grant.Digest]bool{grant.KindArtifact: artifacts, grant.KindStaging: staging}, nil
}
