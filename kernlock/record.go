package kernlock

import "time"

// Record is a holder record: who took the lock, when and what for. It is
// advisory: the kernel alone decides who holds. A Record that was read is
// safe to show: every text in it has been checked. Shape: docs/format.md.
type Record struct {
	SchemaVersion string    `json:"schema_version"` // file_lock_holder_v0
	LockID        string    `json:"lock_id"`
	Policy        Policy    `json:"policy"`
	PID           int64     `json:"pid"`
	Host          string    `json:"host"`
	AgentID       string    `json:"agent_id"`
	Operation     string    `json:"operation"`
	AcquiredAt    time.Time `json:"acquired_at"`
	ReleasedAt    time.Time `json:"released_at,omitzero"` // zero while held
	Proc          *Proc     `json:"proc,omitempty"`
}

// Proc tells a process from a later one with its number. What the system
// does not offer is zero and absent from the JSON.
type Proc struct {
	BootID    string `json:"boot_id,omitempty"`
	PidNS     uint64 `json:"pid_ns,omitempty"`     // inode of the pid namespace
	TimeNS    uint64 `json:"time_ns,omitempty"`    // inode of the time namespace
	StartTime uint64 `json:"start_time,omitempty"` // clock ticks after boot
}

func (r *Record) text() string { panic("todo") }
