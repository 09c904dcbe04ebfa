package dispatch

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

// sleeper is the system's clock that tells of each sleep.
type sleeper struct{ slept func() }

func (sleeper) Now() time.Time { return time.Now() }

func (s sleeper) Sleep(ctx context.Context, _ time.Duration) error {
	s.slept()
	return ctx.Err()
}

// A writer that is between log and board is no problem: check waits for it.
func TestCheckWaitsForAWriter(t *testing.T) {
	writer := newEstate(t)
	checker, err := OpenEstate(Options{Flag: writer.Path()})
	must(t, err)
	defer checker.Close()
	open(t, writer, "ada", "first")

	saw := make(chan struct{})
	checker.seams = &seam.Set{Clock: sleeper{sync.OnceFunc(func() { close(saw) })}}
	found := make(chan Findings, 1)
	writer.seams = &seam.Set{OnStep: func() func(seam.Step) {
		begun := false
		return func(s seam.Step) {
			if s != seam.CommitRenamed || begun {
				return
			}
			begun = true // the log is in place, the board is not
			go func() {
				f, err := checker.Check("ada")
				if err != nil {
					t.Error(err)
				}
				found <- f
			}()
			select {
			case <-saw: // it has seen the log without the item
			case f := <-found: // and has not waited
				found <- f
			}
		}
	}()}
	open(t, writer, "ada", "second")
	if f := <-found; f.Problems != nil {
		t.Errorf("check says %v", f.Problems)
	}
}

// Files that dead writers left are told, and are no problem.
func TestLeftovers(t *testing.T) {
	e := newEstate(t)
	open(t, e, "ada", "x")
	const attempt = "0123456789abcdef01234567"
	tag := proc.HostTag()
	dead := []string{
		e.LogPath("ada") + ".lock.claim-0123456789abcdef-" + tag + "-77-" + attempt,
		e.LogPath("ada") + ".tmp-" + tag + "-77-" + attempt,
		e.boardPath("ada") + ".tmp-" + tag + "-77-" + attempt,
	}
	for _, name := range append(slices.Clone(dead), e.LogPath("ada")+".tmp-"+tag+"-78-"+attempt, filepath.Join(filepath.Dir(e.LogPath("ada")), "notes")) {
		write(t, name, "x")
	}
	e.seams = &seam.Set{Judge: func(h proc.Holder, _ string) proc.Judgement {
		if h.PID == 77 {
			return proc.Judgement{Verdict: proc.Dead}
		}
		return proc.Judgement{Verdict: proc.Alive}
	}}
	f, err := e.Check()
	must(t, err)
	var got []string
	for _, l := range f.Leftovers {
		got = append(got, l.Path)
	}
	if f.Problems != nil || !slices.Equal(got, dead) {
		t.Errorf("problems %v, leftovers %q", f.Problems, got)
	}
	open(t, e, "ada", "y")
	if f, err = e.Check(); err != nil || f.Leftovers != nil {
		t.Errorf("after the next writer: %v, %v", f.Leftovers, err)
	}
}

// A young lock is no problem; what is no lock file in its place is one.
func TestCheckLocks(t *testing.T) {
	e := newEstate(t)
	open(t, e, "ada", "x")
	hold, err := lockfile.Acquire(t.Context(), e.LogPath("ada"), lockfile.Options{})
	must(t, err)
	if k := kinds(t, e); k != nil {
		t.Errorf("check says %q", k)
	}
	must(t, hold.Release())
	write(t, e.LogPath("ada")+".lock/x", "")
	if k := kinds(t, e); !slices.Equal(k, []string{"unreadable-lock "}) {
		t.Errorf("check says %q", k)
	}
}

// Repair goes on under a fresh lock when its own was lost, and writes nothing under the lost one.
func TestRepairAfterALostLock(t *testing.T) {
	e := newEstate(t)
	write(t, e.LogPath("ada"), `[{"id":"a","task":"t"}]`)
	lost := 0
	e.seams = &seam.Set{OnStep: func(s seam.Step) {
		if s == seam.CommitTempWritten && lost == 0 {
			lost++
			_, err := lockfile.Unlock(context.Background(), e.LogPath("ada"), lockfile.UnlockOptions{Force: true})
			must(t, err)
			write(t, e.LogPath("ada"), `[{"id":"a","task":"t"},{"id":"b","task":"u"}]`)
		}
	}}
	done, err := e.Repair(t.Context(), "ada")
	must(t, err)
	if lost != 1 || !slices.Equal(done.Added, []string{"a", "b"}) {
		t.Errorf("repaired %+v", done)
	}
	if k := kinds(t, e); k != nil {
		t.Errorf("check says %q", k)
	}
	only(t, e, "ada")
}

// A long board is not looked at to its last byte before each dispatch, but what opens and closes in it is;
// check reads it all.
func TestLongBoard(t *testing.T) {
	long := strings.Repeat(`{"title":"x"},`+"\n", 30000)
	for damage, refused := range map[string]bool{
		`{"title":"y"`: true, `{"title":"y}`: true, `]`: true, `{"title" "y"}`: false, `{"title":tru}`: false, `{}`: false,
	} {
		e := newEstate(t)
		text := `{"items":[` + long + damage + `,{}],"archive":[{}]}`
		write(t, e.boardPath("ada"), text)
		_, err := e.OpenDispatch(t.Context(), "ada", Task{Text: "x"})
		if refused {
			if !errors.Is(err, ErrBoard) || read(t, e.boardPath("ada")) != text {
				t.Errorf("%s: %v", damage, err)
			}
			continue
		}
		must(t, err)
		want := strings.TrimSuffix(text, `],"archive":[{}]}`)
		if got := read(t, e.boardPath("ada")); !strings.HasPrefix(got, want+`,{"dispatch"`) || !strings.HasSuffix(got, `"}],"archive":[{}]}`) {
			t.Errorf("%s: the item went elsewhere", damage)
		}
		if k := kinds(t, e); (k != nil) != (damage != "{}") {
			t.Errorf("%s: check says %q", damage, k)
		}
	}
}

// An editor that saves the board while it is being changed loses nothing: it is read again.
func TestBoardChangedByHandMeanwhile(t *testing.T) {
	e := newEstate(t)
	open(t, e, "ada", "first")
	n := 0
	e.seams = &seam.Set{OnStep: func(s seam.Step) {
		if s != seam.CommitTempWritten {
			return
		}
		if n++; n == 2 { // the board's; the first is the log's
			write(t, e.boardPath("ada"), `{"items":[{"title":"by hand"}]}`)
		}
	}}
	id := open(t, e, "ada", "second")
	items, err := e.Board("ada")
	must(t, err)
	if len(items) != 2 || items[0].Title != "by hand" || items[1].Dispatch != id {
		t.Errorf("the board holds %+v", items)
	}
}
