package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/register"
)

// runFenced is land with a command: it speaks as the verbs do that run one.
func (f *grantLandFlags) runFenced(name string, files []string, parsed error) int {
	return f.ended(carryOut(f.fencedArgs(files, parsed), func() (int, error) { return f.fenced(name) }))
}

// ended is the end of a verb that runs a command: such a verb tells its errors on stderr, as JSON too.
func (f *grantFlags) ended(code int, err error) int {
	if err == nil {
		return code
	}
	fl := f.classify(err)
	if f.json {
		printJSON(os.Stderr, f.errorObject(fl))
	} else {
		f.print(os.Stderr, fl)
	}
	return fl.exit
}

func (f *grantLandFlags) fencedArgs(files []string, parsed error) error {
	const form = "stile grant land NAME [flags] -- COMMAND"
	switch {
	case parsed != nil:
		return parsed
	case len(f.argv) == 0 || f.argv[0] == "":
		return usageHint(form, "no command was given")
	case len(files) > 0:
		return usageHint(form, "between NAME and -- there is an operand too many: %q", files[0])
	case f.dir != "" || f.empty != "" || f.manifest != "" || f.resolve != "" || f.links:
		return usageHint(form, "a command lands by itself: no --dir, --empty, --manifest or --resolve with it")
	}
	return nil
}

// fenceWait is how long a fenced command waits for another to end.
const fenceWait = 5 * time.Second

func (f *grantLandFlags) fenced(name string) (int, error) {
	signals := catchSignals()
	path, err := findCommand(f.argv[0])
	if err != nil {
		return 0, err
	}
	c, err := f.open()
	if err == nil {
		err = f.holder(c)
	}
	if err != nil {
		return 0, err
	}
	store, err := f.onTheEstate(c, "a fenced command's lock is its machine's kernel's, and the command inherits it",
		"stile grant land "+display.ShellWord(name)+" -- COMMAND, where the estate is; or here 'stile grant run', and then land what the command has made")
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	x, head, err := c.Find(ctx, grant.OpBegin, name, f.sessionPath())
	if err != nil {
		return 0, err
	}
	lock, err := f.fence(store, name, x.Agent, signals)
	if err != nil {
		return 0, err
	}
	code, err := f.underFence(ctx, store, lock, x, head, path, signals)
	f.letGo(lock)
	return code, err
}

// fence takes the container's kernel lock, for the command to inherit.
func (f *grantLandFlags) fence(store *local.Store, name, agent string, signals *signalSet) (*kernlock.Lock, error) {
	target, err := store.FenceTarget(name)
	if err != nil {
		return nil, err
	}
	wait := f.wait
	if wait == 0 {
		wait = fenceWait
	}
	h, err := kernlock.Open(target, kernlock.Options{Agent: agent, Operation: "land", Timeout: wait})
	if err != nil {
		return nil, err
	}
	wc := newWaitContext(signals, func() *waitLine { return nil })
	lock, err := h.Acquire(wc)
	if n := wc.end(); n != 0 {
		if lock != nil {
			_ = lock.Release()
		}
		return nil, &endedBySignal{n}
	}
	if errors.Is(err, kernlock.ErrTimeout) {
		err = fmt.Errorf("%w: something runs under the fence of container %s: %w", grant.CodeLandingRuns, display.Text(name), err)
	}
	if err != nil {
		return nil, err
	}
	if err := lock.Inherit(); err != nil && !errors.Is(err, kernlock.ErrUnsupported) {
		return nil, errors.Join(fmt.Errorf("let the command inherit the fence: %w", err), lock.Release())
	}
	return lock, nil
}

func (f *grantLandFlags) underFence(ctx context.Context, store *local.Store, lock *kernlock.Lock, x *local.Session, head grant.Revision, path string, signals *signalSet) (int, error) {
	ctx, err := store.WithFence(ctx, x.Container)
	if err != nil {
		return 0, err
	}
	meta := grant.Meta{Container: x.Container, Nonce: session.Nonce(f.id), By: grant.Agent(x.Agent)}
	base := head.Page().Register.Head
	if f.base != nil {
		base = *f.base
	}
	env := append(os.Environ(), heldVariable+"="+strings.TrimPrefix(os.Getenv(heldVariable)+":"+lock.LockID(), ":"))
	signals.ready()
	if n := signals.pending(); n != 0 {
		return 0, &endedBySignal{n}
	}
	end, err := register.Of(store, x.Container).RunFenced(ctx, register.Fenced{
		Begin: grant.Begin{Meta: meta, Session: x.Proof(), Base: base}, Args: f.argv,
		IDs: f.ids, Keep: f.keep, Note: f.note, Finish: session.Nonce(""),
	}, func() (int, error) {
		return runCommand(path, f.argv, dropEarlier(env, heldVariable), signals)
	})
	if err != nil || end.Receipt == nil {
		return end.Exit, err
	}
	l := shownLanding(end.Receipt.Landed)
	if f.json {
		return 0, printJSONTo(os.Stderr, map[string]any{"container": display.Text(x.Container), "landing": l})
	}
	fmt.Fprintf(os.Stderr, "stile: %s: landed the command as number %d of the register, head %s\n", display.Text(x.Container), l.Seq, shortDigest(l.Head))
	return 0, nil
}

// letGo ends our part of the fence, and says what the command left behind that still has it.
func (f *grantLandFlags) letGo(lock *kernlock.Lock) {
	err := lock.Release()
	if err == nil || errors.Is(err, kernlock.ErrLost) {
		return
	}
	hint := ""
	if errors.Is(err, kernlock.ErrStillHeld) {
		hint = "no grant begins or ends here until that has ended"
	}
	if f.json {
		printJSON(os.Stderr, &errorObject{Code: "still_held", Message: display.Text(err.Error()), Hint: hint})
		return
	}
	printFailure(os.Stderr, err.Error(), hint)
}

// settle says what became of a fenced command in doubt.
func (f *grantLandFlags) settle(ctx context.Context, c *session.Client, name string) error {
	x, _, err := c.Find(ctx, grant.OpResolve, name, f.sessionPath())
	if err != nil {
		return err
	}
	doubts, running, err := register.Of(c.Store, name).Doubts(ctx)
	if err != nil {
		return err
	}
	if store, ok := c.Store.(*local.Store); ok && running != nil {
		// It may have ended unseen: then nobody holds the fence.
		fence, err := store.Fence(ctx, name)
		if err != nil {
			return err
		}
		defer fence.Release() //nolint:errcheck // it ends with the process
		ctx = fence.Context()
		doubts = append(doubts, grant.Doubt{ID: running.ID, Command: running.Command, Started: running.Started})
	}
	of := f.of
	switch {
	case of == "" && len(doubts) == 1:
		of = doubts[0].ID
	case of == "" && len(doubts) > 1:
		return usageHint("--of ID, as 'stile grant status "+shown(name)+"' shows them", "%d commands are in doubt", len(doubts))
	case of == "":
		return usagef("no command is in doubt")
	}
	r, err := c.Resolve(ctx, x, f.id, of, f.resolve == "done", f.reason)
	if err != nil {
		return err
	}
	return f.done(ctx, c, r, nil)
}
