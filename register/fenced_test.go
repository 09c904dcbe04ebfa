package register

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

// fenced runs a function as a fenced command of a's.
func (a *agent) fenced(args []string, run func() (int, error)) (Ended, error) {
	a.w.t.Helper()
	f, err := a.w.store.Fence(context.Background(), box)
	if err != nil {
		return Ended{}, err
	}
	defer func() { a.w.must(f.Release()) }()
	return a.w.reg.RunFenced(f.Context(), Fenced{
		Begin: grant.Begin{Meta: a.w.meta(grant.Agent(a.name)), Session: a.s, Base: a.w.page().Register.Head},
		Args:  args, Finish: a.w.nonce(), Note: "deploy",
	}, run)
}

func TestFencedCommand(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	_, err := a.land(tree(t, "x", "1"))
	w.must(err)
	ran := false
	end, err := a.fenced([]string{"deploy", "to prod", "\x1b[31m"}, func() (int, error) {
		ran = true
		p := w.page()
		if p.Running == nil || !strings.HasPrefix(p.Running.Command, "deploy 'to prod'") || strings.Contains(p.Running.Command, "\x1b") {
			t.Errorf("running %+v", p.Running)
		}
		// Nobody begins or ends a grant now, whatever the clock says.
		w.clock.advance(30 * time.Hour)
		for _, c := range []grant.Command{
			grant.Acquire{Meta: w.meta(grant.Agent("b")), Session: (grant.Secret{1}).Hash()},
			grant.Clear{Meta: w.meta(grant.Operator("op")), Reason: "silent", Seen: p.Rev},
		} {
			_, err := grant.Apply(w.head(), c, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: grant.TimeOf(w.clock.Now())}})
			if !codeIs(err, grant.CodeLandingRuns) || !strings.Contains(err.Error(), "deploy") {
				t.Errorf("%s: %v", c.Op(), err)
			}
		}
		return 0, nil
	})
	w.must(err)
	if !ran || end.Receipt == nil || end.Receipt.Seq != 2 || !end.Receipt.Fenced || end.Receipt.Note != "deploy" {
		t.Errorf("%+v", end)
	}
	m, err := w.reg.Manifest(ctx, end.Receipt.Manifest)
	w.must(err)
	if m.Ran == nil || m.Ran.ID != end.Receipt.ID || len(m.Ran.Args) != 3 || m.Ran.Args[2] != `\x1b[31m` || m.Ran.Ended.Sub(m.Ran.Started) != 30*time.Hour {
		t.Errorf("%+v", m.Ran)
	}
	if got := w.cat("", "x"); got != "1" {
		t.Errorf("the content after it: %q", got)
	}
	w.must(a.release()) // it has landed
	w.verify()
}

func TestFencedCommandFails(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	end, err := a.fenced([]string{"false"}, func() (int, error) { return 3, nil })
	w.must(err)
	if p := w.page(); end.Exit != 3 || end.Receipt != nil || p.Running != nil || p.Register.Seq != 0 || p.Note != "exit code 3" || len(p.Doubts) != 0 {
		t.Errorf("%+v, page %+v", end, p)
	}
	gone := errors.New("no such command")
	if _, err = a.fenced([]string{"gone"}, func() (int, error) { return 0, gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
	if p := w.page(); p.Running != nil || p.Note != "it could not be started" || len(p.Doubts) != 0 {
		t.Errorf("%+v", p)
	}
	if err := a.release(); !codeIs(err, grant.CodeNotPushed) {
		t.Errorf("a command that failed counts as a landing: %v", err)
	}
	w.verify()
}

// What could only be refused when the command has run is refused before.
func TestFencedCommandIsRefusedFirst(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	never := func() (int, error) { t.Error("it ran"); return 0, nil }
	f, err := w.store.Fence(context.Background(), box)
	w.must(err)
	_, err = w.reg.RunFenced(f.Context(), Fenced{
		Begin: grant.Begin{Meta: w.meta(grant.Agent("a")), Session: a.s}, Args: []string{"x"}, Finish: w.nonce(), IDs: []grant.Range{{Lo: 4, Hi: 4}},
	}, never)
	if !codeIs(err, grant.CodeBadIDs) {
		t.Error(err)
	}
	w.must(f.Release())
	if _, err := w.reg.RunFenced(context.Background(), Fenced{
		Begin: grant.Begin{Meta: w.meta(grant.Agent("a")), Session: a.s}, Args: []string{"x"}, Finish: w.nonce(),
	}, never); err == nil {
		t.Error("without the kernel lock")
	}
	w.clock.advance(5 * time.Hour)
	if _, err := a.fenced([]string{"x"}, never); !codeIs(err, grant.CodeExpired) {
		t.Error(err)
	}
	if list, err := w.reg.Kept(context.Background(), true); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// A wrapper that dies leaves a command of which nobody knows: the next lead is told, and settles it.
func TestFencedCommandInDoubt(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("a")
	died := errors.New("killed")
	func() {
		defer func() { _ = recover() }()
		_, _ = a.fenced([]string{"push"}, func() (int, error) { panic(died) })
	}()
	doubts, running, err := w.reg.Doubts(ctx)
	w.must(err)
	if len(doubts) != 0 || running == nil {
		t.Fatalf("%v, %v", doubts, running)
	}
	w.clock.advance(5 * time.Hour)
	b := w.acquire("b")
	if doubts, running, err = w.reg.Doubts(ctx); err != nil || len(doubts) != 1 || running != nil || doubts[0].Command != "push" || doubts[0].Grant != 1 {
		t.Fatalf("%v, %v, %v", doubts, running, err)
	}
	if _, err := b.fenced([]string{"push"}, func() (int, error) { return 0, nil }); !codeIs(err, grant.CodeInDoubt) || !strings.Contains(err.Error(), "--resolve") {
		t.Error(err)
	}
	resolve := grant.Resolve{Meta: w.meta(grant.Agent("b")), Session: b.s, ID: doubts[0].ID, Done: true}
	if err := w.do(resolve); !codeIs(err, grant.CodeReasonRequired) {
		t.Error(err)
	}
	resolve.Reason = "the remote has it"
	w.must(w.do(resolve))
	if _, err := b.fenced([]string{"push"}, func() (int, error) { return 0, nil }); err != nil {
		t.Error(err)
	}
	w.must(b.release())
	w.verify()
}

// An end that cannot be recorded is told as such.
func TestFencedCommandUnrecorded(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("a")
	var un *UnrecordedError
	_, err := a.fenced([]string{"push"}, func() (int, error) {
		// Somebody with a hand in the store.
		p := w.page()
		w.must(w.store.Swap(context.Background(), w.head().Ref(), mustApply(t, w.head(), grant.Finish{
			Meta: w.meta(grant.Agent("a")), Session: a.s, ID: p.Running.ID,
		}, w)))
		return 0, nil
	})
	if !errors.As(err, &un) || un.Exit != 0 || !codeIs(err, grant.CodeNotRunning) || !strings.Contains(err.Error(), "--resolve done") {
		t.Error(err)
	}
}

func mustApply(t *testing.T, head grant.Revision, c grant.Command, w *world) grant.Revision {
	t.Helper()
	next, err := grant.Apply(head, c, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: grant.TimeOf(w.clock.Now())}})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestCutBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdef", 5, "ab..."}, {"äöü", 5, "ä..."}, {"äöü", 4, "..."}, {"abcdef", 2, ".."}, {"abc", 0, ""}} {
		if got := cutBytes(c.in, c.n); got != c.want {
			t.Errorf("%q at %d: %q", c.in, c.n, got)
		}
	}
}
