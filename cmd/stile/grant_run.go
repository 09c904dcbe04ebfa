package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// How long a run waits for its turn.
const (
	grantWait    = 24 * time.Hour
	maxGrantWait = 7 * 24 * time.Hour
)

type grantRunFlags struct {
	grantFlags
	wait     time.Duration
	waitSet  bool
	nonblock bool
	argv     []string
}

func (f *grantRunFlags) options() []option {
	return []option{
		{names: "w,wait,timeout", arg: "DUR", help: "wait at most DUR for the turn (90, 30m, 4h; 7d at most) instead of 24h", set: func(v string) (err error) {
			f.waitSet = true
			if f.wait, err = parseSpan("the wait", v); err == nil && f.wait > maxGrantWait {
				return usagef("-w is at most 7d")
			}
			return err
		}},
		boolOption("n,nb,nonblock", "do not wait, and do not join the queue: exit 75 when it is not the agent's turn", &f.nonblock),
		nonEmpty("agent", "NAME", "who leads; else $STILE_AGENT", &f.agent),
		estateOption(&f.estate),
		boolOption("json", "say what happens as one JSON object a line on stderr", &f.json),
	}
}

func grantRunVerb() verb {
	return verb{
		name:     "grant run",
		brief:    "run a command under a grant",
		synopsis: "[flags] NAME -- COMMAND [ARG…]\n[flags] NAME COMMAND [ARG…]",
		detail: `Joins the queue, waits for the turn, acquires, and runs COMMAND while it extends the
grant. A grant that the agent holds already, as after a crash, is taken up again;
while a command of its run lives, that is refused. COMMAND finds STILE_GRANT,
STILE_CONTAINER, STILE_AGENT and STILE_SESSION_FILE in its environment, so that
'stile grant land' and the others need no more flags.

If COMMAND ends with 0 and something has landed meanwhile, the grant is released.
Otherwise it stays, to be ended by hand: the last line says how.

A grant that cannot be kept ends. That is told as soon as it is known; COMMAND and all
that it has started are asked to end (SIGTERM) and then killed, before the grant ends
where that is possible. What counts is that nothing lands after that.

On a terminal, the line while waiting says who holds, until when, and at which place
the agent is. When the wait runs out or is interrupted, a petition that this run made
is withdrawn; one that was there before keeps its place.

Exit code: COMMAND's own, or 128+n when signal n ended it; 76 when the grant was lost;
else 64 usage, 65 the estate or the container is not what it should be, 66 there is
none, 69 no such command, 71 out of resources, 73 no space, 74 other errors, 75 not
this agent's turn in time, 77 permission.`,
		examples: `stile grant run atlas --agent ada -- ./survey.sh
stile grant run -w 2h atlas --agent ada -- sh -c './survey.sh && stile grant land atlas map.svg'
stile grant run -n atlas --agent ada -- ./survey.sh   # not now: exit 75`,
		options: func() []option { return new(grantRunFlags).options() },
		run:     cmdGrantRun,
	}
}

func cmdGrantRun(args []string) int {
	f := &grantRunFlags{wait: grantWait}
	return f.ended(carryOut(f.parse(args), f.run))
}

func (f *grantRunFlags) parse(args []string) error {
	// The flags may stand before the name and after it, up to the command.
	const form = "stile grant run NAME -- COMMAND"
	p, err := parse(args, f.options(), true)
	if err != nil {
		f.json = f.json || wantsJSON(args)
		return err
	}
	if len(p.operands) == 0 || p.operands[0] == "" || p.operands[0] == "--" {
		return usageHint(form, "no container was named")
	}
	f.name = p.operands[0]
	if err := grant.CheckName(f.name); err != nil {
		f.name = ""
		return err
	}
	rest := p.operands[1:]
	if at := slices.Index(rest, "--"); at >= 0 {
		between, err := parse(rest[:at], f.options(), true)
		if err != nil {
			f.json = f.json || wantsJSON(rest[:at])
			return err
		}
		if len(between.operands) > 0 {
			return usageHint(form, "between NAME and -- there is an operand too many: %q", between.operands[0])
		}
		rest = rest[at+1:]
	} else {
		after, err := parse(rest, f.options(), true)
		if err != nil {
			f.json = f.json || wantsJSON(rest)
			return err
		}
		rest = after.operands
	}
	if f.argv = rest; len(rest) == 0 || rest[0] == "" {
		return usageHint(form, "no command was given")
	}
	if f.nonblock && f.waitSet {
		return usagef("-n does not wait, so it takes no -w")
	}
	return nil
}

