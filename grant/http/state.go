package granthttp

import (
	"context"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// What follows is of the user's own state, and is as package local has it: it asks no service.

// Witness is the highest that this user has seen of a container.
func (s *Store) Witness(container string) (grant.Witness, error) { return s.own.Witness(container) }

// Remember keeps what was seen as the user's witness.
func (s *Store) Remember(container string, seen grant.Revision) { s.own.Remember(container, seen) }

// Guard keeps the user's other processes from beginning an agent's acquire meanwhile.
func (s *Store) Guard(ctx context.Context, container, agent string) (release func(), err error) {
	return s.own.Guard(ctx, container, agent)
}

// NewSession draws a secret and stores it.
func (s *Store) NewSession(container, agent, nonce string, base grant.Ref) (*local.Session, error) {
	return s.own.NewSession(container, agent, nonce, base)
}

// OpenSession reads a session.
func (s *Store) OpenSession(path string) (*local.Session, error) { return s.own.OpenSession(path) }

// Sessions lists the user's sessions of a container.
func (s *Store) Sessions(container string) ([]*local.Session, error) {
	return s.own.Sessions(container)
}

// Granted stores the number that a session's acquire got.
func (s *Store) Granted(x *local.Session, number int64) error { return s.own.Granted(x, number) }

// Forget removes a session.
func (s *Store) Forget(x *local.Session) error { return s.own.Forget(x) }

// Prune removes sessions whose grants ended many grants ago.
func (s *Store) Prune(container string, begun int64) { s.own.Prune(container, begun) }

// Attempt stores a command of a session before its first try.
func (s *Store) Attempt(x *local.Session, op grant.Op, nonce string, base grant.Ref) (*local.Attempt, error) {
	return s.own.Attempt(x, op, nonce, base)
}

// Attempts lists a session's attempts that nobody has settled.
func (s *Store) Attempts(x *local.Session) ([]*local.Attempt, error) { return s.own.Attempts(x) }

// Settle forgets an attempt whose end is known.
func (s *Store) Settle(a *local.Attempt) error { return s.own.Settle(a) }
