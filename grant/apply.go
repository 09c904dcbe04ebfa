package grant

import "errors"

var errNotYet = errors.New("not yet")

// Apply evaluates a command on the head of a container and returns the next revision, or a *Refusal: then
// nothing is to be done. The head is the zero Revision for Create and for Restore of a lost page; for any
// other command that is ErrLockMissing. It changes neither head nor cmd, and depends on nothing else.
//
// A command whose nonce is the head's own has been done: Apply then returns the head itself (the first
// result), or OP_ID_REUSED when its content is another's.
func Apply(head Revision, cmd Command, env Env) (Revision, error) { return Revision{}, errNotYet }

// CommandDigest is what Page.Digest has of a command: everything but its nonce, and of a secret only its hash.
func CommandDigest(cmd Command) Digest { return "" }

// Seal checks a page and gives it its bytes.
func Seal(p *Page) (Revision, error) { return Revision{}, errNotYet }

// Open decodes a page from its bytes. ErrBadPage, with the reason, for anything but the canonical encoding of
// a page that could be; ErrNewer for a later format.
func Open(data []byte) (Revision, error) { return Revision{}, errNotYet }

// CheckName tells whether a container or agent can have the name: 1 to 240 bytes of UTF-8, printable, without
// slash, backslash or colon, not "." or "..", no space or dot at either end. BAD_INPUT.
func CheckName(name string) error { return errNotYet }

// CheckNonce tells whether a nonce is one: 8 to 64 characters of A-Z a-z 0-9 . _ -. BAD_INPUT.
func CheckNonce(nonce string) error { return errNotYet }

// CheckParams tells whether params are within bounds. BAD_INPUT.
func CheckParams(p Params) error { return errNotYet }

// CheckWitness tells whether a head could be later than what was seen: ErrRollback otherwise.
func CheckWitness(head Revision, w Witness) error { return errNotYet }

// WitnessOf is what to remember of a head: the higher of both in each.
func WitnessOf(head Revision, before Witness) Witness { return before }

// Verify checks a chain, one epoch after another from their first revisions, against I1 to I14. The error is a
// *Broken.
func Verify(chain []Revision) error { return errNotYet }

// Broken names the invariant and the revision that broke it.
type Broken struct {
	Invariant string // "I1" to "I14"
	Rev       int64
	Op        Op
	Detail    string
}

func (b *Broken) Error() string { return b.Invariant + " broken" }

// Turn is a waiter's place in the queue.
type Turn struct {
	Petition int64 // its number; 0: no petition, and the queue is empty
	Place    int   // 1 is the head
	// Open tells whether acquiring depends only on the turn and the clock: the container is FREE, CLEARED or
	// HELD past its expiry. From is then from when the waiter may acquire; before that it is the earliest
	// moment that can be told, were nobody to release or extend.
	Open bool
	From Time
}

// TurnOf is an agent's turn; false when it has no petition and others have.
func TurnOf(p *Page, agent string, env Env) (Turn, bool) { return Turn{}, false }

// Badge is a container's state in one word.
type Badge string

// The badges. Silence is derived from the reader's own clock.
const (
	BadgeFree         Badge = "free"
	BadgeHeld         Badge = "held"
	BadgeHolderSilent Badge = "holder-silent"
	BadgeCaution      Badge = "caution"
)

// BadgeOf is the badge that a reader sees.
func BadgeOf(p *Page, now Time) Badge { return BadgeFree }

// HeadAfter is the register's head after a landing: the SHA-256 over the head before, the manifest and the
// landing, so that no head ever comes back.
func HeadAfter(container string, base Digest, seq, grant int64, nonce string, manifest Digest) Digest {
	return ""
}
