package kernlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestSurvey(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	put := func(name, content string) { writeFile(t, filepath.Join(dir, name), []byte(content)) }
	held := mustAcquire(t, filepath.Join(dir, "a", "held"), Options{Agent: "holder"})
	mustRelease(t, mustAcquire(t, filepath.Join(dir, "a", "b", "past"), Options{}))
	put("empty.lock", "")
	put("no-lock", "")
	put(".lock", "")
	put("other.lock", `{"hostname":"h","pid":5,"token":"0f0f"}`)
	put("x.lock.incidents.jsonl", "")
	want := []string{"a/b/past.lock", "a/held.lock", "empty.lock"}
	if runtime.GOOS != "windows" { // there a record lies beside the lock file
		put("damaged.lock", plainRecord[:60])
		put("yarn.lock", "# yarn lockfile v1\n")
		put("held-yarn.lock", "# yarn lockfile v1\n")
		mustAcquire(t, filepath.Join(dir, "held-yarn"), Options{})
		want = append(want, "damaged.lock")
		if r, err := Status(filepath.Join(dir, "held-yarn"), Options{}); err == nil && r.Kernel == KernelHeld {
			want = append(want, "held-yarn.lock")
		}
		must(os.Symlink("a", filepath.Join(dir, "link")))
		must(os.Symlink("empty.lock", filepath.Join(dir, "link.lock")))
	}
	slices.Sort(want)

	survey := func() map[string]*Report {
		t.Helper()
		got, order := map[string]*Report{}, []string{}
		must(Survey(t.Context(), dir, func(r *Report, err error) error {
			rel, rerr := filepath.Rel(dir, r.LockPath)
			if err != nil || rerr != nil {
				t.Errorf("%s: %v, %v", r.LockPath, err, rerr)
			}
			rel = filepath.ToSlash(rel)
			got[rel], order = r, append(order, rel)
			return nil
		}))
		slices.Sort(order)
		if !slices.Equal(order, want) {
			t.Errorf("visited %q, want %q", order, want)
		}
		return got
	}
	got := survey()
	if r := got["a/held.lock"]; r == nil || r.Target != held.Target() || r.LockID != held.LockID() ||
		r.Holder == nil || r.Holder.AgentID != "holder" || r.Kernel == KernelFree {
		t.Errorf("held: %+v", r)
	}
	if r := got["a/b/past.lock"]; r == nil || r.Liveness != Released || r.HolderState != Previous {
		t.Errorf("past: %+v", r)
	}
	if r := got["empty.lock"]; r == nil || r.Content != ContentEmpty || r.Liveness != Absent || r.AgeSeconds != -1 {
		t.Errorf("empty: %+v", r)
	}

	// visit's error ends it, and so does the context.
	stop := errors.New("stop")
	calls := 0
	if err := Survey(t.Context(), dir, func(*Report, error) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	calls = 0
	if err := Survey(ctx, dir, func(*Report, error) error { calls++; cancel(stop); return nil }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls after a cancel, %v", calls, err)
	}
	if err := Survey(t.Context(), filepath.Join(dir, "nothing"), nil); err == nil {
		t.Error("no folder, no error")
	} else if strings.Contains(err.Error(), "%!") {
		t.Errorf("%v", err)
	}
	if err := Survey(t.Context(), filepath.Join(dir, "no-lock"), func(*Report, error) error { return nil }); err != nil {
		t.Errorf("a file instead of a folder: %v", err)
	}
}

func TestStatusChangesNothing(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "t")
	r, err := Status(target, Options{})
	if err != nil || r.Content != ContentAbsent || r.Liveness != Absent || r.Kernel != KernelFree || r.Incidents != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if log, err := Incidents(target, Options{}); err != nil || len(log.Rows) != 0 || log.Rows == nil {
		t.Errorf("%+v, %v", log, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
