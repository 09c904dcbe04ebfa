package kernlock

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestSidecarNewestByTime: of both names the record acquired last counts, by
// its time and not by its text, and a damaged one never hides a valid one.
func TestSidecarNewestByTime(t *testing.T) {
	record := func(agent, at string) string {
		s := strings.Replace(plainRecord, "agent-7", agent, 1)
		return strings.Replace(s, "2026-11-30T17:43:32.815604Z", at, 1)
	}
	whole, later := record("whole", "2026-11-30T17:43:00Z"), record("later", "2026-11-30T17:43:00.900000Z")
	for _, c := range []struct{ newer, older, want string }{
		{whole, later, "later"},
		{later, whole, "later"},
		{"", whole, "whole"},
		{"{", whole, "whole"},
		{whole, "\xff", "whole"},
		{"{", "\xff", ""},
	} {
		n := newTarget(t)
		writeFile(t, n.lock, nil)
		if c.newer != "" {
			writeFile(t, n.lock+sidecarSuffix, []byte(c.newer))
		}
		writeFile(t, n.lock+olderSidecarSuffix, []byte(c.older))
		r, err := Status(n.target, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Holder; (got == nil) != (c.want == "") || got != nil && got.AgentID != c.want {
			t.Errorf("%q and %q: %+v, want %q", c.newer, c.older, got, c.want)
		}
	}
}

// TestSidecarOlderNameIsRemoved by each new holder, while it holds.
func TestSidecarOlderNameIsRemoved(t *testing.T) {
	n := newTarget(t)
	writeFile(t, n.lock+olderSidecarSuffix, golden(t, "windows_older_sidecar.json"))
	l := mustAcquire(t, n.target, Options{Agent: "new"})
	if _, err := os.Lstat(n.lock + olderSidecarSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older sidecar is there: %v", err)
	}
	if r, err := Status(n.target, Options{}); err != nil || r.Holder == nil || r.Holder.AgentID != "new" {
		t.Errorf("%+v, %v", r, err)
	}
	mustRelease(t, l)
	if b := readFile(t, n.lock); len(b) != 0 {
		t.Errorf("the lock file holds %q", b)
	}
	if _, err := os.Lstat(n.lock + newSidecarSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary sidecar is left: %v", err)
	}
}

// TestReadersNeverFailAReplace: a reader has the sidecar open while a holder
// replaces it.
func TestReadersNeverFailAReplace(t *testing.T) {
	if onWine() {
		t.Skip("Wine does not tell whether a file is open in a replace")
	}
	n := newTarget(t)
	mustRelease(t, mustAcquire(t, n.target, Options{}))
	f, err := openPlain(n.lock + sidecarSuffix)
	if err != nil {
		t.Fatal(err)
	}
	l := mustAcquire(t, n.target, Options{})
	if l.Warning() != nil {
		t.Error(l.Warning())
	}
	mustRelease(t, l)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeniedReplaceFailsAtOnce is half of case 27: a sidecar that is a folder
// is no passing hindrance. The lock is held all the same.
func TestDeniedReplaceFailsAtOnce(t *testing.T) {
	n := newTarget(t)
	if err := os.Mkdir(n.lock+sidecarSuffix, 0o700); err != nil {
		t.Fatal(err)
	}
	l := mustAcquire(t, n.target, Options{})
	if l.Warning() == nil {
		t.Error("no warning")
	}
	if _, d, err := TryAcquire(n.target, Options{}); d == nil {
		t.Errorf("not held: %v", err)
	}
	mustRelease(t, l)
}
