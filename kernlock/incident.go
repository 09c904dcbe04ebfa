package kernlock

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/proc"
)

const (
	incidentSchema = "file_lock_incident_v0"
	timeoutCode    = "lock_acquire_timeout"
	inspectAction  = "inspect_lock_holder"

	// maxIncidents is how long the incidents file grows before it becomes
	// <file>.1, in place of the one before.
	maxIncidents = 1 << 20
)

// Incident is one row of <lock>.incidents.jsonl: a waiter's account of a
// wait that ran out. Shape and meaning: docs/format.md, Incidents.
type Incident struct {
	SchemaVersion string         `json:"schema_version"` // file_lock_incident_v0
	ErrorCode     string         `json:"error_code"`     // lock_acquire_timeout
	RecordedAt    time.Time      `json:"recorded_at"`
	LockID        string         `json:"lock_id"`
	Policy        Policy         `json:"policy"` // the waiter's
	Holder        *Record        `json:"holder"` // nil is {} in JSON
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

func (h *Handle) incident(s *sighting, began time.Time, waited time.Duration, changed bool) Incident {
	self := proc.Self()
	in := Incident{
		SchemaVersion: incidentSchema,
		ErrorCode:     timeoutCode,
		RecordedAt:    time.Now().UTC(),
		LockID:        h.names.id,
		Policy:        h.opts.Policy,
		Holder:        s.record,
		HolderState:   s.state,
		HolderChanged: changed,
		Waiter: Waiter{
			PID:            self.PID,
			Host:           hostLabel(self.Host),
			AgentID:        agentLabel(h.opts.Agent),
			Operation:      label(h.opts.Operation, string(h.opts.Policy)),
			StartedAt:      began.UTC(),
			TimeoutSeconds: thousandths(h.opts.Timeout),
			WaitedSeconds:  thousandths(waited),
		},
		Action: OperatorAction{
			Required:  true,
			Action:    inspectAction,
			RetryMode: h.opts.Policy.RetryMode(),
		},
	}
	// Nobody is sent to a process that is not shown to be in the way.
	if s.record != nil && s.state != Previous {
		in.Action.HolderHost = s.record.Host
		in.Action.HolderPID = &s.record.PID
	}
	in.Action.Steps = steps(&in)
	return in
}

// steps are what an operator does, in order. They never name a file to
// delete: the kernel frees the lock when its process ends.
func steps(in *Incident) []string {
	first := "Find the process that holds the lock: its record is missing or not its own, so ask the system which process has the lock file open and locked."
	if in.Action.HolderPID != nil {
		first = fmt.Sprintf("Look at process %d on host %s: what it is doing, and since when.",
			*in.Action.HolderPID, in.Action.HolderHost)
	}
	second := "End the process only when you are sure that it is stalled, and that ending it is yours to decide."
	if in.HolderChanged {
		first = "Nothing need be inspected yet: the holder changed during the wait, so the lock is busy and not stalled."
		second = "Leave the present holder alone; if waits go on running out, give them longer or let fewer writers in at once."
	}
	third := "Then try again by hand."
	switch in.Policy {
	case Monitor:
		third = "Then leave it to the next scheduled poll; do not poll in a loop."
	case SingleFlight:
		third = "Do not try again: this attempt was a duplicate."
	}
	return []string{first, second, third + " (retry_mode " + in.Action.RetryMode + ")",
		"Leave the lock file where it is: deleting it lets two holders in at once, and frees nobody."}
}

// thousandths is d in seconds, to three decimals.
func thousandths(d time.Duration) float64 {
	return math.Round(d.Seconds()*1000) / 1000
}

func baseName(path string) string { return filepath.Base(path) }

type waiterJSON struct {
	Waiter
	StartedAt stamp `json:"started_at"`
}

// stamp is a time in the style of the files.
type stamp time.Time

// MarshalJSON gives UTC with six digits.
func (t stamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// MarshalJSON gives the shape on disk, keys in the order of the struct.
func (in Incident) MarshalJSON() ([]byte, error) {
	type plain Incident // without this method
	out := struct {
		plain
		RecordedAt stamp      `json:"recorded_at"`
		Holder     any        `json:"holder"`
		Waiter     waiterJSON `json:"waiter"`
	}{plain: plain(in), RecordedAt: stamp(in.RecordedAt), Holder: struct{}{},
		Waiter: waiterJSON{Waiter: in.Waiter, StartedAt: stamp(in.Waiter.StartedAt)}}
	if in.Holder != nil {
		out.Holder = in.Holder
	}
	return json.Marshal(out)
}
