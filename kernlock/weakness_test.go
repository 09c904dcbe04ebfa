package kernlock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The TestWeakness tests are named for the faults of another implementation
// of these locks, by its number in the list that this package was written
// against. Each holds one of them off.

func TestWeakness01HostileRecordTimesOutTyped(t *testing.T) {
	for name, s := range hostileRecords {
		t.Run(name, func(t *testing.T) {
			n := newTarget(t)
			l := mustAcquire(t, n.target, Options{NoRecord: true})
			writeFile(t, recordPath(n), []byte(s))
			e := mustTimeOut(t, n.target, Options{})
			if e.Incident.Holder != nil || e.RecordErr != nil {
				t.Errorf("holder %+v, record error %v", e.Incident.Holder, e.RecordErr)
			}
			if !bytes.Equal(readFile(t, recordPath(n)), []byte(s)) {
				t.Error("the damaged record was mended")
			}
			r, err := Status(n.target, Options{})
			if err != nil || r.Liveness != Unreadable || r.Content != ContentDamaged {
				t.Errorf("status %+v, %v", r, err)
			}
			mustRelease(t, l)
			// A later holder replaces it.
			mustRelease(t, mustAcquire(t, n.target, Options{}))
			if r, err := Status(n.target, Options{}); err != nil || r.Liveness != Released {
				t.Errorf("after a later holder: %+v, %v", r, err)
			}
		})
	}
}

func TestWeakness04TwoNamesAreOneLock(t *testing.T) {
	n := newTarget(t)
	dir := filepath.Dir(n.target)
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(sub)
	sep := string(filepath.Separator)
	same := []string{n.target, dir + sep + "sub" + sep + ".." + sep + "target", ".." + sep + "target", "." + sep + ".." + sep + "target"}
	missing := []string{dir + sep + "missing", ".." + sep + "missing"}
	err := os.Symlink("target", filepath.Join(dir, "link"))
	// Wine says that it made one, and did not.
	if to, _ := os.Readlink(filepath.Join(dir, "link")); to == "target" {
		_ = os.Symlink("link", filepath.Join(dir, "link2"))
		_ = os.Symlink(dir, filepath.Join(sub, "up"))
		_ = os.Symlink("missing", filepath.Join(dir, "dangling"))
		same = append(same, dir+sep+"link", dir+sep+"link2", "up"+sep+"link2", "up"+sep+"sub"+sep+".."+sep+"target")
		missing = append(missing, dir+sep+"dangling", "up"+sep+"missing")
	} else if runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for _, group := range [][]string{same, missing} {
		l := mustAcquire(t, group[0], Options{})
		for _, name := range group[1:] {
			other, d, err := TryAcquire(name, Options{})
			if d == nil || d.LockID != l.LockID() || d.Target != l.Target() {
				t.Errorf("%s: %v, %+v, %v; want a duplicate of %s", name, other, d, err, group[0])
			}
			if other != nil {
				mustRelease(t, other)
			}
		}
		// The lock file named exactly is the same lock, too.
		if _, d, err := TryAcquire(l.LockPath(), Options{Exact: true}); d == nil || d.LockID != l.LockID() {
			t.Errorf("%s exactly: %+v, %v", l.LockPath(), d, err)
		}
		mustRelease(t, l)
	}
}

