package grant

import "time"

// Version is the page format that this package writes, and the highest that it reads.
const Version = 1

// MaxNumber bounds revisions, grants and identifiers: the largest integer that every JSON reader has exactly.
const MaxNumber = 1<<53 - 1

// State is what a page says of its grant.
type State string

// The states of a container. Whether a held grant has expired is for each reader's own clock: [BadgeOf].
const (
	StateFree    State = "FREE"    // no grant, or the last one was released
	StateHeld    State = "HELD"    // a grant that has not ended; it may be past its expiry
	StateCleared State = "CLEARED" // an operator ended the grant of a silent holder
)

// Digest is a SHA-256 in 64 lower-case hex digits, or empty for none.
type Digest string

// Page is a container's lock page: its whole state after one revision, and what that revision did. Pages are
// values: nothing in this package changes one that it was given.
//
// The fields stand in the order of their JSON keys, which is the canonical one. Every key is always there.
type Page struct {
	Audit     *Audit      `json:"audit"`      // of a clear or restore: this revision's one audit line
	Blocks    []Block     `json:"blocks"`     // open blocks, the oldest first
	By        Actor       `json:"by"`         // who made this revision
	Container string      `json:"container"`  //
	Digest    Digest      `json:"digest"`     // of the command that made this revision
	Doubts    []Doubt     `json:"doubts"`     // fenced commands whose end nobody saw
	Ended     *End        `json:"ended"`      // how the last ended grant ended
	Epoch     int64       `json:"epoch"`      // 1, and one more for each restore
	Expiry    Time        `json:"expiry"`     // HELD only
	Grant     int64       `json:"grant"`      // the current number, or the last one; 0 before the first
	GrantTime Time        `json:"grant_time"` // HELD only
	Heartbeat Time        `json:"heartbeat"`  // HELD only: when the holder was last heard of
	Holder    *Holder     `json:"holder"`     // HELD only
	IDs       Identifiers `json:"ids"`        //
	Landing   *Landing    `json:"landing"`    // the last landing of this grant; HELD only
	Nonce     string      `json:"nonce"`      // of the attempt that made this revision
	Note      string      `json:"note"`       // what this revision's command said in words
	Offer     *Offer      `json:"offer"`      // FREE and CLEARED with a queue
	Op        Op          `json:"op"`         // what made this revision
	Params    Params      `json:"params"`     //
	Passed    []Passed    `json:"passed"`     // petitions that this revision passed over
	PrevHash  Digest      `json:"prev_hash"`  // SHA-256 of the page before; empty in the first
	Queue     []Waiter    `json:"queue"`      // live petitions in turn
	Register  Register    `json:"register"`   //
	Rev       int64       `json:"rev"`        // 1, 2, 3, …
	Running   *Running    `json:"running"`    // a fenced command that has begun
	Silent    Silence     `json:"silent"`     //
	Stamp     Stamp       `json:"stamp"`      // when this revision was made
	State     State       `json:"state"`      //
	V         int64       `json:"v"`          // Version
}

// Role says in what capacity somebody acts.
type Role string

// Agents work; operators clear and restore.
const (
	RoleAgent    Role = "agent"
	RoleOperator Role = "operator"
)

// Actor is who made a revision.
type Actor struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// Source says whose clock a stamp is of.
type Source string

// The store's clock is one for all; a client's is its own.
const (
	SourceStore  Source = "store"
	SourceClient Source = "client"
)

// Stamp is a time and whose it is.
type Stamp struct {
	Source Source `json:"src"`
	T      Time   `json:"t"`
}

// Holder is the lead. Its session's secret is in no page.
type Holder struct {
	Agent   string `json:"agent"`
	Session Digest `json:"session"` // SHA-256 of the secret
}

// Register is what has landed.
type Register struct {
	Head Digest `json:"head"` // empty while nothing has
	Seq  int64  `json:"seq"`  // how many landings
}

// Landing is the last landing of the current grant.
type Landing struct {
	Base   Digest  `json:"base"`   // the register's head before
	Empty  string  `json:"empty"`  // why there was nothing to land; empty when there was something
	ID     string  `json:"id"`     // the landing's nonce
	IDs    []Range `json:"ids"`    // identifiers that it used
	N      int64   `json:"n"`      // 1, 2, … within the grant
	New    Digest  `json:"new"`    // the register's head after: HeadAfter
	SHA256 Digest  `json:"sha256"` // of the manifest of what landed
}

// Waiter is a live petition: a place in the queue.
type Waiter struct {
	Agent   string `json:"agent"`
	Misses  int64  `json:"misses"`  // offers that it let go by: 0 or 1
	Rev     int64  `json:"rev"`     // of its revision: the petition's number
	Since   Time   `json:"since"`   // when it came to this place
	Touched Time   `json:"touched"` // when its agent was last heard of
}

