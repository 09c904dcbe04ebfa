package kernlock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/proc"
)

// The files in testdata were written by hand from the format's description,
// not by this package. Those named reference_* are as another implementation
// of the format writes them.

func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func day(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// goldenNames and goldenSelf are what the own_* files were written for.
var (
	goldenNames = names{target: "/srv/data/todo", lock: "/srv/data/todo.lock", id: "0123456789abcdef", record: true}
	goldenSelf  = proc.Holder{PID: 4711, Host: "build-1", Proc: &proc.ID{
		BootID: "11111111-2222-3333-4444-555555555555", PidNS: 4026531836, TimeNS: 4026531834, StartTime: 987654}}
)

func TestReferenceHolderRecords(t *testing.T) {
	acquired := day(t, "2026-11-30T17:43:32.815604Z")
	base := Record{
		SchemaVersion: holderSchema, LockID: "0123456789abcdef", Policy: Mutation, PID: 4711,
		Host: "build-1", AgentID: "agent-7", Operation: "todo.add", AcquiredAt: acquired,
	}
	released, zero, padded, older := base, base, base, base
	released.ReleasedAt = day(t, "2026-11-30T17:43:33.001Z")
	zero.AcquiredAt, zero.Policy = day(t, "2026-11-30T17:43:32Z"), Monitor
	zero.AgentID, zero.Operation = "unknown", "monitor"
	padded.Policy = SingleFlight
	older.AcquiredAt, older.AgentID = day(t, "2026-11-30T17:43:31.9Z"), "agent-6"
	older.Host, older.PID, older.LockID = "WIN-BUILD", 5120, "fedcba9876543210"
	for name, want := range map[string]Record{
		"reference_holder.json":               base,
		"reference_holder_released.json":      released,
		"reference_holder_zero_fraction.json": zero,
		"reference_holder_padded.json":        padded,
		"windows_older_sidecar.json":          older,
	} {
		content, got, err := classify(golden(t, name))
		if err != nil || content != ContentRecord {
			t.Errorf("%s: %s, %v", name, content, err)
			continue
		}
		if *got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, want)
		}
	}
}

