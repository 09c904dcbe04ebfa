package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/seam"
)

// What a command under a grant finds in its environment.
const (
	agentVariable     = "STILE_AGENT"
	operatorVariable  = "STILE_OPERATOR"
	sessionVariable   = "STILE_SESSION_FILE"
	grantVariable     = "STILE_GRANT"
	containerVariable = "STILE_CONTAINER"
)

// grantSeams is nil but in tests and in the demo, which bring a clock of their own.
var grantSeams *seam.Set

func grantVerb() verb {
	v := verb{
		name:     "grant",
		brief:    "hours of work on a container, one lead at a time",
		synopsis: "VERB [flags] NAME …",
		detail: `A container is work that one agent leads at a time, under a grant with a number that
rises and never comes back. A grant lasts while it is extended, a day at most; what
it makes lands in the container's register, and nothing lands once it has ended.
Who has to wait has a place in the queue. 'stile init' makes the estate that the
containers are kept in.

Who acts is named by --agent or STILE_AGENT, an operator by --operator or
STILE_OPERATOR; nobody is guessed. Each refusal says why, who holds and what to do,
and changes nothing.`,
		examples: `stile grant create atlas --agent ada
stile grant run atlas --agent ada -- ./survey.sh
stile grant petition atlas --agent bob; stile grant acquire atlas --agent bob
stile grant land atlas map.svg --agent bob --note 'north half'; stile grant release atlas --agent bob`,
		operands: "create status history petition withdraw acquire heartbeat land release ids block run clear restore",
		subs: func() []verb {
			return []verb{
				grantCreateVerb(), grantStatusVerb(), grantHistoryVerb(), grantPetitionVerb(), grantWithdrawVerb(),
				grantAcquireVerb(), grantHeartbeatVerb(), grantLandVerb(), grantReleaseVerb(), grantIDsVerb(),
				grantBlockVerb(), grantRunVerb(), grantClearVerb(), grantRestoreVerb(),
			}
		},
	}
	v.options = func() []option { return groupFlags(v.subs()) }
	return v
}

// grantFlags are the flags of the grant verbs. Not every verb has all.
type grantFlags struct {
	estate, agent, operator, id, session string
	json                                 bool

	name string // of the container
	bad  error  // of a flag's value, told when it is known which container it is for
}

// later keeps the first refusal of a value until all flags are read.
func (f *grantFlags) later(err error) error {
	var r *grant.Refusal
	if !errors.As(err, &r) {
		return err
	}
	if f.bad == nil {
		f.bad = err
	}
	return nil
}

func nonEmpty(names, arg, help string, p *string) option {
	return option{names: names, arg: arg, help: help, set: func(v string) error {
		if v == "" {
			return usagef("--%s needs a value (%s)", names, arg)
		}
		*p = v
		return nil
	}}
}

func (f *grantFlags) base() []option {
	return []option{estateOption(&f.estate), jsonOption(&f.json)}
}

func (f *grantFlags) idOption() option {
	return nonEmpty("id", "ID", "the command's own id: repeated with it, the first result is given again", &f.id)
}

// agents are the flags of what an agent does.
func (f *grantFlags) agents() []option {
	return append([]option{nonEmpty("agent", "NAME", "who acts; else $STILE_AGENT", &f.agent), f.idOption()}, f.base()...)
}

// holders are those of what a session does.
func (f *grantFlags) holders() []option {
	return append([]option{nonEmpty("session", "FILE", "the session's file; else $STILE_SESSION_FILE, else the agent's", &f.session)}, f.agents()...)
}

func (f *grantFlags) operators() []option {
	return append([]option{nonEmpty("operator", "NAME", "who acts; else $STILE_OPERATOR", &f.operator), f.idOption()}, f.base()...)
}

// nobody is the name that records have where none was given: two who share it would be one.
const nobody = "unknown"

// who names the agent. It is given, never guessed; LOOPX_AGENT_ID and user names are no names for a grant.
func (f *grantFlags) who() (string, error) {
	name := f.agent
	if name == "" {
		name = os.Getenv(agentVariable)
	}
	if name == "" || name == nobody {
		return "", usageHint("--agent NAME, or STILE_AGENT for all commands", "no agent was named, and for grants none is guessed")
	}
	return name, grant.CheckName(name)
}

func (f *grantFlags) whoOperates() (string, error) {
	name := f.operator
	if name == "" {
		name = os.Getenv(operatorVariable)
	}
	if name == "" || name == nobody {
		return "", usageHint("--operator NAME, or STILE_OPERATOR: it stands in the history", "no operator was named")
	}
	return name, grant.CheckName(name)
}

// sessionPath is the session that was named; empty: the agent's own is looked for. An agent that is named by its
// flag is not the one whose session the environment has, or finds that by its name.
func (f *grantFlags) sessionPath() string {
	if f.session != "" || f.agent != "" {
		return f.session
	}
	return os.Getenv(sessionVariable)
}

