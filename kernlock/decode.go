package kernlock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// errTorn is a record whose checksum does not fit: a write under way, or
// damage. Reading again tells which.
var errTorn = errors.New("record does not match its sum")

// decode reads a holder record. Nothing is taken on trust: every type is
// checked, and the texts that come back are safe to show.
func decode(b []byte) (*Record, error) {
	b = bytes.TrimRight(b, " \t\r\n")
	switch {
	case len(b) == 0:
		return nil, errors.New("no record")
	case len(b) >= maxRecord:
		return nil, fmt.Errorf("record is over %d bytes", maxRecord)
	case !utf8.Valid(b):
		return nil, errors.New("record is not UTF-8")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, errors.New("record is not a JSON object")
	}
	if raw, ok := m["sum"]; ok {
		if err := checkSum(b, raw); err != nil {
			return nil, err
		}
	}
	d := decoder{m: m}
	r := &Record{
		SchemaVersion: d.text("schema_version"),
		LockID:        d.text("lock_id"),
		Policy:        Policy(label(d.text("policy"), "unknown")),
		PID:           d.integer("pid"),
		Host:          d.text("host"),
		AgentID:       label(d.text("agent_id"), "unknown"),
		Operation:     label(d.text("operation"), "unknown"),
		AcquiredAt:    d.time("acquired_at"),
		ReleasedAt:    d.optionalTime("released_at"),
		Proc:          d.proc(),
	}
	switch {
	case d.err != nil:
		return nil, d.err
	case r.SchemaVersion != holderSchema:
		return nil, errors.New("schema_version is not " + holderSchema)
	case !isLockID(r.LockID):
		return nil, errors.New("lock_id is not 16 hex digits")
	case !isHost(r.Host):
		return nil, errors.New("host is not a host name")
	}
	return r, nil
}

// checkSum compares b, which ends in the member sum, with what it says.
func checkSum(b []byte, raw json.RawMessage) error {
	end := append(append([]byte(`,"sum":`), raw...), '}')
	body, ok := bytes.CutSuffix(b, end)
	if !ok || len(raw) != 18 {
		return errTorn
	}
	h := sha256.New()
	h.Write(body)
	h.Write([]byte{'}'})
	want := hex.EncodeToString(h.Sum(nil)[:8])
	if string(raw[1:17]) != want {
		return errTorn
	}
	return nil
}

// decoder takes members out of an object and keeps the first thing wrong.
type decoder struct {
	m   map[string]json.RawMessage
	err error
}

func (d *decoder) wrong(key, what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%s is not %s", key, what)
	}
}

func (d *decoder) text(key string) string {
	var s *string
	if raw, ok := d.m[key]; !ok || json.Unmarshal(raw, &s) != nil || s == nil {
		d.wrong(key, "a string")
		return ""
	}
	return *s
}

func (d *decoder) integer(key string) int64 {
	var n *int64
	if raw, ok := d.m[key]; !ok || json.Unmarshal(raw, &n) != nil || n == nil {
		d.wrong(key, "an integer")
		return 0
	}
	return *n
}

func (d *decoder) time(key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, d.text(key))
	t = t.UTC()
	// A zone can move the year out of what the format has: it could be shown
	// but not written again, and an incident that names it would be lost.
	if err != nil || t.Year() < 0 || t.Year() > 9999 {
		d.wrong(key, "a time")
	}
	return t
}

func (d *decoder) optionalTime(key string) time.Time {
	raw, ok := d.m[key]
	if !ok || string(raw) == "null" {
		return time.Time{}
	}
	return d.time(key)
}

func (d *decoder) proc() *Proc {
	raw, ok := d.m["proc"]
	if !ok || string(raw) == "null" {
		return nil
	}
	var p Proc
	if json.Unmarshal(raw, &p) != nil {
		d.wrong("proc", "a process identity")
		return nil
	}
	if !isHost(p.BootID) && p.BootID != "" {
		d.wrong("proc.boot_id", "a boot id")
	}
	return &p
}

func isLockID(s string) bool {
	if len(s) != 16 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// isHost accepts what can be shown and compared: printable, not empty, and
// no longer than a host name can be.
func isHost(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// holderMark names the format in a record, damaged or not.
var holderMark = []byte(`"file_lock_holder_`)

// classify says what a lock file's first bytes are, and the record if they
// are one. It decides whether a holder may write: somebody else's file is
// never written, and every doubt counts as somebody else's.
func classify(b []byte) (Content, *Record, error) {
	if len(b) == 0 {
		return ContentEmpty, nil, nil
	}
	r, err := decode(b)
	switch {
	case err == nil:
		return ContentRecord, r, nil
	case isLockFile(b):
		return ContentOther, nil, err
	case isDamaged(b):
		return ContentDamaged, nil, err
	}
	return ContentForeign, nil, err
}

// isDamaged says whether b, which is no valid record, was one or was to be
// one. What is whole JSON must name the format itself: others, too, write
// objects that begin with acquired_at, or speak of this format.
func isDamaged(b []byte) bool {
	var m map[string]json.RawMessage
	if utf8.Valid(b) && json.Unmarshal(b, &m) == nil {
		return bytes.HasPrefix(m["schema_version"], holderMark)
	}
	if b[0] == '{' && bytes.Contains(b, holderMark) || hasRecordMark(b) {
		return true
	}
	if len(b) < recordHead && bytes.HasPrefix(b, []byte(recordBegin)) {
		return true // a write that was cut short
	}
	// What a crash of the machine leaves of a record: its length.
	return len(b) < maxRecord && len(bytes.Trim(b, " \t\r\n\x00")) == 0
}

// isLockFile recognises a lock of the lock file family: an object with pid
// and token and no schema_version.
func isLockFile(b []byte) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil {
		return false
	}
	var token string
	if json.Unmarshal(m["token"], &token) != nil || token == "" {
		return false
	}
	_, pid := m["pid"]
	_, schema := m["schema_version"]
	return pid && !schema
}

const (
	recordBegin = `{"acquired_at":"`
	// recordHead is how much of a file hasRecordMark needs.
	recordHead = 64
)

// hasRecordMark says whether b begins as every record does, ours or the
// reference's: with a time and then the agent. It spares the reading of the
// whole and must be true of nobody else's file.
func hasRecordMark(b []byte) bool {
	rest, ok := bytes.CutPrefix(b[:min(len(b), recordHead)], []byte(recordBegin))
	if !ok {
		return false
	}
	end := bytes.IndexByte(rest, '"')
	return end >= 0 && bytes.HasPrefix(rest[end:], []byte(`","agent_id":"`))
}
