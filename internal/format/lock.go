package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/proc"
)

// MaxLock is how much of a lock file is read for its meaning, in bytes. A longer one is unreadable.
const MaxLock = 64 << 10

// Lock is a lock file's content: the four members that every implementation writes, and ours.
type Lock struct {
	PID        int64
	Host       string // empty: an earlier build's lock, which named none
	Token      string // 24 hex digits, one per hold
	AcquiredAt string // as in the file; see Time
	Proc       *proc.ID
}

// TimeFormat is how AcquiredAt is written: UTC, in milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Encode returns the bytes of the lock file.
func (l *Lock) Encode() []byte {
	b := make([]byte, 0, 384)
	b = append(b, `{"pid":`...)
	b = strconv.AppendInt(b, l.PID, 10)
	b = append(b, `,"hostname":`...)
	b = appendQuoted(b, l.Host)
	b = append(b, `,"token":`...)
	b = appendQuoted(b, l.Token)
	b = append(b, `,"acquiredAt":`...)
	b = appendQuoted(b, l.AcquiredAt)
	if l.Proc != nil {
		b = appendID(append(b, `,"proc":`...), l.Proc)
	}
	return append(b, '}')
}

// appendID appends what encoding/json makes of an ID.
func appendID(b []byte, id *proc.ID) []byte {
	b = append(b, '{')
	from := len(b)
	name := func(s string) {
		if len(b) > from {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), s...), `":`...)
	}
	if id.BootID != "" {
		name("boot_id")
		b = appendQuoted(b, id.BootID)
	}
	if id.PidNS != 0 {
		name("pid_ns")
		b = strconv.AppendUint(b, id.PidNS, 10)
	}
	if id.TimeNS != 0 {
		name("time_ns")
		b = strconv.AppendUint(b, id.TimeNS, 10)
	}
	if id.StartTime != 0 {
		name("start_time")
		b = strconv.AppendUint(b, id.StartTime, 10)
	}
	return append(b, '}')
}

// appendQuoted appends s as JSON. Host names, tokens and times are plain, and nearly always.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			q, _ := json.Marshal(strings.Clone(s)) // a string always has a JSON form; a plain one stays off the heap
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Time reads AcquiredAt; false when it is no time.
func (l *Lock) Time() (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, l.AcquiredAt)
	return t, err == nil
}

var errUnreadable = errors.New("not an object with an integer pid")

// ParseLock reads a lock file's content. Anything but a JSON object with an integer pid is an error.
// Everything in it may be hostile; what it returns is only as long as data.
//
// The names of the members count to the letter: encoding/json would take "PID" for "pid".
func ParseLock(data []byte) (*Lock, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	pid, ok := integer(m["pid"])
	if !ok {
		return nil, errUnreadable
	}
	l := &Lock{PID: pid, Host: text(m["hostname"]), Token: text(m["token"]), AcquiredAt: text(m["acquiredAt"])}
	if raw, ok := m["proc"]; ok && string(raw) != "null" {
		// A proc that cannot be read still says that the bare pid is not to be trusted: an empty one
		// is judged so.
		l.Proc = &proc.ID{}
		var id proc.ID
		if json.Unmarshal(raw, &id) == nil {
			l.Proc = &id
		}
	}
	return l, nil
}

// integer reads a JSON number without a fraction. One that no int64 can hold becomes the nearest,
// which is no possible pid either.
func integer(raw json.RawMessage) (int64, bool) {
	s := string(raw)
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// text reads a JSON string. A value of another type is given as its JSON, so that a host name that is
// no string is somebody else's rather than none.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// kernelSchema begins the schema_version of a kernel lock's holder record.
const kernelSchema = "file_lock_holder_"

// IsKernelRecord reports whether data is, or was, a kernel lock's holder record. Such a file belongs
// to the other family of locks, and is never deleted.
func IsKernelRecord(data []byte) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) == nil {
		return strings.HasPrefix(text(m["schema_version"]), kernelSchema)
	}
	// Torn, or overwritten in part.
	return bytes.Contains(data, []byte(`"schema_version"`)) && bytes.Contains(data, []byte(`"`+kernelSchema))
}