func TestWeakness05BusyIsNotStalled(t *testing.T) {
	n := newTarget(t)
	h, err := Open(n.target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := mustAcquire(t, n.target, Options{Agent: "first"})
	f, taken, err := h.attempt(false)
	if err != nil || taken {
		t.Fatal(taken, err)
	}
	defer func() { _ = f.close() }()
	before := f.sample(&h.names)

	timeout := func() *TimeoutError {
		t.Helper()
		var e *TimeoutError
		if err := h.timedOut(f, time.Now(), before); !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	e := timeout()
	if e.Incident.HolderChanged || strings.Contains(e.Error(), "busy") {
		t.Errorf("one holder all the time: %+v, %v", e.Incident, e)
	}
	mustRelease(t, first)
	second := mustAcquire(t, n.target, Options{Agent: "second"})
	e = timeout()
	if !e.Incident.HolderChanged || !strings.Contains(e.Error(), "busy, not stalled") {
		t.Errorf("holder changed: %+v, %v", e.Incident, e)
	}
	if steps := strings.Join(e.Incident.Action.Steps, " "); strings.Contains(steps, "Look at process") {
		t.Errorf("a healthy holder is to be inspected: %s", steps)
	}
	mustRelease(t, second)

	// A record that its holder has closed says nothing of the holder at the
	// time: that one may not have signed yet, and may be stalled since.
	before = f.sample(&h.names)
	mustAcquire(t, n.target, Options{Agent: "third"})
	if e = timeout(); e.Incident.HolderChanged {
		t.Errorf("only a record of a former hold was seen: %v", e)
	}
}

func TestWeakness06HolderWithoutRecord(t *testing.T) {
	n := newTarget(t)
	check := func(what string, want HolderState) {
		t.Helper()
		l := mustAcquire(t, n.target, Options{NoRecord: true})
		defer mustRelease(t, l)
		e := mustTimeOut(t, n.target, Options{})
		if e.Incident.HolderState != want || !strings.Contains(e.Error(), "holder unknown") {
			t.Errorf("%s: %s, %v", what, e.Incident.HolderState, e)
		}
		if e.Incident.Action.HolderPID != nil || e.Incident.Action.HolderHost != "" {
			t.Errorf("%s: sends somebody to %v on %q", what, *e.Incident.Action.HolderPID, e.Incident.Action.HolderHost)
		}
		_, err := Acquire(context.Background(), n.target, Options{Policy: SingleFlight})
		var held *HeldError
		if !errors.As(err, &held) || held.Duplicate.HolderState != want || !strings.Contains(err.Error(), "unknown holder") {
			t.Errorf("%s: %v", what, err)
		}
		r, err := Status(n.target, Options{})
		if err != nil || r.HolderState != want {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	check("no record at all", HolderUnproven)
	mustRelease(t, mustAcquire(t, n.target, Options{Agent: "earlier"}))
	check("a record of an earlier holder", Previous)
}

func TestWeakness07TornRecordIsNeverBelieved(t *testing.T) {
	// Every mixture of two records, cut anywhere.
	one := newEncoder(&goldenNames, &Options{Policy: Mutation, Agent: "one", Operation: "first"}, goldenSelf)
	two := newEncoder(&goldenNames, &Options{Policy: Mutation, Agent: "two", Operation: "other"}, goldenSelf)
	a := one.append(nil, time.Unix(1, 0), time.Time{}, 0)
	b := two.append(nil, time.Unix(2, 0), time.Unix(3, 0), 0)
	for cut := range a {
		mixed := append(bytes.Clone(a[:cut]), b[cut:]...)
		if c, r, _ := classify(mixed); r != nil && !bytes.Equal(mixed, a) && !bytes.Equal(mixed, b) {
			if bytes.Equal(bytes.TrimSpace(mixed), bytes.TrimSpace(a)) {
				continue // cut in the blanks
			}
			t.Errorf("cut at %d: %s %+v", cut, c, r)
		} else if c != ContentRecord && c != ContentDamaged {
			t.Errorf("cut at %d: %s", cut, c)
		}
	}
	// A torn read is read again.
	reads := [][]byte{append(bytes.Clone(a[:50]), b[50:]...), a[:70], a}
	c, r, err := readSettled(func() ([]byte, error) {
		next := reads[0]
		reads = reads[1:]
		return next, nil
	})
	if err != nil || c != ContentRecord || r.AgentID != "one" {
		t.Errorf("read again: %s, %+v, %v", c, r, err)
	}
	tries := 0
	if c, r, err = readSettled(func() ([]byte, error) { tries++; return a[:70], nil }); err != nil || c != ContentDamaged || r != nil || tries > 100 {
		t.Errorf("torn for good: %s, %+v, %v after %d tries", c, r, err, tries)
	}
}

func TestWeakness07ReaderUnderChurn(t *testing.T) {
	n := newTarget(t)
	agents := map[string]string{"a": "short", strings.Repeat("b", 100): strings.Repeat("long", 20)}
	stop := make(chan struct{})
	done := make(chan error, len(agents))
	for agent, operation := range agents {
		h, err := Open(n.target, Options{Agent: agent, Operation: operation})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { _ = h.Close() }()
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				l, _, err := h.TryAcquire()
				if l != nil {
					err = l.Release()
				}
				if err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range 1000 {
		r, err := Status(n.target, Options{})
		if err != nil {
			t.Error(err)
			break
		}
		if h := r.Holder; h != nil && (agents[h.AgentID] != h.Operation || !h.ReleasedAt.IsZero() && h.ReleasedAt.Before(h.AcquiredAt)) {
			t.Errorf("a torn record was believed: %+v", h)
			break
		}
	}
	close(stop)
	for range agents {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWeakness10SingleFlightWritesNoIncident(t *testing.T) {
	n := newTarget(t)
	for _, holder := range []Options{{}, {Policy: SingleFlight}, {NoRecord: true}, {Shared: true}} {
		l := mustAcquire(t, n.target, holder)
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for _, ctx := range []context.Context{context.Background(), l.Context(), ended} {
			if got, err := Acquire(ctx, n.target, Options{Policy: SingleFlight}); err == nil {
				t.Errorf("%+v: got %v", holder, got)
			} else if errors.Is(err, ErrTimeout) {
				t.Errorf("%+v: %v", holder, err)
			}
		}
		for _, o := range []Options{{Policy: SingleFlight}, {Policy: Mutation}, {Policy: Monitor}} {
			if _, d, err := TryAcquire(n.target, o); d == nil {
				t.Errorf("%+v: %v", holder, err)
			}
		}
		mustRelease(t, l)
	}
	if _, err := os.Lstat(n.incidents()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is an incidents file: %v", err)
	}
}

func TestWeakness11HostileContentIsNeverPassedOn(t *testing.T) {
	n := newTarget(t)
	mustAcquire(t, n.target, Options{NoRecord: true})
	for name, s := range hostileRecords {
		writeFile(t, recordPath(n), []byte(s))
		e := mustTimeOut(t, n.target, Options{Agent: "a\x1b[2J", Operation: "../\n/x"})
		safeText(t, name, e.Error())
		for _, step := range e.Incident.Action.Steps {
			safeText(t, name, step)
		}
		r, err := Status(n.target, Options{})
		if err != nil {
			t.Fatal(err)
		}
		safeReport(t, r)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := json.Marshal(e.Incident); err != nil || !bytes.Contains(b, []byte(`"holder":{}`)) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	rows := readFile(t, n.incidents())
	for _, row := range bytes.Split(bytes.TrimSuffix(rows, []byte("\n")), []byte("\n")) {
		safeText(t, "incident row", string(row))
		if !json.Valid(row) {
			t.Errorf("not JSON: %s", row)
		}
	}
	log, err := Incidents(n.target, Options{})
	if err != nil || len(log.Rows) != len(hostileRecords) || log.Skipped != 0 {
		t.Errorf("%d rows, %d skipped, %v", len(log.Rows), log.Skipped, err)
	}
}

func TestWeakness12TimesCompareAsTimes(t *testing.T) {
	record := func(at string) *Record {
		r, err := decode([]byte(strings.Replace(plainRecord, "2026-11-30T17:43:32.815604Z", at, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// As text, "00.9" comes before "00Z".
	whole, later := record("2026-11-30T17:43:00Z"), record("2026-11-30T17:43:00.900000Z")
	if !later.AcquiredAt.After(whole.AcquiredAt) || whole.same(later) {
		t.Errorf("%v is not after %v", later.AcquiredAt, whole.AcquiredAt)
	}
	for _, at := range []string{"2026-11-30T17:43:00.000000Z", "2026-11-30T17:43:00.0Z", "2026-11-30T18:43:00+01:00"} {
		if !record(at).same(whole) {
			t.Errorf("%s is taken for another hold", at)
		}
	}
}

func TestWeakness16TimeoutBounds(t *testing.T) {
	n := newTarget(t)
	for _, d := range []time.Duration{-1, math.MinInt64, MaxTimeout + 1, math.MaxInt64} {
		for _, p := range []Policy{"", Mutation, Monitor, SingleFlight} {
			if _, err := Open(n.target, Options{Policy: p, Timeout: d}); !errors.Is(err, ErrUsage) {
				t.Errorf("timeout %v under %q: %v", d, p, err)
			}
		}
	}
	if _, err := Open(n.target, Options{Policy: SingleFlight, Timeout: time.Second}); !errors.Is(err, ErrUsage) {
		t.Errorf("single_flight with a timeout: %v", err)
	}
	for _, p := range []Policy{"mutations", "MUTATION", " monitor", "\x1b[2J"} {
		_, err := Open(n.target, Options{Policy: p})
		if !errors.Is(err, ErrUsage) {
			t.Fatalf("policy %q: %v", p, err)
		}
		safeText(t, "error", err.Error())
	}
	for _, c := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{}, 5 * time.Second},
		{Options{Policy: Mutation}, 5 * time.Second},
		{Options{Policy: Monitor}, time.Second},
		{Options{Policy: SingleFlight}, 0},
		{Options{Timeout: TryOnce}, TryOnce},
		{Options{Policy: Monitor, Timeout: MaxTimeout}, MaxTimeout},
	} {
		h, err := Open(n.target, c.o)
		if err != nil || h.opts.Timeout != c.want {
			t.Errorf("%+v: %v, %v; want %v", c.o, h, err, c.want)
		}
	}
}
