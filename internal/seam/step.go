package seam

// Step is a named point in the lock file's algorithm. The names are those of the specification.
type Step string

// The steps, in the order in which a writer, a breaker and a release take them.
const (
	AcquirePending   Step = "acquire:pending"   // the pending file is written
	AcquireOpened    Step = "acquire:opened"    // without hard links: the lock exists, still empty
	AcquirePublished Step = "acquire:published" // the lock is there, whole, and ours

	SweepJudged Step = "sweep:judged" // a leftover's owner is dead; about to remove it

	BreakJudged        Step = "break:judged"          // a lock may be broken; about to claim it
	BreakClaimed       Step = "break:claimed"         // ours is the only live claim
	BreakConfirmed     Step = "break:confirmed"       // the lock is still the one judged
	BreakRenamed       Step = "break:renamed"         // the lock is moved away
	BreakRemoved       Step = "break:removed"         // the moved lock is removed
	BreakMismatch      Step = "break:mismatch"        // the moved lock is another; about to put it back
	BreakPutBackOpened Step = "break:put-back-opened" // without hard links: put back, still empty
	BreakPutBack       Step = "break:put-back"        // put back, or dropped, and the moved name removed

	HoldRead Step = "hold:read" // the guarded file is read

	CommitTempWritten Step = "commit:temp-written"
	CommitFenced      Step = "commit:fenced"
	CommitRenamed     Step = "commit:renamed"

	ReleaseRenamed       Step = "release:renamed" // our lock is moved away
	ReleaseRemoved       Step = "release:removed"
	ReleaseMismatch      Step = "release:mismatch" // what was moved is not ours; about to put it back
	ReleasePutBackOpened Step = "release:put-back-opened"
	ReleasePutBack       Step = "release:put-back"
)

// Steps is every step, in the order of their listing above.
var Steps = []Step{
	AcquirePending, AcquireOpened, AcquirePublished, SweepJudged,
	BreakJudged, BreakClaimed, BreakConfirmed, BreakRenamed, BreakRemoved, BreakMismatch,
	BreakPutBackOpened, BreakPutBack,
	HoldRead, CommitTempWritten, CommitFenced, CommitRenamed,
	ReleaseRenamed, ReleaseRemoved, ReleaseMismatch, ReleasePutBackOpened, ReleasePutBack,
}
