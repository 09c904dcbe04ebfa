// Package granttest is what every grant.Store must pass: each failure that a store can meet, as a test of its
// own, with lost answers, swaps at once, torn pages and old backups.
//
//	func TestStore(t *testing.T) {
//		granttest.Run(t, func(t *testing.T, clock *granttest.Clock) granttest.Place {
//			dir := t.TempDir()
//			return granttest.Place{Open: func() grant.Store { return open(t, dir, clock) }}
//		})
//	}
//
// What a store cannot suffer (nobody can tear a page of it, say) its Place leaves out, and those tests are
// skipped. After each test the chain of every container is held against grant.Verify.
package granttest
