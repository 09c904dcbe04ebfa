package format

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stile-lock/stile/internal/proc"
)

func TestNamesRoundTrip(t *testing.T) {
	const tag, attempt, key = "0a1b2c3d", "00112233445566778899aabb", "0123456789abcdef"
	for _, kind := range []Kind{Pending, Claim, Broken, Temp} {
		name := Make("f.json", kind, key, tag, 4194304, attempt)
		n, ok := Parse(name, "f.json")
		want := Name{Kind: kind, Tag: tag, PID: 4194304}
		if kind == Claim {
			want.Key = key
		}
		if !ok || n != want {
			t.Errorf("%s is read as %+v, %v", name, n, ok)
		}
		if _, ok := Parse(name, "f"); ok {
			t.Errorf("%s is taken for a name beside f", name)
		}
		longest := Make("f.json", kind, key, tag, math.MaxInt32, attempt)
		if len(longest) > len("f.json")+LongestSuffix {
			t.Errorf("%s is longer than the longest name", longest)
		}
		if kind == Claim && len(longest) != len("f.json")+LongestSuffix {
			t.Errorf("the longest name has %d bytes, a claim %d", len("f.json")+LongestSuffix, len(longest))
		}
	}
}

func TestLockRoundTrip(t *testing.T) {
	for _, l := range []Lock{
		{PID: 1, Host: "h", Token: "t", AcquiredAt: "2026-01-02T03:04:05.678Z"},
		{PID: 1<<31 - 1, Host: "a\"b\\c\n<&>é\u2028", Token: "t"},
		{PID: 7, Host: "h", Proc: &proc.ID{BootID: "b", PidNS: 1, TimeNS: 2, StartTime: math.MaxUint64}},
		{PID: 7, Host: "h", Proc: &proc.ID{}},
		{PID: 7, Host: "h", Proc: &proc.ID{PidNS: 1, StartTime: 3}},
		{PID: 7, Host: "h", Proc: &proc.ID{BootID: "a\"<é", TimeNS: 2}},
	} {
		got, err := ParseLock(l.Encode())
		if err != nil || got.PID != l.PID || got.Host != l.Host || got.Token != l.Token || got.AcquiredAt != l.AcquiredAt {
			t.Errorf("%s is read as %+v, %v", l.Encode(), got, err)
			continue
		}
		if l.Proc != nil {
			id, err := json.Marshal(l.Proc)
			if err != nil || !strings.HasSuffix(string(l.Encode()), `,"proc":`+string(id)+"}") {
				t.Errorf("%s does not end with %s, %v", l.Encode(), id, err)
			}
		}
		if (got.Proc == nil) != (l.Proc == nil) || got.Proc != nil && *got.Proc != *l.Proc {
			t.Errorf("%s has proc %+v", l.Encode(), got.Proc)
		}
	}
}

// The bytes are a contract with other implementations: these are the ones in docs/format.md.
func TestLockBytes(t *testing.T) {
	l := Lock{PID: 4711, Host: "desk", Token: "9f86d081884c7d659a2feaa0", AcquiredAt: "2026-11-30T17:43:32.815Z"}
	const four = `{"pid":4711,"hostname":"desk","token":"9f86d081884c7d659a2feaa0","acquiredAt":"2026-11-30T17:43:32.815Z"`
	if got := string(l.Encode()); got != four+"}" {
		t.Errorf("without proc: %s", got)
	}
	l.Proc = &proc.ID{BootID: "35f37a2a-caba-4178-8ddd-f7d3d84af32a", PidNS: 4026531836, TimeNS: 4026531834, StartTime: 126402}
	const whole = four + `,"proc":{"boot_id":"35f37a2a-caba-4178-8ddd-f7d3d84af32a","pid_ns":4026531836,"time_ns":4026531834,"start_time":126402}}`
	if got := string(l.Encode()); got != whole {
		t.Errorf("with proc: %s", got)
	}
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil || !strings.Contains(string(page), "\n"+whole+"\n") {
		t.Errorf("docs/format.md shows another lock: %v", err)
	}
}

