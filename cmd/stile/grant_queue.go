package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/estate"
)

type grantCreateFlags struct {
	grantFlags
	extension, window, cap, idle *time.Duration // nil: not given
}

func (f *grantCreateFlags) options() []option {
	span := func(names, what, help string, p **time.Duration) option {
		var d time.Duration
		o := f.spanOption(names, what, help, &d)
		set := o.set
		o.set = func(v string) error {
			*p = &d
			return set(v)
		}
		return o
	}
	return append([]option{
		span("extension", "the extension", "how far a heartbeat extends a grant: 4h", &f.extension),
		span("cap", "the cap", "a grant's longest life: 24h, and never more", &f.cap),
		span("window", "the window", "how long the queue's head has to acquire: 30m", &f.window),
		span("idle", "the idle time", "a petition ends when its agent is not heard of for so long: 7d", &f.idle),
		nonEmpty("operator", "NAME", "an operator makes it; else $STILE_OPERATOR, unless --agent is given", &f.operator),
	}, f.agents()...)
}

func grantCreateVerb() verb {
	return verb{
		name:     "grant create",
		brief:    "make a container",
		synopsis: "NAME [flags]",
		detail: `Makes a container: nobody holds it, and nothing has landed. Its times are fixed from
then on. A name is one folder's on every system.

Exit code: 0; 1 usage, or it could not be made; 2 refused: nothing was changed.`,
		examples: `stile grant create atlas --operator olga
stile grant create atlas --agent ada --extension 1h --window 10m`,
		options: func() []option { return new(grantCreateFlags).options() },
		run:     cmdGrantCreate,
	}
}

func cmdGrantCreate(args []string) int {
	var f grantCreateFlags
	name, _, err := f.parse(args, f.options(), 0, "create NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) (err error) {
		if f.operator != "" || f.agent == "" && os.Getenv(operatorVariable) != "" {
			c.Operator, err = f.whoOperates()
		} else {
			c.Agent, err = f.who()
		}
		if err != nil {
			return err
		}
		if err := freshName(ctx, c, name); err != nil {
			return err
		}
		r, err := c.Create(ctx, name, f.id, f.params())
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, nil)
	})
}

func (f *grantCreateFlags) params() grant.Params {
	p := grant.DefaultParams()
	for _, s := range []struct {
		given *time.Duration
		to    *grant.Seconds
	}{{f.extension, &p.Extension}, {f.window, &p.Window}, {f.cap, &p.Cap}, {f.idle, &p.PetitionIdle}} {
		if s.given != nil {
			*s.to = grant.Seconds(*s.given / time.Second)
		}
	}
	if f.cap != nil && f.extension == nil {
		p.Extension = min(p.Extension, p.Cap)
	}
	return p
}

// freshName refuses a name that is not one folder's everywhere, or another's but for case.
func freshName(ctx context.Context, c *session.Client, name string) error {
	if err := estate.CheckName(name); err != nil {
		return err
	}
	there, err := c.Store.Containers(ctx)
	if err != nil {
		return err
	}
	for _, n := range there {
		if n != name && strings.EqualFold(n, name) {
			return &grant.Refusal{Code: grant.CodeBadInput, Op: grant.OpCreate, Container: name, Cause: fmt.Sprintf("%q is there, and differs in case only", n),
				Next: "grant status", Hint: "choose another name"}
		}
	}
	return nil
}

func grantPetitionVerb() verb {
	return verb{
		name:     "grant petition",
		brief:    "join a container's queue",
		synopsis: "NAME --agent AGENT [flags]",
		detail: `Joins the queue at its end, and says at which place. The place is kept when this
process ends: come back and ask with 'stile grant acquire'. Whose turn it is has the
container's window to acquire; who lets it pass goes behind the next one, and the
second time out of the queue.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant petition atlas --agent bob`,
		options:  func() []option { return new(grantFlags).agents() },
		run: func(args []string) int {
			return simpleGrant(args, "petition NAME --agent AGENT", (*session.Client).Petition)
		},
	}
}

func grantWithdrawVerb() verb {
	return verb{
		name:     "grant withdraw",
		brief:    "leave a container's queue",
		synopsis: "NAME --agent AGENT [flags]",
		detail: `Leaves the queue. The next one's turn comes at once, and no offer counts as missed.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant withdraw atlas --agent bob`,
		options:  func() []option { return new(grantFlags).agents() },
		run: func(args []string) int {
			return simpleGrant(args, "withdraw NAME --agent AGENT", (*session.Client).Withdraw)
		},
	}
}

// simpleGrant is a command that takes a name, and no session.
func simpleGrant(args []string, form string, do func(*session.Client, context.Context, string, string) (session.Result, error)) int {
	var f grantFlags
	name, _, err := f.parse(args, f.agents(), 0, form)
	if err != nil {
		return f.fail(err)
	}
	return f.asAgent(func(ctx context.Context, c *session.Client) error {
		r, err := do(c, ctx, name, f.id)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, nil)
	})
}

func grantAcquireVerb() verb {
	return verb{
		name:     "grant acquire",
		brief:    "begin a grant, when it is the agent's turn",
		synopsis: "NAME --agent AGENT [flags]",
		detail: `Begins a grant if nobody holds the container, or the holder's grant has expired, and it
is this agent's turn; it does not wait. Refused, it says when to ask again: nothing
is lost by that, the place in the queue stays. An agent that holds a grant on
another container of the estate is refused.

What proves the grant is in a file that only this user can read, outside the estate;
its name is printed. An acquire whose answer was lost is found again by the next one.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant acquire atlas --agent bob
until stile grant acquire atlas --agent bob; do sleep 60; done`,
		options: func() []option { return new(grantFlags).agents() },
		run:     cmdGrantAcquire,
	}
}

func cmdGrantAcquire(args []string) int {
	var f grantFlags
	name, _, err := f.parse(args, f.agents(), 0, "acquire NAME --agent AGENT")
	if err != nil {
		return f.fail(err)
	}
	return f.asAgent(func(ctx context.Context, c *session.Client) error {
		x, r, err := c.Acquire(ctx, name, f.id)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, func(o *grantResult) { o.SessionFile = x.Path })
	})
}