// grantRun is one run under way.
type grantRun struct {
	*grantRunFlags
	client  *session.Client
	signals *signalSet
	path    string         // of the command
	lock    *kernlock.Lock // on the session: one command at a time

	mu      sync.Mutex
	waiting session.Waiting // what the line on the terminal says
	told    string
}

func (f *grantRunFlags) run() (int, error) {
	g := &grantRun{grantRunFlags: f, signals: catchSignals()}
	var err error
	if g.path, err = findCommand(f.argv[0]); err != nil {
		return 0, err
	}
	agent, err := f.who()
	if err != nil {
		return 0, err
	}
	if g.client, err = f.open(); err != nil {
		return 0, err
	}
	g.client.Agent = agent
	defer g.vacate()
	x, r, err := g.client.Resume(context.Background(), f.name, g.occupy)
	resumed := x != nil
	if err == nil && !resumed {
		g.vacate() // of one that had just ended
		x, r, err = g.acquire()
		var own *grant.Refusal
		switch {
		case err == nil:
			err = g.occupy(x, r.Revision)
		case errors.As(err, &own) && own.Code == grant.CodeHeld && own.Holder != nil && own.Holder.Agent == agent:
			// It has come to hold it just now: by another run, which is then named.
			y, again, rerr := g.client.Resume(context.Background(), f.name, g.occupy)
			if resumed = y != nil; resumed || rerr != nil {
				x, r, err = y, again, rerr
			}
		}
	}
	if err != nil {
		return 0, err
	}
	p := r.Revision.Page()
	if resumed {
		g.event("resumed", p, nil, "grant %d on %s is taken up again, until %s", p.Grant, f.name, clock(p.Expiry.Std()))
	} else {
		g.event("acquired", p, nil, "grant %d on %s until %s", p.Grant, f.name, clock(p.Expiry.Std()))
	}
	return g.hold(x, r.Revision)
}

// occupy makes the command the only one under its session: a grant can be taken up again, and the command of an
// earlier run may have outlived that. The command inherits the lock, so that it tells of itself.
func (g *grantRun) occupy(x *local.Session, head grant.Revision) error {
	h, err := kernlock.Open(x.RunTarget(), kernlock.Options{Agent: x.Agent, Operation: "grant_run"})
	if err != nil {
		return err
	}
	lock, other, err := h.TryAcquire()
	if err == nil && lock == nil {
		who := "its process is not known"
		if other.Holder != nil && other.HolderState == kernlock.Current {
			who = fmt.Sprintf("process %d on %s", other.Holder.PID, other.Holder.Host)
		}
		err = session.Refuse(head, grant.OpAcquire, grant.CodeHeld,
			fmt.Sprintf("a command runs under %s's grant %d already, begun by 'stile grant run' (%s)", x.Agent, x.Grant, who), "grant status "+g.name,
			"wait until it has ended; 'stile status "+display.ShellWord(x.RunTarget())+"' shows what there is of it")
	}
	if err != nil {
		return errors.Join(err, h.Close())
	}
	g.lock = lock
	// Where locks are not inherited, the command ends with this process.
	if err := lock.Inherit(); err != nil && !errors.Is(err, kernlock.ErrUnsupported) {
		return err
	}
	return nil
}

// vacate lets go of what occupy took. What that says of a process left behind is for the next one to hear.
func (g *grantRun) vacate() {
	if g.lock != nil {
		_ = g.lock.Release()
		g.lock = nil
	}
}

// acquire waits for the turn. A signal ends the wait.
func (g *grantRun) acquire() (*local.Session, session.Result, error) {
	wc := newWaitContext(g.signals, func() *waitLine {
		if g.json || g.nonblock || !stderrIsTerminal() {
			return nil
		}
		return newWaitLine(g.line)
	})
	var x *local.Session
	var r session.Result
	var err error
	if g.nonblock {
		x, r, err = g.client.Acquire(wc, g.name, "")
	} else {
		x, r, err = g.client.Await(wc, g.name, g.wait, g.tell)
	}
	n := wc.end()
	switch {
	case n != 0 && err != nil:
		return nil, r, &endedBySignal{n}
	case n != 0:
		g.stays(r.Revision) // it came in the moment that the grant began
		return nil, r, &endedBySignal{n}
	case errors.Is(err, context.DeadlineExceeded):
		var why *grant.Refusal
		if errors.As(err, &why) {
			err = why
		}
	}
	return x, r, err
}

