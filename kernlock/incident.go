package kernlock

import "time"

// Incident is one row of <lock>.incidents.jsonl: a waiter's account of a
// wait that ran out. Shape and meaning: docs/format.md, Incidents.
type Incident struct {
	SchemaVersion string         `json:"schema_version"` // file_lock_incident_v0
	ErrorCode     string         `json:"error_code"`     // lock_acquire_timeout
	RecordedAt    time.Time      `json:"recorded_at"`
	LockID        string         `json:"lock_id"`
	Policy        Policy         `json:"policy"` // the waiter's
	Holder        *Record        `json:"holder"` // nil is {} on disk
	HolderState   HolderState    `json:"holder_state"`
	HolderChanged bool           `json:"holder_changed"`
	Waiter        Waiter         `json:"waiter"`
	Action        OperatorAction `json:"operator_action"`
}

// Waiter is who waited, and for how long.
type Waiter struct {
	PID            int64     `json:"pid"`
	Host           string    `json:"host"`
	AgentID        string    `json:"agent_id"`
	Operation      string    `json:"operation"`
	StartedAt      time.Time `json:"started_at"`
	TimeoutSeconds float64   `json:"timeout_seconds"` // to 3 decimals
	WaitedSeconds  float64   `json:"waited_seconds"`  // to 3 decimals
}

// OperatorAction tells a person what to do about the holder.
type OperatorAction struct {
	Required   bool     `json:"required"`
	Action     string   `json:"action"` // inspect_lock_holder
	HolderHost string   `json:"holder_host"`
	HolderPID  *int64   `json:"holder_pid"`
	RetryMode  string   `json:"retry_mode"`
	Steps      []string `json:"steps"`
}
