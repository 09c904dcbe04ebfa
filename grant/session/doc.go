// Package session is an agent's work under grants, from one command of a tool to the next: it gives each
// command what package grant leaves to its caller, and keeps what must outlive a process.
//
//	c := session.Client{Store: store, Agent: "ada"}
//	x, got, err := c.Acquire(ctx, "atlas", "")       // x's secret is on disk before the attempt
//	landed, err := c.Land(ctx, "atlas", x.Path, session.Landing{Files: []string{"map.svg"}})
//	_, err = c.Release(ctx, x, "")
//
// It guarantees, on a Store that keeps its word:
//
//  1. A command whose answer was lost, or whose process died, is found again by the next one of its kind and
//     done once: an acquire gives the grant that it had got, a landing its first receipt.
//  2. Two processes of one agent that acquire at once get one grant between them, and one is refused.
//  3. A landing that is refused because its grant has ended is kept whole in quarantine, with the refusal.
//  4. A release happens only after everything that was landed was read back and had its hash.
//  5. Whoever keeps a grant alive (Keeper) is told of its end before it comes, by the wall clock.
//
// It does not guarantee that a session outlives the user's state folder: who loses that waits for the expiry.
//
// Whose clock it trusts: the store's, for when a turn has come and when a grant is about to end. Neither
// decides anything: the store does.
package session
