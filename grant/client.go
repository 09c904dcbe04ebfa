package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Request is a command for Do.
type Request struct {
	Command Command
	// Since is the head that the client had stored with the nonce before its first attempt: Do first looks
	// for that attempt in what came after. The zero Ref: the nonce is fresh. Anywhere: look everywhere.
	Since    Ref
	Anywhere bool
	// Check, if not nil, is asked before each evaluation, once the nonce was looked for: its error is the result, and
	// nothing is changed. The head that it is given is the one that the command is evaluated on.
	Check func(head Revision) error
	// Env is asked before each evaluation, with the head that it is for.
	Env func(ctx context.Context, head Revision) (Env, error)
}

// maxLosses is how many lost answers in one Do mean that the store cannot be reached.
const maxLosses = 5

// Do carries a command out: it reads the head, evaluates, swaps, and after a conflict does so again, until the
// page is published, refused, or the context ends. Before anything is tried twice the nonce is looked for: a
// command whose first attempt succeeded returns that revision, and replayed. ErrUnknown comes out only when
// that look fails as well, or one answer after the other is lost: then nothing is known, and the same Request may be
// given again, with Since.
//
// A swap whose answer was lost may still happen later; that it cannot happen twice follows from its base,
// which only one revision can follow.
func Do(ctx context.Context, s Store, r Request) (rev Revision, replayed bool, err error) {
	meta := r.Command.meta()
	look := r.Anywhere || r.Since != Ref{}
	since := r.Since
	if r.Anywhere {
		since = Ref{}
	}
	var lost error // of a swap whose answer was lost, on base
	var base Ref
	losses := 0
	for {
		head, err := s.Head(ctx, meta.Container)
		if err != nil && !errors.Is(err, ErrLockMissing) {
			return Revision{}, false, unresolved(lost, err)
		}
		if err == nil && look {
			found, ok, err := findNonce(ctx, s, head, meta.Nonce, since)
			if err != nil {
				return Revision{}, false, unresolved(lost, err)
			}
			if ok {
				if r := SameCommand(found, r.Command); r != nil {
					return Revision{}, false, r
				}
				return found, true, nil
			}
		}
		if r.Check != nil {
			if err := r.Check(head); err != nil {
				return Revision{}, false, unresolved(lost, err)
			}
		}
		env := Env{}
		if r.Env != nil {
			if env, err = r.Env(ctx, head); err != nil {
				return Revision{}, false, unresolved(lost, err)
			}
		}
		next, err := Apply(head, r.Command, env)
		if err != nil && lost != nil && head.Ref() == base {
			return Revision{}, false, unresolved(lost, err) // the lost swap may still come
		}
		if err != nil {
			return Revision{}, false, err
		}
		if next.hash == head.hash {
			return head, true, nil
		}
		switch err = s.Swap(ctx, head.Ref(), next); {
		case err == nil:
			return next, false, nil
		case errors.Is(err, ErrUnknown):
			lost, base = err, head.Ref()
			if losses++; losses == maxLosses {
				return Revision{}, false, unresolved(lost, errors.New("so was every answer"))
			}
		case !errors.Is(err, ErrConflict):
			return Revision{}, false, err
		}
		if !look {
			look, since = true, head.Ref()
		}
		if ctx.Err() != nil {
			return Revision{}, false, unresolved(lost, ctx.Err())
		}
	}
}

// unresolved is an error after which nobody knows whether an attempt succeeded, if one's answer was lost.
func unresolved(lost, err error) error {
	if lost == nil {
		return err
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return fmt.Errorf("%w; evaluated again: %s", lost, r.Error()) // no refusal: something may still change
	}
	return fmt.Errorf("%w; then, looking for it: %w", lost, err)
}

// FindNonce looks for the revision with a nonce, from the head back to since, which is not looked at; the
// zero Ref: back to the first. False when it is not there.
func FindNonce(ctx context.Context, s Store, container, nonce string, since Ref) (Revision, bool, error) {
	head, err := s.Head(ctx, container)
	if err != nil {
		return Revision{}, false, err
	}
	return findNonce(ctx, s, head, nonce, since)
}

// FindNonceFrom looks for it from any revision back to the first, for who cannot read the head.
func FindNonceFrom(ctx context.Context, s Store, from Revision, nonce string) (Revision, bool, error) {
	return findNonce(ctx, s, from, nonce, Ref{})
}

func findNonce(ctx context.Context, s Store, head Revision, nonce string, since Ref) (found Revision, ok bool, err error) {
	err = back(ctx, s, head, func(r Revision) bool {
		if p := r.page; p.Epoch < since.Epoch || p.Epoch == since.Epoch && p.Rev <= since.Rev {
			return false
		}
		found, ok = r, r.page.Nonce == nonce
		return !ok
	})
	if !ok {
		found = Revision{}
	}
	return found, ok, err
}

// FindEnd tells how a grant ended; nil when it has not, or was not issued. For refusals of grants that ended
// longer ago than the page remembers.
func FindEnd(ctx context.Context, s Store, container string, grant int64) (*End, error) {
	head, err := s.Head(ctx, container)
	if err != nil {
		return nil, err
	}
	var end *End
	err = back(ctx, s, head, func(r Revision) bool {
		if e := r.page.Ended; e != nil && e.Grant == grant {
			end = copyOf(e)
		}
		return end == nil && r.page.Grant >= grant
	})
	return end, err
}

// Chain reads every revision that a container's head goes back to, in order, epoch after epoch.
func Chain(ctx context.Context, s Store, container string) ([]Revision, error) {
	head, err := s.Head(ctx, container)
	if err != nil {
		return nil, err
	}
	var chain []Revision
	err = back(ctx, s, head, func(r Revision) bool {
		chain = append(chain, r)
		return true
	})
	slices.Reverse(chain)
	return chain, err
}

// back visits revisions from the head to the first while visit says so. A restore goes on with what it found.
func back(ctx context.Context, s Store, at Revision, visit func(Revision) bool) error {
	for visit(at) {
		p := at.page
		before := Ref{Epoch: p.Epoch, Rev: p.Rev - 1}
		switch {
		case p.Op == OpCreate, p.Op == OpRestore && p.PrevHash == "":
			return nil
		case p.Op == OpRestore && p.Audit != nil:
			before = Ref{Epoch: p.Audit.SeenEpoch, Rev: p.Audit.Seen}
		}
		r, err := s.Read(ctx, p.Container, before)
		switch {
		case errors.Is(err, ErrLockMissing):
			return fmt.Errorf("%w: revision %d is missing in the middle", ErrBadPage, before.Rev)
		case err != nil:
			return err
		case r.hash != p.PrevHash:
			return fmt.Errorf("%w: revision %d is not the one that revision %d followed", ErrRollback, before.Rev, p.Rev)
		}
		at = r
	}
	return nil
}
