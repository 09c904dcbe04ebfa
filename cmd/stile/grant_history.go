package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
)

type grantHistoryFlags struct {
	grantFlags
	last   int64
	verify bool
}

func (f *grantHistoryFlags) options() []option {
	return append([]option{
		f.numberOption("n", "N", "a number of revisions", "the last N revisions only", &f.last),
		boolOption("verify", "check the whole chain against every invariant", &f.verify),
	}, f.base()...)
}

func grantHistoryVerb() verb {
	return verb{
		name:     "grant history",
		brief:    "show everything that happened to a container",
		synopsis: "NAME [-n N] [--verify] [--json] [--estate DIR]",
		detail: `Shows a container's revisions, the oldest first: when, what and by whom. None is ever
removed. Each names the hash of the one before, which is checked on the way; --verify
checks besides that nothing in them breaks a rule.

Exit code: 0; 1 usage, or it could not be done; 2 the history cannot be read, or a rule
is broken.`,
		examples: `stile grant history atlas -n 20
stile grant history atlas --verify`,
		options: func() []option { return new(grantHistoryFlags).options() },
		run:     cmdGrantHistory,
	}
}

// historyRow is the JSON of one revision.
type historyRow struct {
	Rev    int64       `json:"rev"`
	Epoch  int64       `json:"epoch"`
	At     grant.Time  `json:"at"`
	Op     grant.Op    `json:"op"`
	By     string      `json:"by"`
	Role   grant.Role  `json:"role"`
	Grant  int64       `json:"grant"`
	State  grant.State `json:"state"`
	Expiry grant.Time  `json:"expiry"`
	Note   string      `json:"note"`
	Audit  *auditJSON  `json:"audit"`
	Nonce  string      `json:"id"`
}

type auditJSON struct {
	Operator string      `json:"operator"`
	Reason   string      `json:"reason"`
	Grant    int64       `json:"grant"`
	Holder   *holderJSON `json:"holder"`
	Seen     int64       `json:"seen"`
}

func historyRowOf(p *grant.Page) historyRow {
	r := historyRow{
		Rev: p.Rev, Epoch: p.Epoch, At: p.Stamp.T, Op: p.Op, By: display.Text(p.By.Name), Role: p.By.Role, Grant: p.Grant,
		State: p.State, Expiry: p.Expiry, Note: display.Text(p.Note), Nonce: p.Nonce,
	}
	if a := p.Audit; a != nil {
		r.Audit = &auditJSON{display.Text(a.Operator), display.Text(a.Reason), a.Grant, holderOf(a.Holder), a.Seen}
	}
	return r
}

func cmdGrantHistory(args []string) int {
	var f grantHistoryFlags
	name, _, err := f.parse(args, f.options(), 0, "history NAME")
	if err == nil && f.last < 0 {
		err = usageHint("-n 20 shows the last twenty", "-n needs a number that is not below 0")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) error {
		chain, err := grant.Chain(ctx, c.Store, name)
		if err != nil {
			return err
		}
		var broken error
		if f.verify {
			broken = grant.Verify(chain)
		}
		total := len(chain)
		if f.last > 0 && int64(total) > f.last {
			chain = chain[total-int(f.last):]
		}
		if err := f.show(chain, total, broken); err != nil {
			return err
		}
		if broken != nil {
			return &exitCode{exitProblem}
		}
		return nil
	})
}

func (f *grantHistoryFlags) show(chain []grant.Revision, total int, broken error) error {
	if f.json {
		out := struct {
			Container string       `json:"container"`
			Revisions []historyRow `json:"revisions"`
			Total     int          `json:"total"`
			Verified  *bool        `json:"verified,omitempty"`
			Broken    string       `json:"broken,omitempty"`
		}{Container: display.Text(f.name), Revisions: []historyRow{}, Total: total}
		for _, r := range chain {
			out.Revisions = append(out.Revisions, historyRowOf(r.Page()))
		}
		if f.verify {
			ok := broken == nil
			out.Verified = &ok
			if broken != nil {
				out.Broken = display.Text(broken.Error())
			}
		}
		printJSON(stdout, out)
		return nil
	}
	rows := [][]string{{"REV", "AT", "WHAT", "BY", "GRANT", "STATE", ""}}
	for _, r := range chain {
		rows = append(rows, revisionRow(r.Page()))
	}
	printTable(stdout, rows)
	var b *grant.Broken
	switch {
	case errors.As(broken, &b):
		printFailure(os.Stderr, broken.Error(), "somebody has written the pages by hand, or stile has a fault: keep the folder as it is, and ask")
	case f.verify:
		fmt.Fprintf(stdout, "%s, every rule kept\n", plural(total, "revision", "revisions"))
	}
	return nil
}

func revisionRow(p *grant.Page) []string {
	by := display.Text(p.By.Name)
	if p.By.Role == grant.RoleOperator {
		by += " (operator)"
	}
	return []string{fmt.Sprint(p.Rev), clock(p.Stamp.T.Std()), string(p.Op), by, fmt.Sprint(p.Grant), string(p.State), revisionText(p)}
}

// revisionText is what else a revision did.
func revisionText(p *grant.Page) string {
	switch {
	case p.Audit != nil:
		return display.Text(p.Audit.Reason)
	case p.Op == grant.OpAcquire && p.Ended != nil && p.Ended.Rev == p.Rev:
		return fmt.Sprintf("took over from %s, silent since grant %d", display.Text(p.Ended.Holder.Agent), p.Ended.Grant)
	case p.Op == grant.OpLand && p.Landing != nil && p.Landing.Empty != "":
		return "nothing: " + display.Text(p.Landing.Empty)
	case p.Op == grant.OpLand:
		return fmt.Sprintf("number %d %s", p.Register.Seq, display.Text(p.Note))
	case p.Op == grant.OpHeartbeat, p.Op == grant.OpAcquire:
		return "until " + clock(p.Expiry.Std())
	}
	return display.Text(p.Note)
}
