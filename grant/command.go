package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Op names what made a revision.
type Op string

// The commands, as pages name them.
const (
	OpCreate     Op = "create"
	OpPetition   Op = "petition"
	OpTouch      Op = "touch"
	OpWithdraw   Op = "withdraw"
	OpAcquire    Op = "acquire"
	OpHeartbeat  Op = "heartbeat"
	OpIDs        Op = "ids"
	OpBlock      Op = "block"
	OpCloseBlock Op = "close_block"
	OpLand       Op = "land"
	OpRelease    Op = "release"
	OpClear      Op = "clear"
	OpRestore    Op = "restore"
	OpBegin      Op = "begin"
	OpFinish     Op = "finish"
	OpResolve    Op = "resolve"
	OpCommission Op = "commission"
	OpDerive     Op = "derive"
	OpStage      Op = "stage"
	OpJudge      Op = "judge"
)

// Meta is what every command carries.
type Meta struct {
	// Container is the container's name, as CheckName has it.
	Container string `json:"container"`
	// Nonce is the attempt's own: CheckNonce. A retry of the attempt, and nothing else, has the same.
	Nonce string `json:"-"`
	// By is who asks: an agent, but for clear and restore.
	By Actor `json:"by"`
}

func (m Meta) meta() Meta { return m }

// MetaOf is what a command carries, for stores that do more around it.
func MetaOf(c Command) Meta { return c.meta() }

// Agent is an Actor.
func Agent(name string) Actor { return Actor{Name: name, Role: RoleAgent} }

// Operator is an Actor.
func Operator(name string) Actor { return Actor{Name: name, Role: RoleOperator} }

// Secret is what a session proves itself with: 32 bytes from crypto/rand, stored by the client before its
// first attempt. It prints and encodes as "secret", so that no log or error has it.
type Secret [32]byte

// Hash is the session's name, which pages show.
func (s Secret) Hash() Digest {
	sum := sha256.Sum256(s[:])
	return Digest(hex.EncodeToString(sum[:]))
}

// Format prints "secret", whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "secret") }

// MarshalJSON gives the hash: what a command's digest is made of.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + string(s.Hash()) + `"`), nil }

// Session is a holder's proof: the number that it was granted, and its secret.
type Session struct {
	Grant  int64  `json:"grant"`
	Secret Secret `json:"secret"`
}

// Command is one of this package's commands: [Create] to [Judge]. They are values; what each needs, does and
// refuses stands with its type. Any may be refused with BAD_INPUT, ROLLBACK (the page is older than the
// caller's witness) or OP_ID_REUSED besides. The linearization point of each is the swap of its page.
type Command interface {
	// Op is the command's name.
	Op() Op
	meta() Meta
}

