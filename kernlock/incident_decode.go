package kernlock

import (
	"encoding/json"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/display"
)

// decodeIncident reads one row. As with records, every type is checked and
// the texts that come back are safe to show.
func decodeIncident(line []byte) (*Incident, error) {
	var m map[string]json.RawMessage
	if !utf8.Valid(line) || json.Unmarshal(line, &m) != nil {
		return nil, errors.New("row is not a JSON object")
	}
	d := decoder{m: m}
	in := &Incident{
		SchemaVersion: d.text("schema_version"),
		ErrorCode:     label(d.text("error_code"), "unknown"),
		RecordedAt:    d.time("recorded_at"),
		LockID:        d.text("lock_id"),
		Policy:        Policy(label(d.text("policy"), "unknown")),
		HolderState:   HolderUnproven,
	}
	in.Holder = d.holder()
	switch s := HolderState(d.optionalText("holder_state")); s {
	case Current, Previous:
		in.HolderState = s
	}
	in.HolderChanged = string(m["holder_changed"]) == "true"

	w := d.object("waiter")
	in.Waiter = Waiter{
		PID:            w.integer("pid"),
		Host:           w.text("host"),
		AgentID:        label(w.text("agent_id"), "unknown"),
		Operation:      label(w.text("operation"), "unknown"),
		StartedAt:      w.time("started_at"),
		TimeoutSeconds: w.number("timeout_seconds"),
		WaitedSeconds:  w.number("waited_seconds"),
	}
	a := d.object("operator_action")
	in.Action = OperatorAction{
		Required:   string(a.m["required"]) == "true",
		Action:     label(a.optionalText("action"), "unknown"),
		HolderHost: display.Text(a.optionalText("holder_host")),
		RetryMode:  label(a.optionalText("retry_mode"), "unknown"),
		Steps:      a.steps(),
	}
	if raw, ok := a.m["holder_pid"]; ok && string(raw) != "null" {
		pid := a.integer("holder_pid")
		in.Action.HolderPID = &pid
	}
	switch {
	case d.err != nil:
		return nil, d.err
	case w.err != nil:
		return nil, w.err
	case a.err != nil:
		return nil, a.err
	case in.SchemaVersion != incidentSchema:
		return nil, errors.New("schema_version is not " + incidentSchema)
	case !isLockID(in.LockID):
		return nil, errors.New("lock_id is not 16 hex digits")
	case !isHost(in.Waiter.Host):
		return nil, errors.New("waiter.host is not a host name")
	}
	return in, nil
}

// holder reads the holder as it was found: a record, or an empty object.
func (d *decoder) holder() *Record {
	raw := d.m["holder"]
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		d.wrong("holder", "an object")
		return nil
	}
	if len(m) == 0 {
		return nil
	}
	r, err := decode(raw)
	if err != nil {
		d.wrong("holder", "a holder record")
		return nil
	}
	return r
}

func (d *decoder) object(key string) *decoder {
	o := &decoder{}
	if json.Unmarshal(d.m[key], &o.m) != nil || o.m == nil {
		d.wrong(key, "an object")
	}
	return o
}

func (d *decoder) optionalText(key string) string {
	var s string
	if raw, ok := d.m[key]; ok && json.Unmarshal(raw, &s) != nil {
		d.wrong(key, "a string")
	}
	return s
}

func (d *decoder) number(key string) float64 {
	var f *float64
	if raw, ok := d.m[key]; !ok || json.Unmarshal(raw, &f) != nil || f == nil || math.IsInf(*f, 0) {
		d.wrong(key, "a number")
		return 0
	}
	return *f
}

// steps are shown to people, so they are escaped and few.
func (d *decoder) steps() []string {
	var all []string
	if raw, ok := d.m["steps"]; ok && json.Unmarshal(raw, &all) != nil {
		d.wrong("steps", "a list of texts")
	}
	const most, longest = 16, 500
	all = all[:min(len(all), most)]
	for i, s := range all {
		s = display.Text(s)
		end := min(len(s), longest)
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end--
		}
		all[i] = s[:end]
	}
	return all
}
