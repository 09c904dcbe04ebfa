package kernlock

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/proc"
)

const (
	holderSchema = "file_lock_holder_v0"
	// maxRecord is how much of a lock file is ever read.
	maxRecord = 16 << 10
)

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

// same reports whether r and o are of one hold.
func (r *Record) same(o *Record) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.PID == o.PID && r.Host == o.Host && r.AcquiredAt.Equal(o.AcquiredAt) &&
		r.AgentID == o.AgentID && r.Operation == o.Operation
}

// text is the record in a message: who, and since when.
func (r *Record) text() string {
	return fmt.Sprintf("%s (pid %d on %s, %s, since %s)", r.AgentID, r.PID,
		display.Text(r.Host), r.Operation, r.AcquiredAt.UTC().Format(time.RFC3339))
}

func (r *Record) identity() proc.Holder {
	h := proc.Holder{PID: r.PID, Host: r.Host}
	if r.Proc != nil {
		id := proc.ID(*r.Proc)
		h.Proc = &id
	}
	return h
}

// liveness judges the process that r names; near is the lock file.
func (r *Record) liveness(near string) Liveness {
	if !r.ReleasedAt.IsZero() {
		return Released
	}
	j := proc.Judge(r.identity(), near)
	switch j.Verdict {
	case proc.Alive:
		return Live
	case proc.Dead:
		return Dead
	}
	if j.Reason == proc.OtherHost {
		return ForeignHost
	}
	return Unknown
}

// MarshalJSON gives the record's shape on disk, less its checksum.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record // without this method
	out := struct {
		plain
		AcquiredAt stamp  `json:"acquired_at"`
		ReleasedAt *stamp `json:"released_at,omitempty"`
	}{plain: plain(r), AcquiredAt: stamp(r.AcquiredAt)}
	if !r.ReleasedAt.IsZero() {
		t := stamp(r.ReleasedAt)
		out.ReleasedAt = &t
	}
	return json.Marshal(out)
}