type (
	// Create makes a container: revision 1, FREE, grant 0. Refusals: EXISTS.
	Create struct {
		Meta
		Params Params `json:"params"` // the zero Params are DefaultParams
	}

	// Petition joins the queue at its end. One live petition an agent. Refusals: DUPLICATE, LIMIT.
	Petition struct{ Meta }

	// Touch says that a waiter still waits: its petition does not go idle. Refusals: GONE.
	Touch struct{ Meta }

	// Withdraw leaves the queue; no offer counts as missed. Refusals: GONE.
	Withdraw struct{ Meta }

	// Acquire begins a grant: the number rises by one. It needs the caller's turn (TurnOf), and a container
	// that is FREE, CLEARED, or HELD past its expiry, which is a takeover. Leases of an earlier grant are
	// burned. Without a petition an agent acquires only past an empty queue.
	// Refusals: HELD, NOT_YOUR_TURN, LANDING_RUNS, NESTED, EXHAUSTED. NESTED is judged by what the caller saw
	// of other containers before: each has its own page, and no swap spans two.
	Acquire struct {
		Meta
		Session Digest `json:"session"` // Secret.Hash of a fresh secret
	}

	// Heartbeat moves the expiry to now + extension, never past grant_time + cap and never back.
	// Refusals: FENCED, NOT_HOLDER, EXPIRED, PAST_CAP (it stands at the cap already).
	Heartbeat struct {
		Meta
		Session
	}

	// LeaseIDs gives the grant a range of Count identifiers, the first free one that is long enough, else the
	// next. Refusals: NOT_LEAD, EXPIRED, EXHAUSTED, NO_BLOCK, LIMIT.
	LeaseIDs struct {
		Meta
		Session
		Count  int64  `json:"count"`
		Block  int64  `json:"block"`  // 0: none
		Worker string `json:"worker"` // empty: the lead
	}

	// AssignBlock gives work to somebody. Refusals: NOT_LEAD, EXPIRED, LIMIT.
	AssignBlock struct {
		Meta
		Session
		Worker string `json:"worker"`
		Note   string `json:"note"`
	}

	// CloseBlock ends a block of either kind. Refusals: NOT_LEAD, EXPIRED, NO_BLOCK, REASON_REQUIRED (of a
	// reproduction that nobody has judged).
	CloseBlock struct {
		Meta
		Session
		Block  int64  `json:"block"`
		Reason string `json:"reason"`
	}

	// Land moves the register's head. It needs HELD, the current grant and its secret, a clock before the
	// expiry, the head that the work was based on, and identifiers out of the grant's live leases that never
	// landed. It closes the grant's leases and gives what they did not use back, except those in Keep.
	// Refusals: FENCED, NOT_HOLDER, EXPIRED (these three are kept in quarantine: Refusal.Quarantined),
	// LANDING_RUNS, REGISTER_MOVED, BAD_IDS, EXHAUSTED.
	Land struct {
		Meta
		Session
		Base     Digest  `json:"base"`     // the register's head that the work began from
		Manifest Digest  `json:"manifest"` // SHA-256 of what lands; stored before
		Empty    string  `json:"empty"`    // why nothing was found; then no IDs
		IDs      []Range `json:"ids"`
		Keep     []int64 `json:"keep"` // leases
		Note     string  `json:"note"`
	}

	// Release ends a grant that has landed; after its expiry too, until somebody else's has begun. It opens
	// the offer to the queue's head, and ends a silence.
	// Refusals: FENCED, NOT_HOLDER, LANDING_RUNS, NOT_PUSHED, LEASES_OPEN.
	Release struct {
		Meta
		Session
		ReadBack Digest `json:"read_back"` // the register's head, read back from the register
	}

	// Clear is the operator's: it ends the grant of a silent holder past its expiry, and burns one number
	// and the grant's leases. Refusals: ALREADY_CLEARED, NOT_HELD, OWN_GRANT, REASON_REQUIRED, NOT_EXPIRED,
	// LANDING_RUNS, CONFLICT (the page is not the one that was seen), EXHAUSTED.
	Clear struct {
		Meta
		Reason string `json:"reason"`
		Seen   int64  `json:"seen"` // the revision that the operator looked at
		// Own are the sessions that the operator has secrets of: none may be the holder's.
		Own []Digest `json:"-"`
	}

	// Restore is the operator's: it begins a new epoch of a container whose page was lost or rolled back,
	// with a revision, grant and identifiers above every witness. The head given to Apply is what is left of
	// the page, or the zero Revision. Refusals: REASON_REQUIRED, ROLLBACK (nothing shows a loss), EXHAUSTED.
	Restore struct {
		Meta
		Reason  string  `json:"reason"`
		Witness Witness `json:"witness"` // the highest of all that were found
		Params  Params  `json:"params"`  // for a lost page; the zero Params are DefaultParams
	}

	// Begin records a fenced command that is about to run. The caller holds the container's kernel lock
	// (Env.FenceHeld). Refusals: as Land, and IN_DOUBT.
	Begin struct {
		Meta
		Session
		Base    Digest `json:"base"`
		Command string `json:"command"` // as people are shown it
	}

	// Finish records how a fenced command ended. Done is a landing: after the expiry too, since no grant
	// ends under a running command. Refusals: FENCED, NOT_HOLDER, NOT_RUNNING, BAD_IDS, REGISTER_MOVED, EXHAUSTED.
	Finish struct {
		Meta
		Session
		ID       string  `json:"id"` // Running.ID
		Done     bool    `json:"done"`
		Manifest Digest  `json:"manifest"` // of Done
		IDs      []Range `json:"ids"`
		Keep     []int64 `json:"keep"`
		Note     string  `json:"note"`
	}

	// Resolve settles a fenced command whose end nobody saw: the lead says whether it was done. It moves no
	// head: the work itself lands as any other. Refusals: NOT_LEAD, EXPIRED, NOT_RUNNING, REASON_REQUIRED,
	// LANDING_RUNS.
	Resolve struct {
		Meta
		Session
		ID     string `json:"id"`
		Done   bool   `json:"done"`
		Reason string `json:"reason"`
	}

	// Commission asks for a reproduction of a record by another than its author.
	// Refusals: NOT_LEAD, EXPIRED, SAME_AGENT, LIMIT.
	Commission struct {
		Meta
		Session
		Record      string `json:"record"`
		Author      string `json:"author"`
		Kernel      Digest `json:"kernel"`
		Assumptions Digest `json:"assumptions"`
		Deriver     string `json:"deriver"`
	}

	// Derive is the deriver's start. It needs no grant. Refusals: NO_BLOCK, SAME_AGENT, CONFLICT (begun already).
	Derive struct {
		Meta
		Block int64 `json:"block"`
	}

	// Stage is the deriver's result, stored before; the revision's stamp is its stamp.
	// Refusals: NO_BLOCK, SAME_AGENT, NOT_DERIVING, ALREADY_STAGED.
	Stage struct {
		Meta
		Block  int64  `json:"block"`
		Result Digest `json:"result"`
	}

	// Judge says whether the result matches, by another than the deriver.
	// Refusals: NO_BLOCK, SAME_AGENT, NOT_STAGED, CONFLICT (judged already).
	Judge struct {
		Meta
		Block   int64   `json:"block"`
		Verdict Verdict `json:"verdict"`
		Reason  string  `json:"reason"`
	}
)

