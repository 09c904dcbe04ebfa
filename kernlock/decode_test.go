package kernlock

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// plainRecord is a record of another implementation, to be spoilt.
const plainRecord = `{"acquired_at":"2026-11-30T17:43:32.815604Z","agent_id":"agent-7","host":"build-1",` +
	`"lock_id":"0123456789abcdef","operation":"todo.add","pid":4711,"policy":"mutation","schema_version":"file_lock_holder_v0"}`

// hostileRecords lie under a lock's name in many tests. None can be decoded,
// and every one of them is known for a record that the next holder replaces.
var hostileRecords = map[string]string{
	"not UTF-8":            strings.Replace(plainRecord, "agent-7", "agent\xff\xfe", 1),
	"cut":                  plainRecord[:100],
	"cut early":            plainRecord[:30],
	"pid of 2^70":          strings.Replace(plainRecord, "4711", "1180591620717411303424", 1),
	"pid a float":          strings.Replace(plainRecord, "4711", "4711.5", 1),
	"pid a text":           strings.Replace(plainRecord, "4711", `"4711"`, 1),
	"pid null":             strings.Replace(plainRecord, "4711", "null", 1),
	"pid NaN":              strings.Replace(plainRecord, "4711", "NaN", 1),
	"pid missing":          strings.Replace(plainRecord, `"pid":4711,`, "", 1),
	"agent an object":      strings.Replace(plainRecord, `"agent-7"`, `{"a":{"b":[1]}}`, 1),
	"host empty":           strings.Replace(plainRecord, "build-1", "", 1),
	"host an escape":       strings.Replace(plainRecord, "build-1", `\u001b[2J`, 1),
	"host turns the text":  strings.Replace(plainRecord, "build-1", `a\u202eb`, 1),
	"host too long":        strings.Replace(plainRecord, "build-1", strings.Repeat("h", 256), 1),
	"lock_id a path":       strings.Replace(plainRecord, "0123456789abcdef", "../../etc/passwd", 1),
	"lock_id upper case":   strings.Replace(plainRecord, "0123456789abcdef", "0123456789ABCDEF", 1),
	"time no time":         strings.Replace(plainRecord, "2026-11-30T17:43:32.815604Z", "yesterday", 1),
	"year over 9999":       strings.Replace(plainRecord, "2026-11-30T17:43:32.815604Z", "9999-12-31T23:59:59-01:00", 1),
	"year below 0":         strings.Replace(plainRecord, "2026-11-30T17:43:32.815604Z", "0000-01-01T00:00:00+01:00", 1),
	"other version":        strings.Replace(plainRecord, "holder_v0", "holder_v9", 1),
	"released_at a number": strings.Replace(plainRecord, `"schema`, `"released_at":5,"schema`, 1),
	"proc a list":          strings.Replace(plainRecord, `"schema`, `"proc":[1],"schema`, 1),
	"proc negative":        strings.Replace(plainRecord, `"schema`, `"proc":{"pid_ns":-1},"schema`, 1),
	"proc boot an escape":  strings.Replace(plainRecord, `"schema`, `"proc":{"boot_id":"\u001b"},"schema`, 1),
	"wrong sum":            plainRecord[:len(plainRecord)-1] + `,"sum":"0123456789abcdef"}`,
	"sum a number":         plainRecord[:len(plainRecord)-1] + `,"sum":5}`,
	"sum not last":         `{"sum":"0123456789abcdef",` + plainRecord[1:],
	"deeply nested":        `{"schema_version":"file_lock_holder_v0","x":` + strings.Repeat("[", 12000) + strings.Repeat("]", 12000-9000) + "}",
	"huge":                 plainRecord[:len(plainRecord)-1] + `,"x":"` + strings.Repeat("x", 2*maxRecord) + `"}`,
	"blank":                " \n\n",
	"zeros":                strings.Repeat("\x00", 400),
}