// Offer is open from a release or clear until somebody acquires.
type Offer struct {
	OpenedAt  Time  `json:"opened_at"`
	OpenedRev int64 `json:"opened_rev"`
	Petition  int64 `json:"petition"` // the queue's head, whose window it is
}

// Why a petition was passed over.
type Why string

// The reasons of [Passed].
const (
	WhyMissed Why = "missed" // its first missed offer: it goes to the end of the queue
	WhyEnded  Why = "ended"  // its second: it has ended
	WhyIdle   Why = "idle"   // not heard of for params.petition_idle: it has ended
)

// Passed records that somebody else acquired before a petition had.
type Passed struct {
	Agent    string `json:"agent"`
	Petition int64  `json:"petition"`
	Why      Why    `json:"why"`
}

// Silence is on from a grant that ended without a release until a landing and release in a later one.
type Silence struct {
	On         bool  `json:"on"`
	SinceGrant int64 `json:"since_grant"` // 0 when off
	Why        How   `json:"why"`         // empty when off
}

// How a grant ended.
type How string

// The ends of a grant. Lost is one whose page was: only a restore says it.
const (
	HowReleased  How = "released"
	HowTakenOver How = "taken_over"
	HowCleared   How = "cleared"
	HowLost      How = "lost"
)

// End is how a grant ended.
type End struct {
	At     Time   `json:"at"`
	By     Actor  `json:"by"`
	Grant  int64  `json:"grant"`
	Holder Holder `json:"holder"`
	How    How    `json:"how"`
	Reason string `json:"reason"` // the operator's, of a clear
	Rev    int64  `json:"rev"`    // the revision that ended it
}

// Audit is the line that an operator's clear or restore leaves.
type Audit struct {
	Grant    int64   `json:"grant"`  // the grant that was cleared, or 0
	Holder   *Holder `json:"holder"` // who had it, if known
	Operator string  `json:"operator"`
	Reason   string  `json:"reason"`
	Seen     int64   `json:"seen"` // the revision that the operator had looked at; of a restore, what was left; or 0
	// SeenEpoch is the epoch of Seen.
	SeenEpoch int64 `json:"seen_epoch"`
}

// Running is a fenced command: begun, and not yet ended as far as the page knows.
type Running struct {
	Command string `json:"command"`
	ID      string `json:"id"` // the landing's
	Started Time   `json:"started"`
}

// Doubt is a fenced command of which nobody knows whether it was done.
type Doubt struct {
	Command string `json:"command"`
	Grant   int64  `json:"grant"`
	ID      string `json:"id"`
	Started Time   `json:"started"`
}

// Range is the identifiers Lo to Hi, both included.
type Range struct {
	Hi int64 `json:"hi"`
	Lo int64 `json:"lo"`
}

// Identifiers are what the lead allocates from.
type Identifiers struct {
	Free   []Range `json:"free"`   // given back by landings, ascending, not touching
	Leases []Lease `json:"leases"` // of the current grant
	Next   int64   `json:"next"`   // the lowest never leased; it only rises
}

// Lease is a range of identifiers that the current grant may use.
type Lease struct {
	Block  int64   `json:"block"` // 0: none
	Hi     int64   `json:"hi"`
	ID     int64   `json:"id"`   // its revision
	Kept   bool    `json:"kept"` // a landing left it open
	Lo     int64   `json:"lo"`
	Used   []Range `json:"used"` // landed already, by landings that kept the lease
	Worker string  `json:"worker"`
}

// Block is work that the lead gave to somebody.
type Block struct {
	Grant  int64         `json:"grant"` // under which it was given
	ID     int64         `json:"id"`    // its revision
	Note   string        `json:"note"`
	Repro  *Reproduction `json:"repro"` // null for ordinary work
	Worker string        `json:"worker"`
}

// Params are a container's, fixed when it is created. In JSON they are whole seconds.
type Params struct {
	Cap          Seconds `json:"cap"`           // a grant's longest life: 1 s to 24 h
	Extension    Seconds `json:"extension"`     // of one heartbeat: 1 s to Cap
	PetitionIdle Seconds `json:"petition_idle"` // 1 min to 366 days
	Window       Seconds `json:"window"`        // an offer's: 1 s to 24 h
}

// Seconds is a duration in whole seconds.
type Seconds int64

// Duration is s for package time.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// DefaultParams are 4 h of extension, 24 h of life, a window of 30 min, and 7 days without a word.
func DefaultParams() Params {
	return Params{Cap: 24 * 3600, Extension: 4 * 3600, PetitionIdle: 7 * 24 * 3600, Window: 30 * 60}
}