// Op is the command's name.
func (Create) Op() Op { return OpCreate }

// Op is the command's name.
func (Petition) Op() Op { return OpPetition }

// Op is the command's name.
func (Touch) Op() Op { return OpTouch }

// Op is the command's name.
func (Withdraw) Op() Op { return OpWithdraw }

// Op is the command's name.
func (Acquire) Op() Op { return OpAcquire }

// Op is the command's name.
func (Heartbeat) Op() Op { return OpHeartbeat }

// Op is the command's name.
func (LeaseIDs) Op() Op { return OpIDs }

// Op is the command's name.
func (AssignBlock) Op() Op { return OpBlock }

// Op is the command's name.
func (CloseBlock) Op() Op { return OpCloseBlock }

// Op is the command's name.
func (Land) Op() Op { return OpLand }

// Op is the command's name.
func (Release) Op() Op { return OpRelease }

// Op is the command's name.
func (Clear) Op() Op { return OpClear }

// Op is the command's name.
func (Restore) Op() Op { return OpRestore }

// Op is the command's name.
func (Begin) Op() Op { return OpBegin }

// Op is the command's name.
func (Finish) Op() Op { return OpFinish }

// Op is the command's name.
func (Resolve) Op() Op { return OpResolve }

// Op is the command's name.
func (Commission) Op() Op { return OpCommission }

// Op is the command's name.
func (Derive) Op() Op { return OpDerive }

// Op is the command's name.
func (Stage) Op() Op { return OpStage }

// Op is the command's name.
func (Judge) Op() Op { return OpJudge }

// Env is what a command meets: all that the machine cannot know of itself. The zero Env but for Now is safe.
type Env struct {
	// Now is the moment, by the store's clock where it has one (Clock), else by the caller's.
	Now Stamp
	// FenceHeld: the caller holds the container's kernel lock, so no fenced command runs now. Without it a
	// page that has a Running refuses whatever would begin or end a grant.
	FenceHeld bool
	// Elsewhere names other containers of the estate on which the agent holds a live grant. For Acquire.
	Elsewhere []string
	// OfferSeen is when the caller first saw the present offer by its own clock; of a held grant, when it last
	// saw something new of the holder: the grant, a heartbeat, a landing, any revision of theirs. For Acquire on a store without a clock (Now.Source is SourceClient): the wait for a
	// turn counts from it, if it is later than the page's stamp, and a grant is taken over only when its holder
	// was watched from it on, without a sign, for as long as a heartbeat lasts.
	OfferSeen Time
	// Witness is the highest that the caller has ever seen of the container.
	Witness Witness
}

// Witness is what a client remembers of a container outside the estate: a page below it was rolled back.
type Witness struct {
	Epoch int64  `json:"epoch"`
	Grant int64  `json:"grant"`
	Hash  Digest `json:"hash"` // of revision Rev; may be empty
	Next  int64  `json:"next"` // Identifiers.Next
	Rev   int64  `json:"rev"`
	// Register is the highest register seen; what a restore goes on from.
	Register Register `json:"register"`
}
