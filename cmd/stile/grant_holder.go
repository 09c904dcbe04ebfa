package main

import (
	"context"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
)

func grantHeartbeatVerb() verb {
	return verb{
		name:     "grant heartbeat",
		brief:    "extend the agent's grant",
		synopsis: "NAME [flags]",
		detail: `Extends the grant: until now plus the container's extension, never past its cap. Once
an hour is enough by default. A grant that has expired cannot be extended.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant heartbeat atlas --agent bob`,
		options:  func() []option { return new(grantFlags).holders() },
		run:      cmdGrantHeartbeat,
	}
}

func cmdGrantHeartbeat(args []string) int {
	var f grantFlags
	name, _, err := f.parse(args, f.holders(), 0, "heartbeat NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.asHolder(name, grant.OpHeartbeat, func(ctx context.Context, c *session.Client, x *local.Session) error {
		r, err := c.Heartbeat(ctx, x, f.id)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, nil)
	})
}

func grantReleaseVerb() verb {
	return verb{
		name:     "grant release",
		brief:    "end the agent's grant, after a landing",
		synopsis: "NAME [flags]",
		detail: `Reads back what the grant has landed, and ends the grant; the queue's head is next. A
grant that has landed nothing cannot be released: with nothing to show, land that
('stile grant land NAME --empty REASON'). Leases that a landing kept are to be closed
by another one first.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant release atlas --agent bob`,
		options:  func() []option { return new(grantFlags).holders() },
		run:      cmdGrantRelease,
	}
}

func cmdGrantRelease(args []string) int {
	var f grantFlags
	name, _, err := f.parse(args, f.holders(), 0, "release NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) error {
		if err := f.holder(c); err != nil {
			return err
		}
		x, _, err := c.Find(ctx, grant.OpRelease, name, f.sessionPath())
		if err != nil {
			if f.id != "" && c.Agent != "" {
				if r, ok, ferr := c.Released(ctx, name, f.id); ok && ferr == nil {
					return f.done(ctx, c, r, nil)
				}
			}
			return err
		}
		r, err := c.Release(ctx, x, f.id)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, nil)
	})
}

type grantIDsFlags struct {
	grantFlags
	block  int64
	worker string
}

func (f *grantIDsFlags) options() []option {
	return append([]option{
		f.numberOption("block", "N", "a block", "for a block of the grant's", &f.block),
		nonEmpty("worker", "NAME", "who is to use them; the lead by default", &f.worker),
	}, f.holders()...)
}

func grantIDsVerb() verb {
	return verb{
		name:     "grant ids",
		brief:    "lease identifiers to the agent's grant",
		synopsis: "NAME COUNT [flags]",
		detail: `Leases COUNT identifiers in a row to the grant, and prints the first and the last. No
other lease ever has one of them, unless a landing gave it back unused. Those of a
grant that ended without a landing never come back.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant ids atlas 20 --agent bob --worker carl`,
		options:  func() []option { return new(grantIDsFlags).options() },
		run:      cmdGrantIDs,
	}
}

func cmdGrantIDs(args []string) int {
	var f grantIDsFlags
	name, rest, err := f.parse(args, f.options(), 1, "ids NAME COUNT")
	if err == nil && len(rest) == 0 {
		err = usageHint("stile grant ids "+shown(name)+" COUNT", "it was not said how many")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.asHolder(name, grant.OpIDs, func(ctx context.Context, c *session.Client, x *local.Session) error {
		n, err := parseNumber("the count", rest[0])
		if err != nil {
			return err
		}
		r, err := c.LeaseIDs(ctx, x, f.id, n, f.block, f.worker)
		if err != nil {
			return err
		}
		leases := r.Revision.Page().IDs.Leases
		return f.done(ctx, c, r, func(o *grantResult) { o.Lease = &leases[len(leases)-1] })
	})
}

type grantBlockFlags struct {
	grantFlags
	worker, note, reason string
	close                int64
}

func (f *grantBlockFlags) options() []option {
	return append([]option{
		nonEmpty("worker", "NAME", "who is to work on it", &f.worker),
		stringOption("note", "TEXT", "what it is", &f.note),
		{names: "close", arg: "N", help: "close this block instead", set: func(v string) (err error) {
			if f.close, err = parseNumber("a block", v); f.close == 0 {
				f.close = -1 // given, and no block's number
			}
			return f.later(err)
		}},
		stringOption("reason", "TEXT", "with --close: why", &f.reason),
	}, f.holders()...)
}

func grantBlockVerb() verb {
	return verb{
		name:     "grant block",
		brief:    "give part of a grant's work to somebody, or close it",
		synopsis: "NAME --worker WORKER [--note TEXT]\nNAME --close N [--reason TEXT]",
		detail: `Assigns a block of the work to a worker, and prints its number; or closes one. Only
the lead assigns. 'stile grant status NAME' lists the open blocks.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant block atlas --agent bob --worker carl --note 'the coast'
stile grant block atlas --agent bob --close 17`,
		options: func() []option { return new(grantBlockFlags).options() },
		run:     cmdGrantBlock,
	}
}

func cmdGrantBlock(args []string) int {
	var f grantBlockFlags
	name, _, err := f.parse(args, f.options(), 0, "block NAME --worker WORKER")
	if err == nil && (f.worker == "") == (f.close == 0) {
		err = usageHint("stile grant block "+shown(name)+" --worker WORKER", "name either a worker, or with --close a block")
	}
	if err != nil {
		return f.fail(err)
	}
	op := grant.OpBlock
	if f.close != 0 {
		op = grant.OpCloseBlock
	}
	return f.asHolder(name, op, func(ctx context.Context, c *session.Client, x *local.Session) error {
		var r session.Result
		var err error
		if f.close != 0 {
			r, err = c.CloseBlock(ctx, x, f.id, f.close, f.reason)
		} else {
			r, err = c.AssignBlock(ctx, x, f.id, f.worker, f.note)
		}
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, func(o *grantResult) {
			if blocks := r.Revision.Page().Blocks; f.close == 0 {
				o.Block = &blocks[len(blocks)-1]
			}
		})
	})
}
