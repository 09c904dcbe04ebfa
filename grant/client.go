package grant

import "context"

// Now asks the store for its time, else takes the caller's.
type Now func(ctx context.Context) (Stamp, error)

// Request is a command for Do.
type Request struct {
	Command Command
	// Since is the head that the client had stored with the nonce before its first attempt: Do first looks
	// for that attempt in what came after. The zero Ref: the nonce is fresh. Anywhere: look everywhere.
	Since    Ref
	Anywhere bool
	// Env is asked before each evaluation, with the head that it is for.
	Env func(ctx context.Context, head Revision) (Env, error)
}

// Do carries a command out: it reads the head, evaluates, swaps, and after a conflict does so again, until the
// page is published, refused, or the context ends. Before anything is tried twice the nonce is looked for: a
// command whose first attempt succeeded returns that revision, and replayed. ErrUnknown comes out only when
// that look fails as well: then nothing is known, and the same Request may be given again, with Since.
func Do(ctx context.Context, s Store, r Request) (rev Revision, replayed bool, err error) {
	return Revision{}, false, errNotYet
}

// FindNonce looks for the revision with a nonce, from the head back to since, which is not looked at. False
// when it is not there.
func FindNonce(ctx context.Context, s Store, container, nonce string, since Ref) (Revision, bool, error) {
	return Revision{}, false, errNotYet
}

// FindEnd tells how a grant ended; nil when it has not, or was not issued. For refusals of grants that ended
// longer ago than the page remembers.
func FindEnd(ctx context.Context, s Store, container string, grant int64) (*End, error) {
	return nil, errNotYet
}

// Chain reads every revision of a container from the first, in order, epoch after epoch.
func Chain(ctx context.Context, s Store, container string) ([]Revision, error) { return nil, errNotYet }
