package register

import (
	"context"
	"runtime"
	"sync"

	"github.com/stile-lock/stile/grant"
)

// How a long history is read: after a few pages one by one, those before them are read several at a time.
const (
	aheadAfter = 16
	aheadPages = 256
)

// ahead reads pages for somebody who goes back through a history. Not for use by several goroutines.
type ahead struct {
	r     *Register
	read  int
	pages map[grant.Ref]pageRead
}

type pageRead struct {
	rev grant.Revision
	err error
}

// get reads a page, and from some point on the ones before it as well.
func (a *ahead) get(ctx context.Context, ref grant.Ref) (grant.Revision, error) {
	if p, ok := a.pages[ref]; ok {
		return p.rev, p.err
	}
	if a.read++; a.read < aheadAfter {
		return a.r.store.Read(ctx, a.r.container, ref)
	}
	n := int(min(aheadPages, ref.Rev))
	found := make([]pageRead, n)
	var all sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), 8)
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				at := grant.Ref{Epoch: ref.Epoch, Rev: ref.Rev - int64(i)}
				found[i].rev, found[i].err = a.r.store.Read(ctx, a.r.container, at)
			}
		})
	}
	all.Wait()
	// One that nobody asks for may be missing: what came before a restore is elsewhere.
	a.pages = make(map[grant.Ref]pageRead, n)
	for i, p := range found {
		a.pages[grant.Ref{Epoch: ref.Epoch, Rev: ref.Rev - int64(i)}] = p
	}
	return found[0].rev, found[0].err
}