// open finds the estate and opens its containers.
func (f *grantFlags) open() (*session.Client, error) {
	if server := os.Getenv(serverVariable); server != "" && f.estate == "" {
		return openServer(server, f.json)
	}
	e, err := estate.Open(estateOptions(f.estate, ""))
	if err != nil {
		return nil, err
	}
	path := e.Path
	if err := e.Close(); err != nil {
		return nil, err
	}
	return openContainers(path, f.json)
}

// openContainers opens those of an estate.
func openContainers(path string, quiet bool) (*session.Client, error) {
	store, err := local.Open(path, local.Options{Log: slog.New(&warnings{quiet: quiet}), Seams: grantSeams})
	if err != nil {
		return nil, err
	}
	return &session.Client{Store: store}, nil
}

// warnings shows what failed and does not matter to the result.
type warnings struct{ quiet bool }

func (w *warnings) Enabled(context.Context, slog.Level) bool { return !w.quiet }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.String()
		}
		return true
	})
	printFailure(os.Stderr, "warning: "+text, "")
	return nil
}

// asAgent runs a command of an agent's.
func (f *grantFlags) asAgent(work func(ctx context.Context, c *session.Client) error) int {
	return f.in(func(ctx context.Context, c *session.Client) (err error) {
		if c.Agent, err = f.who(); err != nil {
			return err
		}
		return work(ctx, c)
	})
}

// asHolder runs a command of a session's: who acts stands in its file if one is named.
func (f *grantFlags) asHolder(name string, op grant.Op, work func(ctx context.Context, c *session.Client, x *local.Session) error) int {
	return f.in(func(ctx context.Context, c *session.Client) (err error) {
		if err := f.holder(c); err != nil {
			return err
		}
		x, _, err := c.Find(ctx, op, name, f.sessionPath())
		if err != nil {
			return err
		}
		return work(ctx, c, x)
	})
}

// holder names the agent, unless a session's file does and no flag.
func (f *grantFlags) holder(c *session.Client) (err error) {
	c.Agent, err = f.who()
	if err != nil && f.agent == "" && f.sessionPath() != "" && os.Getenv(agentVariable) == "" {
		return nil
	}
	return err
}

// in runs work on the estate's containers, and reports what goes wrong.
func (f *grantFlags) in(work func(ctx context.Context, c *session.Client) error) int {
	c, err := f.open()
	if err == nil {
		err = waiting(func(ctx context.Context) error { return work(ctx, c) })
	}
	var code *exitCode
	switch {
	case errors.As(err, &code):
		return code.n
	case err != nil:
		return f.fail(err)
	}
	return 0
}

// parse reads flags and the container's name, which is the first operand.
func (f *grantFlags) parse(args []string, options []option, more int, form string) (name string, rest []string, err error) {
	p, err := parse(args, options, false)
	if err != nil {
		f.json = f.json || wantsJSON(args)
		return "", nil, err
	}
	switch {
	case len(p.operands) == 0 || p.operands[0] == "":
		return "", nil, usageHint("stile grant "+form, "no container was named")
	case more >= 0 && len(p.operands) > 1+more:
		return "", nil, usageHint("stile grant "+form, "there is an operand too many: %q", p.operands[1+more])
	}
	if err := grant.CheckName(p.operands[0]); err != nil {
		return "", nil, err
	}
	f.name = p.operands[0]
	return f.name, p.operands[1:], f.bad
}

// parseSpan reads a duration: seconds, or with a unit (90s, 30m, 4h, 7d).
func parseSpan(what, v string) (time.Duration, error) {
	bad := &grant.Refusal{Code: grant.CodeBadInput, Cause: fmt.Sprintf("%s is no duration: %q", what, display.Text(cut(v, 40))),
		Next: "grant --help", Hint: "seconds, or with a unit: 90, 30m, 4h, 7d"}
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		d, err = time.ParseDuration(v + "s")
	}
	if err != nil || d < 0 {
		return 0, bad
	}
	return d, nil
}

func (f *grantFlags) spanOption(names, what, help string, p *time.Duration) option {
	return option{names: names, arg: "DUR", help: help, set: func(v string) (err error) {
		*p, err = parseSpan(what, v)
		return f.later(err)
	}}
}

func (f *grantFlags) numberOption(names, arg, what, help string, p *int64) option {
	return option{names: names, arg: arg, help: help, set: func(v string) (err error) {
		*p, err = parseNumber(what, v)
		return f.later(err)
	}}
}

// parseNumber reads what must be a whole number. Which ones can be is for the machine to say.
func parseNumber(what, v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, &grant.Refusal{Code: grant.CodeBadInput, Cause: fmt.Sprintf("%s is no number that can be: %q", what, display.Text(cut(v, 40))),
			Next: "grant --help", Hint: "numbers are whole, and below 2^53"}
	}
	return n, nil
}
