package kernlock

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestTimeoutError(t *testing.T) {
	n := newTarget(t)
	l := mustAcquire(t, n.target, Options{Agent: "holder", Operation: "write"})
	e := mustTimeOut(t, n.target, Options{Agent: "waiter"})
	in := e.Incident
	if e.Target != n.target || e.LockPath != n.lock || e.Channel != "target.lock.incidents.jsonl" || e.RecordErr != nil {
		t.Errorf("%+v", e)
	}
	if in.SchemaVersion != "file_lock_incident_v0" || in.ErrorCode != "lock_acquire_timeout" || in.LockID != l.LockID() ||
		in.Policy != Mutation || in.HolderChanged {
		t.Errorf("%+v", in)
	}
	if in.Holder == nil || in.Holder.AgentID != "holder" || in.Holder.PID != int64(os.Getpid()) || in.Holder.Operation != "write" {
		t.Errorf("holder %+v", in.Holder)
	}
	w := in.Waiter
	if w.AgentID != "waiter" || w.Operation != "mutation" || w.PID != int64(os.Getpid()) || w.TimeoutSeconds != 0 || w.WaitedSeconds < 0 {
		t.Errorf("waiter %+v", w)
	}
	if in.RecordedAt.Before(w.StartedAt.Truncate(time.Microsecond)) {
		t.Errorf("recorded %v, started %v", in.RecordedAt, w.StartedAt)
	}
	a := in.Action
	if !a.Required || a.Action != "inspect_lock_holder" || a.HolderHost != in.Holder.Host || a.HolderPID == nil ||
		*a.HolderPID != in.Holder.PID || a.RetryMode != "manual_after_holder_inspection" || len(a.Steps) != 4 {
		t.Errorf("%+v", a)
	}
	for _, part := range []string{"target", "timed out after", "holder (pid ", ", write, since "} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%q lacks %q", e.Error(), part)
		}
	}
	// What was appended is what was returned.
	log, err := Incidents(n.target, Options{})
	if err != nil || len(log.Rows) != 1 {
		t.Fatalf("%+v, %v", log, err)
	}
	want, _ := canonicalJSON(in)
	got, _ := canonicalJSON(log.Rows[0])
	if !bytes.Equal(got, want) || log.LockID != l.LockID() || log.Path != n.incidents() {
		t.Errorf("read back %s\nwant %s", got, want)
	}
	if r, err := Status(n.target, Options{}); err != nil || r.Incidents != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDuplicate(t *testing.T) {
	n := newTarget(t)
	mustAcquire(t, n.target, Options{Agent: "holder"})
	l, d, err := TryAcquire(n.target, Options{})
	if l != nil || err != nil || d == nil {
		t.Fatal(l, d, err)
	}
	if d.Target != n.target || d.LockID != n.id || d.Holder == nil || d.Holder.AgentID != "holder" || d.Liveness != Live {
		t.Errorf("%+v", d)
	}
	if runtime.GOOS == "linux" && d.HolderState != Current && lookKernel().facts(n.lock).state == KernelHeld {
		t.Errorf("state %s", d.HolderState)
	}
	_, err = Acquire(t.Context(), n.target, Options{Policy: SingleFlight})
	var held *HeldError
	if !errors.As(err, &held) || held.Duplicate.Holder == nil || !strings.Contains(err.Error(), "held by holder (pid ") {
		t.Errorf("%v", err)
	}
}

func TestSharedHolders(t *testing.T) {
	n := newTarget(t)
	a := mustAcquire(t, n.target, Options{Shared: true})
	b := mustAcquire(t, n.target, Options{Shared: true, Timeout: TryOnce})
	e := mustTimeOut(t, n.target, Options{})
	if e.Incident.Holder != nil {
		t.Errorf("a shared holder wrote %+v", e.Incident.Holder)
	}
	mustRelease(t, a)
	_ = mustTimeOut(t, n.target, Options{})
	mustRelease(t, b)
	x := mustAcquire(t, n.target, Options{Timeout: TryOnce})
	_ = mustTimeOut(t, n.target, Options{Shared: true})
	mustRelease(t, x)
}

// TestTornIncidentLineIsClosed: what a crash left of a row spoils no other.
func TestTornIncidentLineIsClosed(t *testing.T) {
	n := newTarget(t)
	whole := golden(t, "own_incident.jsonl")
	torn := whole[:200]
	writeFile(t, n.incidents(), append(bytes.Clone(whole), torn...))
	mustAcquire(t, n.target, Options{})
	if e := mustTimeOut(t, n.target, Options{}); e.RecordErr != nil {
		t.Fatal(e.RecordErr)
	}
	got := readFile(t, n.incidents())
	if !bytes.HasPrefix(got, append(append(bytes.Clone(whole), torn...), '\n', '{')) || !bytes.HasSuffix(got, []byte("}\n")) {
		t.Errorf("%q", got)
	}
	log, err := Incidents(n.target, Options{})
	if err != nil || len(log.Rows) != 2 || log.Skipped != 1 {
		t.Errorf("%d rows, %d skipped, %v", len(log.Rows), log.Skipped, err)
	}
}

// TestLongIncidentLines: a file that is no incidents file is read in bounds.
func TestLongIncidentLines(t *testing.T) {
	n := newTarget(t)
	whole := golden(t, "own_incident.jsonl")
	long := bytes.Repeat([]byte("x"), 3*maxRow+17)
	writeFile(t, n.incidents(), bytes.Join([][]byte{whole, long, []byte("\n\n  \n"), whole, long}, nil))
	log, err := Incidents(n.target, Options{})
	if err != nil || len(log.Rows) != 2 || log.Skipped != 2 {
		t.Errorf("%d rows, %d skipped, %v", len(log.Rows), log.Skipped, err)
	}
}

type timeoutsArg struct {
	Target string
	Name   string
	Count  int
}

// TestWeakness15RotationKeepsEveryRow: two processes time out in a loop while
// the file passes its bound.
func TestWeakness15RotationKeepsEveryRow(t *testing.T) {
	row := golden(t, "own_incident.jsonl")
	for range 4 {
		n := newTarget(t)
		mustAcquire(t, n.target, Options{})
		before := maxIncidents/len(row) - 5
		writeFile(t, n.incidents(), bytes.Repeat(row, before))
		const each = 40
		var children []*child
		for _, name := range []string{"one", "two"} {
			c := startChild(t, "timeouts", timeoutsArg{n.target, name, each})
			c.expect("ready")
			children = append(children, c)
		}
		for _, c := range children {
			c.tell("go")
		}
		for _, c := range children {
			c.expect("done")
			c.finish()
		}
		if st, err := os.Stat(n.incidents() + rotatedSuffix); err != nil || st.Size() < maxIncidents-int64(len(row))*6 {
			t.Fatalf("not rotated once: %v, %v", st, err)
		}
		if st, err := os.Stat(n.incidents()); err != nil || st.Size() >= maxIncidents {
			t.Fatalf("not bounded: %v, %v", st, err)
		}
		log, err := Incidents(n.target, Options{})
		if err != nil || log.Skipped != 0 && !onWine() {
			t.Fatalf("%d skipped, %v", log.Skipped, err)
		}
		count := map[string]int{}
		for _, in := range log.Rows {
			count[in.Waiter.AgentID]++
		}
		if onWine() {
			continue
		}
		if count["one"] != each || count["two"] != each || count["agent-8"] != before {
			t.Fatalf("rows kept: %v; want %d of each process and %d from before", count, each, before)
		}
	}
}
