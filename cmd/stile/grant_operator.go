package main

import (
	"context"
	"os"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
)

type grantOperatorFlags struct {
	grantFlags
	reason string
	rev    int64
}

func (f *grantOperatorFlags) reasonOption() option {
	return stringOption("reason", "TEXT", "why: it stands in the history, with the operator's name", &f.reason)
}

func (f *grantOperatorFlags) clearOptions() []option {
	return append([]option{
		f.numberOption("rev", "N", "a revision", "the revision that was looked at: 'stile grant status' shows it", &f.rev),
		f.reasonOption(),
	}, f.operators()...)
}

func (f *grantOperatorFlags) restoreOptions() []option {
	return append([]option{f.reasonOption()}, f.operators()...)
}

func grantClearVerb() verb {
	return verb{
		name:     "grant clear",
		brief:    "the operator ends the grant of a holder who went silent",
		synopsis: "NAME --operator NAME --rev N --reason TEXT [flags]",
		detail: `Ends a grant whose holder has vanished, once it has expired, with one line in the
history that says who did it and why. The number is burned and so are its identifiers;
whatever the holder lands later is refused. It is the only thing that an operator
does to a grant, and needs the revision that was looked at: if the page has moved
since, nothing is changed.

Nobody clears from within the holder's own session, or in the holder's name.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant status atlas
stile grant clear atlas --operator olga --rev 17 --reason 'the host burnt down'`,
		options: func() []option { return new(grantOperatorFlags).clearOptions() },
		run:     cmdGrantClear,
	}
}

func cmdGrantClear(args []string) int {
	var f grantOperatorFlags
	name, _, err := f.parse(args, f.clearOptions(), 0, "clear NAME --operator NAME --rev N --reason TEXT")
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) (err error) {
		if c.Operator, err = f.whoOperates(); err != nil {
			return err
		}
		own, err := ownSessions(ctx, c, name)
		if err != nil {
			return err
		}
		r, err := c.Clear(ctx, name, f.id, f.reason, f.rev, own)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, nil)
	})
}

// ownSessions are the sessions that this process acts in: by the file that the environment names, or because
// it runs in the holder's name. All other sessions of the user are not the operator's: on one machine agents
// and operator are one user.
func ownSessions(ctx context.Context, c *session.Client, name string) ([]grant.Digest, error) {
	var own []grant.Digest
	if path := os.Getenv(sessionVariable); path != "" {
		x, err := c.Store.OpenSession(path)
		if err != nil {
			return nil, err
		}
		own = append(own, x.Secret.Hash())
	}
	agent := os.Getenv(agentVariable)
	if agent == "" {
		return own, nil
	}
	head, err := c.Store.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	if h := head.Page().Holder; h != nil && h.Agent == agent {
		own = append(own, h.Session)
	}
	return own, nil
}

func grantRestoreVerb() verb {
	return verb{
		name:     "grant restore",
		brief:    "the operator goes on with a container whose pages were lost or set back",
		synopsis: "NAME --operator NAME --reason TEXT [flags]",
		detail: `For a container whose pages are lost, damaged or older than what was seen: what cannot
be read is set aside (its bytes are kept), and a new epoch begins above all revisions,
grants and identifiers that are known, with one line in the history. Where nothing is
wrong it is refused.

Exit code: 0; 1 usage, or it could not be done; 2 refused: nothing was changed.`,
		examples: `stile grant restore atlas --operator olga --reason 'disk replaced, backup of Monday'`,
		options:  func() []option { return new(grantOperatorFlags).restoreOptions() },
		run:      cmdGrantRestore,
	}
}

func cmdGrantRestore(args []string) int {
	var f grantOperatorFlags
	name, _, err := f.parse(args, f.restoreOptions(), 0, "restore NAME --operator NAME --reason TEXT")
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) (err error) {
		if c.Operator, err = f.whoOperates(); err != nil {
			return err
		}
		r, kept, err := c.Restore(ctx, name, f.id, f.reason)
		if err != nil {
			return err
		}
		return f.done(ctx, c, r, func(o *grantResult) { o.SetAside = kept })
	})
}