// foreignFiles are somebody else's. They are locked, and never written.
var foreignFiles = map[string]string{
	"text":                     "hello\n",
	"one byte":                 "x",
	"a list of packages":       "# yarn lockfile v1\n\nleft-pad@^1.0.0:\n  version \"1.3.0\"\n",
	"1023 bytes":               strings.Repeat("y", 1023),
	"1024 bytes":               strings.Repeat("y", 1024),
	"1025 bytes":               strings.Repeat("y", 1025),
	"16 KiB less one":          strings.Repeat("y", maxRecord-1),
	"16 KiB":                   strings.Repeat("y", maxRecord),
	"100 KiB":                  strings.Repeat("y", 100<<10),
	"a number":                 "4711\n",
	"binary":                   "\x7fELF\x02\x01\x01\x00",
	"JSON":                     `{"name":"x","lockfileVersion":3}`,
	"JSON that begins like us": `{"acquired_at":"2026-11-30T17:43:32Z","owner":"terraform"}` + "\n",
	"JSON that mentions us":    `{"note":"see file_lock_holder_v0"}`,
	"text that mentions us":    "file_lock_holder_v0\n",
	"JSON list":                `[1,2]`,
	"schema_version a number":  `{"schema_version":3,"pid":5}`,
	"long, begins like us":     `{"acquired_at":["x"` + strings.Repeat(`,"y"`, 8000) + "]}",
	"an empty disk":            strings.Repeat("\x00", 64<<10),
	"blanks without end":       strings.Repeat(" ", 64<<10),
}

func TestClassify(t *testing.T) {
	head := func(s string) []byte { return []byte(s)[:min(len(s), maxRecord)] }
	for name, s := range hostileRecords {
		if c, r, err := classify(head(s)); c != ContentDamaged || r != nil || err == nil {
			t.Errorf("%s: %s, %v, %v; want damaged", name, c, r, err)
		}
	}
	for name, s := range foreignFiles {
		if c, r, err := classify(head(s)); c != ContentForeign || r != nil || err == nil {
			t.Errorf("%s: %s, %v, %v; want foreign", name, c, r, err)
		}
	}
	for want, s := range map[Content]string{
		ContentEmpty:  "",
		ContentRecord: plainRecord + "   \n",
		ContentOther:  `{"hostname":"h","pid":5,"token":"0f0f","acquired_at":"2026-11-30T17:43:32Z"}`,
	} {
		if c, _, err := classify([]byte(s)); c != want {
			t.Errorf("%q: %s, %v; want %s", s, c, err, want)
		}
	}
	// A lock of the other family whose keys happen to be sorted.
	s := `{"acquired_at":"2026-11-30T17:43:32Z","hostname":"h","pid":5,"token":"0f0f"}`
	if c, _, err := classify([]byte(s)); c != ContentOther {
		t.Errorf("%q: %s, %v; want %s", s, c, err, ContentOther)
	}
}

// TestRecordMark: the shortcut past classify must be taken for records alone.
func TestRecordMark(t *testing.T) {
	for name, s := range foreignFiles {
		if hasRecordMark([]byte(s)) {
			t.Errorf("%s has the mark of a record", name)
		}
	}
	for _, name := range []string{"reference_holder.json", "reference_holder_released.json",
		"reference_holder_zero_fraction.json", "reference_holder_padded.json", "own_holder.json", "own_holder_released.json"} {
		if !hasRecordMark(golden(t, name)[:64]) {
			t.Errorf("%s has no mark of a record in its first 64 bytes", name)
		}
	}
}

// safeText fails t when s could do something to a terminal.
func safeText(t *testing.T, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%s is not UTF-8: %q", what, s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			t.Errorf("%s holds %U: %q", what, r, s)
			return
		}
	}
}

func safeRecord(t *testing.T, r *Record) {
	t.Helper()
	for _, s := range []string{r.SchemaVersion, r.LockID, string(r.Policy), r.Host, r.AgentID, r.Operation, r.text()} {
		safeText(t, "record", s)
	}
	if r.Proc != nil {
		safeText(t, "boot_id", r.Proc.BootID)
	}
	for _, at := range []time.Time{r.AcquiredAt, r.ReleasedAt} {
		if y := at.UTC().Year(); y < 0 || y > 9999 {
			t.Errorf("year %d", y)
		}
	}
}

func seedRecords(f *testing.F) {
	f.Helper()
	for _, set := range []map[string]string{hostileRecords, foreignFiles} {
		for _, s := range set {
			f.Add([]byte(s))
		}
	}
	f.Add([]byte(plainRecord))
	enc := newEncoder(&goldenNames, &Options{Policy: Mutation}, goldenSelf)
	f.Add(enc.append(nil, time.Unix(1, 0), time.Time{}, 0))
	f.Add(enc.append(nil, time.Unix(1, 0), time.Unix(2, 0), 0))
}