func TestParseLock(t *testing.T) {
	for text, want := range map[string]Lock{
		`{"pid":7}`:                                 {PID: 7},
		`{"pid":7.0}`:                               {PID: 7},
		`{"pid":7e2,"hostname":null}`:               {PID: 700},
		`{"pid":1e300}`:                             {PID: math.MaxInt64},
		`{"pid":-99999999999999999999}`:             {PID: math.MinInt64},
		`{"pid":7,"PID":8,"Hostname":"x"}`:          {PID: 7},
		`{"pid":7,"pid":8}`:                         {PID: 8},
		`{"pid":7,"hostname":5,"token":true}`:       {PID: 7, Host: "5", Token: "true"},
		"\n {\"pid\":7,\"hostname\":{\"a\":[]}} \n": {PID: 7, Host: `{"a":[]}`},
		`{"pid":7,"proc":null}`:                     {PID: 7},
	} {
		got, err := ParseLock([]byte(text))
		if err != nil || *got != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	// A proc that cannot be read is an empty one, never none: the bare pid is not to be trusted.
	for _, raw := range []string{`5`, `"x"`, `[]`, `{"pid_ns":-1}`, `{"boot_id":7}`} {
		got, err := ParseLock([]byte(`{"pid":7,"proc":` + raw + `}`))
		if err != nil || got.Proc == nil || *got.Proc != (proc.ID{}) {
			t.Errorf("proc %s is read as %+v, %v", raw, got, err)
		}
	}
	for _, text := range []string{
		"", "{", "[]", "7", `{"pid":"7"}`, `{"pid":7.5}`, `{"pid":null}`, `{"pid":{}}`, `{"pid":7}x`, "\ufeff{\"pid\":7}",
		strings.Repeat("[", 60000),
	} {
		if got, err := ParseLock([]byte(text)); err == nil {
			t.Errorf("%.20s is read as %+v", text, got)
		}
	}
}

func TestIsKernelRecord(t *testing.T) {
	for text, want := range map[string]bool{
		`{"schema_version":"file_lock_holder_v0"}`:               true,
		`{"schema_version":"file_lock_holder_v12","pid":1}   `:   true,
		`{"schema_version": "file_lock_holder_v0","pid":1`:       true,
		`{"schema_version":"file_lock_incident_v0"}`:             false,
		`{"schema_version":7}`:                                   false,
		`{"hostname":"file_lock_holder_v0","pid":1,"token":"x"}`: false,
		``: false,
	} {
		if got := IsKernelRecord([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Whatever is in a lock file or a folder, reading it neither fails badly nor makes more than was there.
func FuzzParse(f *testing.F) {
	f.Add("f.lock.claim-0123456789abcdef-0a1b2c3d-7-00112233445566778899aabb", []byte(`{"pid":7,"hostname":"h"}`))
	f.Add("f.tmp-7-0a", []byte("\x00"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if n, ok := Parse(name, "f"); ok && !n.InContent && n.PID < 0 {
			t.Errorf("%q has pid %d", name, n.PID)
		}
		IsKernelRecord(data)
		if l, err := ParseLock(data); err == nil {
			again, err := ParseLock(l.Encode())
			if err != nil || again.PID != l.PID || again.Host != l.Host || again.Token != l.Token {
				t.Errorf("%q: %+v is read back as %+v, %v", data, l, again, err)
			}
		}
	})
}

// The lock's strings are those that encoding/json would write.
func TestLockStrings(t *testing.T) {
	for _, s := range []string{"", "vm", "a b~!", `a"b`, `a\b`, "<&>", "a\nb", "\x7f", "é", "\u2028", "\xff"} {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		l := Lock{PID: 1, Host: s}
		if got := l.Encode(); !bytes.Contains(got, append([]byte(`"hostname":`), want...)) {
			t.Errorf("%q became %s", s, got)
		}
	}
}
