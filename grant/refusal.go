package grant

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of a refusal or of a store's error. It is an error itself, so that
// errors.Is(err, grant.CodeHeld) asks for it.
type Code string

// The codes. Those of a Refusal say that nothing was changed.
const (
	CodeExists         Code = "EXISTS"
	CodeDuplicate      Code = "DUPLICATE"
	CodeGone           Code = "GONE"
	CodeHeld           Code = "HELD"
	CodeNotYourTurn    Code = "NOT_YOUR_TURN"
	CodeLandingRuns    Code = "LANDING_RUNS"
	CodeNested         Code = "NESTED"
	CodePastCap        Code = "PAST_CAP"
	CodeExpired        Code = "EXPIRED"
	CodeFenced         Code = "FENCED"
	CodeNotHolder      Code = "NOT_HOLDER"
	CodeNotLead        Code = "NOT_LEAD"
	CodeExhausted      Code = "EXHAUSTED"
	CodeRegisterMoved  Code = "REGISTER_MOVED"
	CodeBadIDs         Code = "BAD_IDS"
	CodeNotPushed      Code = "NOT_PUSHED"
	CodeLeasesOpen     Code = "LEASES_OPEN"
	CodeNotExpired     Code = "NOT_EXPIRED"
	CodeReasonRequired Code = "REASON_REQUIRED"
	CodeAlreadyCleared Code = "ALREADY_CLEARED"
	CodeOpIDReused     Code = "OP_ID_REUSED"
	CodeNotStaged      Code = "NOT_STAGED"
	CodeAlreadyStaged  Code = "ALREADY_STAGED"

	CodeNotHeld     Code = "NOT_HELD"     // clear of a container that nobody holds
	CodeOwnGrant    Code = "OWN_GRANT"    // clear by the holder's own session
	CodeInDoubt     Code = "IN_DOUBT"     // an earlier fenced command is not resolved
	CodeNotRunning  Code = "NOT_RUNNING"  // no fenced command of that name
	CodeNotDeriving Code = "NOT_DERIVING" // a result before its derivation has begun
	CodeSameAgent   Code = "SAME_AGENT"   // the role needs another agent, or this one is not the one named
	CodeNoBlock     Code = "NO_BLOCK"     // no open block of that number, or of another kind
	CodeLimit       Code = "LIMIT"        // a page holds no more of these
	CodeBadInput    Code = "BAD_INPUT"    // a name, nonce, range or text that can never work

	CodeConflict    Code = "CONFLICT"
	CodeUnknown     Code = "UNKNOWN"
	CodeBadPage     Code = "BAD_PAGE"
	CodeNewer       Code = "NEWER"
	CodeRollback    Code = "ROLLBACK"
	CodeLockMissing Code = "LOCK_MISSING"
)

// Error is the code.
func (c Code) Error() string { return string(c) }

// What a Store says, for errors.Is; the codes are the same.
var (
	// ErrConflict: the base is not the head any more; nothing was written.
	ErrConflict error = CodeConflict
	// ErrUnknown: the answer was lost. The swap may have happened, or may still: look for the nonce first.
	ErrUnknown error = CodeUnknown
	// ErrBadPage: what lies there is no page: torn, damaged or foreign. It blocks, and is never skipped.
	ErrBadPage error = CodeBadPage
	// ErrNewer: a page of a later format. Nothing is changed.
	ErrNewer error = CodeNewer
	// ErrRollback: the page is older than one that was seen, or its chain another.
	ErrRollback error = CodeRollback
	// ErrLockMissing: there is no such container; for one that a witness knows, its page was lost.
	ErrLockMissing error = CodeLockMissing
)

// CodeOf finds the code in an error; empty when it has none.
func CodeOf(err error) Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return ""
}

// Refusal says why a command was refused, and what helps. Nothing was changed. Its JSON is what a quarantine keeps
// of a refused landing.
type Refusal struct {
	Code  Code   `json:"code"`
	Op    Op     `json:"op"`    // what was refused
	Cause string `json:"cause"` // in words, all of them safe to show
	// Next is the command that helps, without the tool's name: "grant petition NAME"; more when it is not a
	// command but a thing to do. Hint is in words what it does.
	Next string `json:"next"`
	Hint string `json:"hint"`

	Container string  `json:"container"`
	Rev       int64   `json:"rev"` // the head that it was judged on
	State     State   `json:"state"`
	Grant     int64   `json:"grant"`  // the current grant
	Holder    *Holder `json:"holder"` // who has it, or null
	Expiry    Time    `json:"expiry"` // of it
	// Yours is the grant that the command came with, 0 for none. Ended is how that one ended, when the page
	// still knows: else look for it with FindEnd.
	Yours int64 `json:"yours"`
	Ended *End  `json:"ended"`
	// Turn is the caller's place and time, of HELD and NOT_YOUR_TURN; nil when it has no petition.
	Turn *Turn `json:"turn"`
}

// Quarantined tells whether a refused landing's artifacts are to be kept: FENCED, NOT_HOLDER and EXPIRED.
func (r *Refusal) Quarantined() bool {
	if r.Op != OpLand && r.Op != OpFinish {
		return false
	}
	return r.Code == CodeFenced || r.Code == CodeNotHolder || r.Code == CodeExpired
}

// Is matches the refusal's code.
func (r *Refusal) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == r.Code
}

func (r *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s refused: %s", r.Op, r.Container, r.Cause)
	if r.Holder != nil && !strings.Contains(r.Cause, r.Holder.Agent) {
		fmt.Fprintf(&b, "; %s holds grant %d until %s", r.Holder.Agent, r.Grant, r.Expiry)
	}
	if r.Next != "" {
		fmt.Fprintf(&b, "; next: %s", r.Next)
	}
	return b.String()
}