// tell keeps what a waiter is told, and says it once where there is no line that can be rewritten.
func (g *grantRun) tell(w session.Waiting) {
	g.mu.Lock()
	g.waiting = w
	p := w.Head.Page()
	key := fmt.Sprint(w.Turn.Place, p.Grant, p.State, p.Expiry <= w.Now)
	said := key == g.told
	g.told = key
	g.mu.Unlock()
	if said {
		return
	}
	if g.json {
		name := "waiting"
		if w.Petitioned {
			name = "petitioned"
		}
		g.emit(&runEvent{Event: name, Turn: turnOf(&w.Turn)}, p)
	} else if !stderrIsTerminal() {
		fmt.Fprintln(os.Stderr, waitingText(g.name, &w))
	}
}

func (g *grantRun) line() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.Head.Page() == nil {
		return "stile: waiting for " + display.Text(g.name)
	}
	return waitingText(g.name, &g.waiting)
}

// waitingText says at which place, behind whom and until when.
func waitingText(name string, w *session.Waiting) string {
	p := w.Head.Page()
	text := "stile: waiting for " + display.Text(name)
	if w.Turn.Petition != 0 {
		text += fmt.Sprintf(", place %d of %d", w.Turn.Place, len(p.Queue))
	}
	switch {
	case p.State == grant.StateHeld && w.Now < p.Expiry:
		text += fmt.Sprintf(", grant %d of %s until %s", p.Grant, display.Text(p.Holder.Agent), clock(p.Expiry.Std()))
	case p.State == grant.StateHeld:
		text += fmt.Sprintf(", %s is silent since %s", display.Text(p.Holder.Agent), clock(p.Expiry.Std()))
	}
	if w.Turn.Open && w.Turn.From > w.Now {
		text += ", turn at " + w.Turn.From.Std().Local().Format("15:04:05")
	}
	if w.Refusal != nil && w.Refusal.Code == grant.CodeLandingRuns {
		text += ", a fenced command runs"
	}
	return text
}

// environment is the command's: all that it needs to act under the grant, and no secret.
func (g *grantRun) environment(x *local.Session) []string {
	env := os.Environ()
	for _, v := range [][2]string{
		{grantVariable, fmt.Sprint(x.Grant)}, {containerVariable, g.name}, {agentVariable, x.Agent}, {sessionVariable, x.Path},
	} {
		env = dropEarlier(append(env, v[0]+"="+v[1]), v[0])
	}
	return env
}

// runEvent is the JSON of what happens in a run, one on a line.
type runEvent struct {
	Event     string       `json:"event"`
	Container string       `json:"container"`
	Grant     int64        `json:"grant"`
	Holder    *holderJSON  `json:"holder"`
	Expiry    grant.Time   `json:"expiry"`
	Turn      *turnJSON    `json:"turn,omitempty"`
	Error     *errorObject `json:"error,omitempty"`
	Next      []string     `json:"next,omitempty"`
}

func (g *grantRun) emit(e *runEvent, p *grant.Page) {
	e.Container = display.Text(g.name)
	if p != nil {
		e.Grant, e.Holder, e.Expiry = p.Grant, holderOf(p.Holder), p.Expiry
	}
	printJSON(os.Stderr, e)
}

// event tells what happened, in words or as JSON.
func (g *grantRun) event(name string, p *grant.Page, err error, format string, args ...any) {
	if !g.json {
		printFailure(os.Stderr, fmt.Sprintf(format, args...), "")
		return
	}
	e := &runEvent{Event: name}
	if err != nil {
		e.Error = g.errorObject(g.classify(err))
	}
	g.emit(e, p)
}

// stays says, as the last line, how a grant that goes on is ended.
func (g *grantRun) stays(head grant.Revision) {
	p := head.Page()
	land := g.flagged("stile grant land " + shown(g.name) + " FILE…")
	release := g.flagged("stile grant release " + shown(g.name))
	next := []string{land, release}
	if p.Landing != nil {
		next = next[1:]
	}
	if g.json {
		g.emit(&runEvent{Event: "kept", Next: next}, p)
		return
	}
	how := "'" + land + "' or --empty REASON, then '" + release + "'"
	if p.Landing != nil {
		how = "'" + release + "'"
	}
	printFailure(os.Stderr, fmt.Sprintf("grant %d on %s stays with %s until %s; to end it: %s", p.Grant, g.name, p.Holder.Agent, clock(p.Expiry.Std()), how), "")
}
