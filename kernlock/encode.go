package kernlock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/proc"
)

// timeLayout always has six digits, so that records of one hold are of one
// length and one write replaces the other.
const timeLayout = "2006-01-02T15:04:05.000000Z"

const (
	releasedKey = `,"released_at":"`
	// releasedLen is what a release adds to a record.
	releasedLen = len(releasedKey) + len(timeLayout) + len(`"`)
)

// encoder writes the records of one handle. A record is written by hand,
// since encoding/json costs as much as the lock itself; a test holds it
// against the canonical encoding.
type encoder struct {
	head, tail []byte // all but the times, which stand between
}

func newEncoder(n *names, o *Options, self proc.Holder) *encoder {
	b := []byte(`","agent_id":`)
	b = appendString(b, agentLabel(o.Agent))
	b = append(b, `,"host":`...)
	b = appendString(b, hostLabel(self.Host))
	b = append(b, `,"lock_id":"`...)
	b = append(b, n.id...)
	b = append(b, `","operation":`...)
	b = appendString(b, label(o.Operation, string(o.Policy)))
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, self.PID, 10)
	b = append(b, `,"policy":"`...)
	b = append(b, o.Policy...)
	b = append(b, '"')
	b = appendProc(b, self.Proc)
	return &encoder{head: b, tail: []byte(`,"schema_version":"` + holderSchema + `"`)}
}

// hostLabel is our host's name in a record. One that no reader would accept is
// "unknown": a name that is nobody's, so that no pid is judged by it.
func hostLabel(name string) string {
	if isHost(name) {
		return name
	}
	return "unknown"
}

func appendProc(b []byte, id *proc.ID) []byte {
	if id == nil || *id == (proc.ID{}) {
		return b
	}
	b = append(b, `,"proc":{`...)
	sep := ""
	if id.BootID != "" {
		b = append(b, `"boot_id":`...)
		b = appendString(b, id.BootID)
		sep = ","
	}
	for _, m := range [...]struct {
		key string
		v   uint64
	}{{`"pid_ns":`, id.PidNS}, {`"start_time":`, id.StartTime}, {`"time_ns":`, id.TimeNS}} {
		if m.v == 0 {
			continue
		}
		b = append(append(b, sep...), m.key...)
		b = strconv.AppendUint(b, m.v, 10)
		sep = ","
	}
	return append(b, '}')
}

// append adds the record to b: one line, keys sorted, then blanks up to at
// least `least` bytes in all, then a newline. Released is zero while held; a
// record of a hold and that of its release come out equally long.
func (e *encoder) append(b []byte, acquired, released time.Time, least int) []byte {
	start := len(b)
	b = append(b, `{"acquired_at":"`...)
	b = acquired.UTC().AppendFormat(b, timeLayout)
	b = append(b, e.head...)
	pad := releasedLen
	if !released.IsZero() {
		b = append(b, releasedKey...)
		b = released.UTC().AppendFormat(b, timeLayout)
		b = append(b, '"')
		pad = 0
	}
	b = append(b, e.tail...)
	b = appendSum(b, start)
	for ; pad > 0; pad-- {
		b = append(b, ' ')
	}
	for len(b)-start < least-1 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// appendSum closes the object that starts at b[start] with its checksum, by
// which a reader knows a record that was torn by a write under way.
func appendSum(b []byte, start int) []byte {
	b = append(b, '}')
	sum := sha256.Sum256(b[start:])
	b = append(b[:len(b)-1], `,"sum":"`...)
	b = hex.AppendEncode(b, sum[:8])
	return append(b, `"}`...)
}

// appendString adds s as a JSON string in ASCII.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= 0x20 && r < 0x7f:
			b = append(b, byte(r))
		default:
			b = appendEscape(b, r)
		}
	}
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return appendUnit(appendUnit(b, r1), r2)
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[u>>12&0xf], digits[u>>8&0xf], digits[u>>4&0xf], digits[u&0xf])
}

// canonicalJSON is v on one line, keys sorted, no spaces, in ASCII: the style
// of every file beside a lock.
func canonicalJSON(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := unmarshalNumbers(raw, &tree); err != nil {
		return nil, err
	}
	return appendValue(nil, tree), nil
}
