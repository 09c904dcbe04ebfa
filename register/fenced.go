package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// Fenced is a command that is to run where no grant can begin or end under it, and whose success is a landing.
type Fenced struct {
	// Begin says who, on which base. Its Command is made here. Its nonce is the landing's id.
	Begin grant.Begin
	Args  []string // the command
	// IDs, Keep and Note are the landing's.
	IDs  []grant.Range
	Keep []int64
	Note string
	// Finish is the nonce of the record of the end.
	Finish string
}

// Ended is how a fenced command ended.
type Ended struct {
	Exit    int
	Receipt *Receipt // of the landing; nil when the command failed
}

// UnrecordedError says that a fenced command has ended, and its end could not be recorded. To all others it is in
// doubt, until the lead settles it.
type UnrecordedError struct {
	Container string
	ID        string // of the command
	Exit      int
	Err       error
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("the command has ended with exit code %d, and that could not be recorded: %v; next: stile grant land %s --resolve %s --reason WHY",
		e.Exit, e.Err, quoted(e.Container), map[bool]string{true: "done", false: "undone"}[e.Exit == 0])
}

// Unwrap gives what recording it said.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// RunFenced records that a command begins, runs it, and records how it ended: exit code 0 is a landing, any other
// is a failure, which lands nothing. The caller holds the container's kernel lock, which the command inherits, and
// ctx says so (local.Store.WithFence): so nobody's grant begins or ends until both have ended, whichever of
// them is killed. An end that nobody records is in doubt (grant.Resolve).
//
// An error of run, which is that it could not be started, is recorded as a failure, too.
func (r *Register) RunFenced(ctx context.Context, f Fenced, run func() (exit int, err error)) (Ended, error) {
	f.Begin.Command = commandText(f.Args)
	if err := r.wouldLand(ctx, f); err != nil {
		return Ended{}, err
	}
	began, _, err := r.do(ctx, grant.Request{Command: f.Begin})
	if err != nil {
		return Ended{}, err
	}
	exit, failed := run()
	if failed != nil {
		exit = -1
	}
	// What comes now says what has happened: a caller who is told to end does not keep it from being recorded.
	done, err := r.finish(context.WithoutCancel(ctx), f, began.Page().Running, exit)
	switch {
	case err != nil && failed == nil:
		return Ended{Exit: exit}, &UnrecordedError{r.container, f.Begin.Nonce, exit, err}
	case err != nil || failed != nil:
		return Ended{Exit: exit}, errors.Join(failed, err)
	}
	return done, nil
}

// wouldLand refuses before the command runs what could only be refused after it: ids that are not the grant's.
func (r *Register) wouldLand(ctx context.Context, f Fenced) error {
	head, err := r.store.Head(ctx, r.container)
	if err != nil {
		return err
	}
	p := head.Page()
	if p.Running != nil {
		return nil // Begin settles that first
	}
	_, err = grant.Apply(head, grant.Land{
		Meta: f.Begin.Meta, Session: f.Begin.Session, Base: f.Begin.Base, Manifest: grant.Digest(strings.Repeat("0", 64)), IDs: f.IDs, Keep: f.Keep, Note: f.Note,
	}, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: max(r.now(ctx), p.Stamp.T)}, FenceHeld: true})
	var refusal *grant.Refusal
	if errors.As(err, &refusal) {
		refusal.Op = grant.OpBegin // there is nothing to keep
	}
	return err
}

func (r *Register) finish(ctx context.Context, f Fenced, running *grant.Running, exit int) (Ended, error) {
	end := grant.Finish{Meta: f.Begin.Meta, Session: f.Begin.Session, ID: f.Begin.Nonce}
	end.Nonce = f.Finish
	if exit != 0 {
		end.Note = fmt.Sprintf("exit code %d", exit)
		if exit < 0 {
			end.Note = "it could not be started"
		}
		_, _, err := r.do(ctx, grant.Request{Command: end})
		return Ended{Exit: exit}, err
	}
	done := Ended{}
	err := r.guarded(ctx, func() error {
		content, err := r.contentOf(ctx, f.Begin.Base)
		if err != nil {
			return err
		}
		m := &Manifest{V: 1, Content: content, Entries: []Entry{}, Ran: &Ran{
			Args: shownArgs(f.Args), ID: f.Begin.Nonce, Started: running.Started, Ended: max(r.now(ctx), running.Started),
		}}
		if end.Manifest, err = putManifest(m, &single{ctx, r}); err != nil {
			return err
		}
		end.Done, end.IDs, end.Keep, end.Note = true, f.IDs, f.Keep, f.Note
		rev, _, err := r.do(ctx, grant.Request{Command: end})
		if err == nil {
			done.Receipt = &Receipt{Landed: landedBy(rev), Tree: m}
		}
		return err
	})
	return done, err
}

// shownArgs is a command as a manifest has it: what cannot be shown is escaped.
func shownArgs(args []string) []string {
	list := slices.Clone(args)
	left := maxArgs
	for i, a := range list {
		list[i] = cutBytes(display.Text(a), left)
		left -= len(list[i])
	}
	return list
}

// commandText is a command as a page has it: one line.
func commandText(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quoted(a)
	}
	return cutBytes(display.Text(strings.Join(words, " ")), grant.MaxText)
}

// cutBytes cuts s to n bytes, between two characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	more := "..."[:min(max(n, 0), 3)]
	n -= len(more)
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + more
}

// Doubts are the fenced commands whose end nobody saw, and the one that runs, if any does.
func (r *Register) Doubts(ctx context.Context) ([]grant.Doubt, *grant.Running, error) {
	head, err := r.store.Head(ctx, r.container)
	if err != nil {
		return nil, nil, err
	}
	return head.Page().Doubts, head.Page().Running, nil
}
