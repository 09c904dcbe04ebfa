// Package grant is the state machine of a container: one lead at a time works on it, for hours and over
// many processes, under a grant number that rises and never comes back.
//
// A container is its lock page and nothing else. Everything that happens to it is the page's next revision,
// published by one compare-and-swap ([Store.Swap]), and the page carries the head of the register: so a
// landing is that same compare-and-swap, and there is no moment between its check and its effect.
//
//	head, err := store.Head(ctx, name)                       // a linearizable read
//	next, err := grant.Apply(head, grant.Land{…}, grant.Env{Now: …})
//	if err != nil {
//		return err                                       // a *Refusal: nothing was changed
//	}
//	err = store.Swap(ctx, head.Ref(), next)                  // the one linearization point
//
// [Do] is these steps with the rest that they need: a conflict is evaluated again on the new head, and a lost
// answer is resolved by the command's nonce before anything is tried twice.
//
// What it guarantees, on a Store that keeps its word: the invariants I1 to I14 that [Verify] checks on a whole
// chain. In short: no two sessions hold one number; nothing lands after its grant has ended; a number is issued
// once; nobody is overtaken but past an offer that they let go by; what was silent shows until somebody has
// landed and released.
//
// What it does not guarantee: that whoever was overtaken stops working (the landing refuses them); that a
// name is who it says (names are the store's to check); anything against one who writes the store by hand,
// except that Verify finds it.
//
// Whose clock it trusts: none for safety. It reads no clock, the caller's comes in [Env]. A clock can refuse a
// command, or make somebody eligible too early or too late; who then gets the grant, and whether a landing
// counts, the compare-and-swap decides.
//
// It does no I/O of its own, starts no goroutine and draws no random numbers: nonces and secrets are the
// caller's, from crypto/rand.
//
// Reading the source: page.go is what there is, command.go what can be asked and refused; apply.go is the frame of
// every command, queue.go, hold.go, ids.go, block.go, repro.go, running.go and restore.go are the commands;
// encode.go and check.go make bytes of pages; verify.go and its neighbours check chains without any of that;
// client.go is Do. The bytes are in docs/format.md.
package grant