func FuzzDecode(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			safeText(t, "error", err.Error())
			if r != nil {
				t.Error("a record and an error")
			}
			return
		}
		safeRecord(t, r)
		// What was accepted can be passed on, in an incident.
		out, err := canonicalJSON(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(out)
		if err != nil || !again.ReleasedAt.Equal(r.ReleasedAt.Truncate(time.Microsecond)) || again.PID != r.PID || again.Host != r.Host {
			t.Errorf("passed on as %s: %v", out, err)
		}
	})
}

func FuzzClassify(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		c, r, err := classify(b)
		if !bytes.Equal(b, before) {
			t.Error("its argument was changed")
		}
		if (c == ContentRecord) != (r != nil) || (r != nil || len(b) == 0) != (err == nil) {
			t.Errorf("%s, %v, %v", c, r, err)
		}
		if err != nil {
			safeText(t, "error", err.Error())
		}
		if errors.Is(err, errTorn) && c != ContentDamaged {
			t.Errorf("a torn record is %s", c)
		}
		if c == ContentDamaged && !looksDamaged(b) {
			t.Errorf("%q counts as a record of ours", b)
		}
	})
}

// looksDamaged is the most that may ever be overwritten: what bears the name
// of the format, begins as a record does, or is a few blanks.
func looksDamaged(b []byte) bool {
	return b[0] == '{' && bytes.Contains(b, []byte("file_lock_holder_")) ||
		bytes.HasPrefix(b, []byte(`{"acquired_at":"`)) && !isJSON(b) ||
		len(bytes.Trim(b, " \t\r\n\x00")) == 0 && len(b) < maxRecord
}

func isJSON(b []byte) bool {
	var v any
	return unmarshalNumbers(b, &v) == nil
}

func FuzzDecodeIncident(f *testing.F) {
	for _, name := range []string{"own_incident.jsonl", "reference_incident.jsonl", "reference_incident_no_holder.jsonl"} {
		b := golden(f, name)
		f.Add(b)
		f.Add(bytes.Replace(b, []byte("Look"), []byte(`\u001b[2J`), 1))
		f.Add(bytes.Replace(b, []byte("Look"), []byte(strings.Repeat("ü", 400)), 1))
		f.Add(bytes.Replace(b, []byte("Look"), []byte("x"+strings.Repeat("ü", 400)), 1))
		f.Add(bytes.ReplaceAll(b, []byte(`"build-1"`), []byte(`"a\nb"`)))
		f.Add(bytes.ReplaceAll(b, []byte("4711"), []byte("1e99")))
		f.Add(bytes.Replace(b, []byte("5.0"), []byte("1e999"), 1))
		f.Add(bytes.Replace(b, []byte("5.0"), []byte("NaN"), 1))
		f.Add(bytes.Replace(b, []byte(`"holder":{`), []byte(`"holder":null,"h":{`), 1))
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := decodeIncident(b)
		if err != nil {
			safeText(t, "error", err.Error())
			return
		}
		if in.Holder != nil {
			safeRecord(t, in.Holder)
		}
		for _, s := range append([]string{in.SchemaVersion, in.ErrorCode, in.LockID, string(in.Policy), string(in.HolderState),
			in.Waiter.Host, in.Waiter.AgentID, in.Waiter.Operation, in.Action.Action, in.Action.HolderHost, in.Action.RetryMode},
			in.Action.Steps...) {
			safeText(t, "incident", s)
		}
		out, err := canonicalJSON(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeIncident(out); err != nil {
			t.Errorf("passed on as %s: %v", out, err)
		}
	})
}

// TestRecordOverTheBound: an incident can carry a longer holder than a lock
// file, of which no more is read.
func TestRecordOverTheBound(t *testing.T) {
	long := plainRecord[:len(plainRecord)-1] + `,"x":"` + strings.Repeat("x", maxRecord) + `"}`
	if r, err := decode([]byte(long)); err == nil {
		t.Errorf("accepted %d bytes: %+v", len(long), r)
	}
	blanks := plainRecord + strings.Repeat(" ", maxRecord) // these do not count
	if _, err := decode([]byte(blanks)); err != nil {
		t.Error(err)
	}
}