func TestReferenceIncidents(t *testing.T) {
	in, err := decodeIncident(golden(t, "reference_incident.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w := Waiter{PID: 4712, Host: "build-1", AgentID: "agent-8", Operation: "todo.close",
		StartedAt: day(t, "2026-11-30T17:43:33Z"), TimeoutSeconds: 5, WaitedSeconds: 5.003}
	if in.Waiter != w {
		t.Errorf("waiter is %+v, want %+v", in.Waiter, w)
	}
	if in.Holder == nil || in.Holder.AgentID != "agent-7" || in.HolderState != HolderUnproven || in.HolderChanged {
		t.Errorf("holder %+v, state %s, changed %v", in.Holder, in.HolderState, in.HolderChanged)
	}
	if !in.RecordedAt.Equal(day(t, "2026-11-30T17:43:38Z")) || in.Policy != Mutation {
		t.Errorf("recorded %v under %s", in.RecordedAt, in.Policy)
	}
	a := in.Action
	if !a.Required || a.Action != inspectAction || a.HolderHost != "build-1" || a.HolderPID == nil ||
		*a.HolderPID != 4711 || a.RetryMode != Mutation.RetryMode() || len(a.Steps) != 3 {
		t.Errorf("operator_action is %+v", a)
	}

	in, err = decodeIncident(golden(t, "reference_incident_no_holder.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if in.Holder != nil || in.Action.HolderPID != nil || in.Policy != Monitor {
		t.Errorf("holder %+v, pid %v, policy %s", in.Holder, in.Action.HolderPID, in.Policy)
	}
}

func TestOwnHolderRecordBytes(t *testing.T) {
	o := &Options{Policy: Mutation, Agent: "agent-7", Operation: "todo.add"}
	enc := newEncoder(&goldenNames, o, goldenSelf)
	acquired, released := day(t, "2026-11-30T17:43:32Z"), day(t, "2026-11-30T17:43:33.5Z")

	held := enc.append(nil, acquired, time.Time{}, 0)
	if want := golden(t, "own_holder.json"); !bytes.Equal(held, want) {
		t.Errorf("held:\n got %q\nwant %q", held, want)
	}
	done := enc.append(nil, acquired, released, 0)
	if want := golden(t, "own_holder_released.json"); !bytes.Equal(done, want) {
		t.Errorf("released:\n got %q\nwant %q", done, want)
	}
	if len(held) != len(done) {
		t.Errorf("%d bytes while held, %d after: a release must cover the record that it replaces", len(held), len(done))
	}
	// A time of another zone is written in UTC.
	east := enc.append(nil, acquired.In(time.FixedZone("", 5*3600)), time.Time{}, 0)
	if !bytes.Equal(east, held) {
		t.Errorf("a time of another zone gives %q", east)
	}
	for _, b := range [][]byte{held, done} {
		r, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if proc.ID(*r.Proc) != *goldenSelf.Proc || r.PID != 4711 {
			t.Errorf("read back as %+v", r)
		}
	}
}

func TestOwnRecordCoversALongerOne(t *testing.T) {
	enc := newEncoder(&goldenNames, &Options{Policy: Mutation}, goldenSelf)
	shortest := len(enc.append(nil, time.Unix(0, 0), time.Unix(0, 0), 0))
	for _, least := range []int{0, 100, shortest, shortest + 1, 500, 1000} {
		b := enc.append([]byte("kept"), time.Unix(0, 0), time.Time{}, least)
		line := b[len("kept"):]
		// Exactly as long: a record must not grow from hold to hold.
		if string(b[:4]) != "kept" || len(line) != max(least, shortest) || bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Errorf("at least %d: %q", least, b)
		}
		if _, err := decode(line); err != nil {
			t.Errorf("at least %d: %v", least, err)
		}
	}
}

func TestOwnIncidentBytes(t *testing.T) {
	holder, err := decode(golden(t, "own_holder.json"))
	if err != nil {
		t.Fatal(err)
	}
	in := Incident{
		SchemaVersion: incidentSchema, ErrorCode: timeoutCode, LockID: goldenNames.id, Policy: Mutation,
		RecordedAt: day(t, "2026-11-30T17:43:38.000001Z"), Holder: holder, HolderState: Current,
		Waiter: Waiter{PID: 4712, Host: "build-2", AgentID: "agent-8", Operation: "todo.close",
			StartedAt: day(t, "2026-11-30T17:43:33Z"), TimeoutSeconds: 5, WaitedSeconds: thousandths(5001300 * time.Microsecond)},
		Action: OperatorAction{Required: true, Action: inspectAction, HolderHost: "build-1",
			HolderPID: &holder.PID, RetryMode: Mutation.RetryMode()},
	}
	in.Action.Steps = steps(&in)
	got, err := canonicalJSON(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.TrimSuffix(golden(t, "own_incident.jsonl"), []byte("\n")); !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := decodeIncident(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := canonicalJSON(back)
	if err != nil || !bytes.Equal(again, got) {
		t.Errorf("read and written again: %v\n%s", err, again)
	}
}

// TestEncoderIsCanonical holds the encoder, written by hand, against the
// canonical encoding of the record that it wrote.
func TestEncoderIsCanonical(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	hosts := []string{"h", "build-1.example.org", "häst", "mašina", "\U0001F40E", `q"uote\`, strings.Repeat("x", 255)}
	texts := []string{"", "a", "todo.add", "ä b", "!!", "x\"y", strings.Repeat("long", 50), "\xff\xfe", "a\x00b"}
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	maybe := func(v uint64) uint64 { return v * uint64(rnd.IntN(2)) }
	for range 2000 {
		self := proc.Holder{PID: int64(rnd.Int32()), Host: pick(hosts)}
		if rnd.IntN(4) > 0 {
			self.Proc = &proc.ID{PidNS: maybe(rnd.Uint64()), TimeNS: maybe(rnd.Uint64()), StartTime: maybe(rnd.Uint64())}
			if rnd.IntN(2) > 0 {
				self.Proc.BootID = "11111111-2222-3333-4444-555555555555"
			}
		}
		o := &Options{Policy: []Policy{Mutation, Monitor, SingleFlight}[rnd.IntN(3)], Agent: pick(texts), Operation: pick(texts)}
		acquired := time.UnixMicro(rnd.Int64N(4e15)).UTC()
		var released time.Time
		if rnd.IntN(2) > 0 {
			released = acquired.Add(time.Duration(rnd.Int64N(1e15)))
		}
		line := newEncoder(&goldenNames, o, self).append(nil, acquired, released, rnd.IntN(600))
		got := bytes.TrimRight(line, " \n")

		want := Record{SchemaVersion: holderSchema, LockID: goldenNames.id, Policy: o.Policy, PID: self.PID, Host: self.Host,
			AgentID: agentLabel(o.Agent), Operation: label(o.Operation, string(o.Policy)), AcquiredAt: acquired, ReleasedAt: released}
		if self.Proc != nil && *self.Proc != (proc.ID{}) {
			p := Proc(*self.Proc)
			want.Proc = &p
		}
		plain, err := canonicalJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(plain)
		plain = append(plain[:len(plain)-1], `,"sum":"`+hex.EncodeToString(sum[:8])+`"}`...)
		if !bytes.Equal(got, plain) {
			t.Fatalf("encoder wrote\n%s\ncanonical is\n%s", got, plain)
		}
		for _, c := range got {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("byte %#x in %s", c, got)
			}
		}
		back, err := decode(line)
		if err != nil {
			t.Fatalf("%v of %s", err, line)
		}
		if !back.same(&want) || back.ReleasedAt.IsZero() != released.IsZero() {
			t.Fatalf("read back as %+v, want %+v", back, want)
		}
		if !json.Valid(got) {
			t.Fatalf("not JSON: %s", got)
		}
	}
}
