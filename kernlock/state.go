package kernlock

// Liveness is what can be said of the process that a holder record names.
// It is about the record alone: whether the lock is held is KernelState.
type Liveness string

// The values of Liveness.
const (
	Absent      Liveness = "absent"       // no record
	Unreadable  Liveness = "unreadable"   // damaged, oversized or not a record
	Released    Liveness = "released"     // its holder let go in the normal way
	ForeignHost Liveness = "foreign_host" // written on another host: never probed here
	Live        Liveness = "live"         // the process runs
	Dead        Liveness = "dead"         // the process is provably gone
	Unknown     Liveness = "unknown"      // neither can be proved from here
)

// HolderState says whether the process that holds the lock now is the one
// that wrote the record.
type HolderState string

// The values of HolderState.
const (
	Current        HolderState = "current"
	Previous       HolderState = "previous"
	HolderUnproven HolderState = "unknown"
)

// KernelState says whether the kernel shows the lock as held. It is found
// without taking the lock, so it can have changed by the time it is read.
type KernelState string

// The values of KernelState.
const (
	KernelHeld    KernelState = "held"
	KernelFree    KernelState = "free"
	KernelUnknown KernelState = "unknown"
)

// Content says what the lock file's bytes are.
type Content string

// The values of Content.
const (
	ContentAbsent  Content = "absent"    // there is no lock file
	ContentEmpty   Content = "empty"     // as a lock without a record, or flock(1), leaves it
	ContentRecord  Content = "record"    // a holder record
	ContentDamaged Content = "damaged"   // a holder record that cannot be read; the next holder overwrites it
	ContentForeign Content = "foreign"   // somebody else's file: locked, never written
	ContentOther   Content = "lock_file" // a lock of the lock file family: refused
)

// Report is what Status finds. Nothing was changed to find it.
type Report struct {
	Target   string `json:"target"`    // canonical path
	LockPath string `json:"lock_path"` // the lock file
	LockID   string `json:"lock_id"`

	Content Content     `json:"content"`
	Kernel  KernelState `json:"kernel"`

	// Shared says that the kernel shows shared holders.
	Shared bool `json:"shared"`

	// Holders are the processes that the kernel shows as having taken the
	// lock. One can be dead while what inherited the lock from it lives.
	Holders []Process `json:"holders"`

	// Waiters is how many wait in the kernel, or -1 when it is not known.
	Waiters int `json:"waiters"`

	Holder      *Record     `json:"holder"` // nil when there is no readable record
	HolderState HolderState `json:"holder_state"`
	Liveness    Liveness    `json:"liveness"`

	// AgeSeconds is the time since the record's acquired_at, never below 0;
	// -1 without a record. It decides nothing.
	AgeSeconds float64 `json:"age_seconds"`

	// Incidents is how many incident rows lie beside the lock, in both
	// files; -1 when they cannot be read.
	Incidents int `json:"incidents"`
}

// Duplicate is the ordinary result of TryAcquire when another holder has
// the lock. It says what can be known of that holder.
type Duplicate struct {
	Target      string      `json:"target"`
	LockID      string      `json:"lock_id"`
	Holder      *Record     `json:"holder"`
	HolderState HolderState `json:"holder_state"`
	Liveness    Liveness    `json:"liveness"`
}

func (d *Duplicate) holderText() string {
	if d.Holder == nil || d.HolderState == Previous {
		return "an unknown holder (it wrote no record)"
	}
	return d.Holder.text()
}

// IncidentLog is what Incidents reads: the rows of the rotated file, then
// those of the current one, oldest first.
type IncidentLog struct {
	Target  string     `json:"target"`
	LockID  string     `json:"lock_id"`
	Path    string     `json:"path"` // the current file
	Rows    []Incident `json:"rows"`
	Skipped int        `json:"skipped"` // lines that are no incident rows
}
