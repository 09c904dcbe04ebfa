package grant

// ReproState is how far a reproduction is. CLOSED is not among them: a closed block has left the page.
type ReproState string

// The states of a reproduction on a page.
const (
	ReproCommissioned ReproState = "COMMISSIONED" // record, kernel and assumptions are frozen
	ReproDeriving     ReproState = "DERIVING"     // the deriver has them, and not the result
	ReproStaged       ReproState = "STAGED"       // a result, stamped, that can no longer change
	ReproJudged       ReproState = "JUDGED"
)

// Verdict is the judgement of a reproduction.
type Verdict string

// The verdicts.
const (
	VerdictMatch    Verdict = "match"
	VerdictMismatch Verdict = "mismatch"
	VerdictVoid     Verdict = "void"
)

// Reproduction is a second derivation of a record by another worker. The original result is not in it.
type Reproduction struct {
	Assumptions Digest     `json:"assumptions"` // of the record's assumptions
	Author      string     `json:"author"`      // of the record: never the deriver
	Judge       string     `json:"judge"`       // never the deriver; empty before JUDGED
	Kernel      Digest     `json:"kernel"`
	Record      string     `json:"record"` // its name
	Result      Digest     `json:"result"` // empty before STAGED
	StagedAt    Stamp      `json:"staged_at"`
	State       ReproState `json:"state"`
	Verdict     Verdict    `json:"verdict"` // empty before JUDGED
}
