package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

// grantResult is the JSON of a grant command that was carried out.
type grantResult struct {
	Container string      `json:"container"`
	Op        grant.Op    `json:"op"`
	Epoch     int64       `json:"epoch"`
	Rev       int64       `json:"rev"`
	Grant     int64       `json:"grant"`
	State     grant.State `json:"state"`
	Badge     grant.Badge `json:"badge"`
	Holder    *holderJSON `json:"holder"`
	Expiry    grant.Time  `json:"expiry"`
	// Replayed: an earlier attempt of the same command had done it.
	Replayed bool `json:"replayed"`

	Turn        *turnJSON        `json:"turn,omitempty"`
	SessionFile string           `json:"session_file,omitempty"`
	Lease       *grant.Lease     `json:"lease,omitempty"`
	Block       *grant.Block     `json:"block,omitempty"`
	Landing     *grant.Landing   `json:"landing,omitempty"`
	Manifest    grant.Digest     `json:"manifest,omitempty"`
	Entries     []register.Entry `json:"entries,omitempty"`
	SetAside    string           `json:"set_aside,omitempty"`
	// Earlier is a landing, or other command of the kind, of an attempt whose answer had been lost.
	Earlier int64 `json:"earlier_rev,omitempty"`
}

// done prints what a command has come to. fill adds what is its own.
func (f *grantFlags) done(ctx context.Context, c *session.Client, r session.Result, fill func(*grantResult)) error {
	p := r.Revision.Page()
	now, err := c.Store.Now(ctx)
	if err != nil {
		return err
	}
	o := &grantResult{
		Container: display.Text(p.Container), Op: p.Op, Epoch: p.Epoch, Rev: p.Rev, Grant: p.Grant, State: p.State,
		Badge: grant.BadgeOf(p, now), Holder: holderOf(p.Holder), Expiry: p.Expiry, Replayed: r.Replayed,
	}
	if p.Op == grant.OpPetition {
		turn, _, err := c.TurnOf(ctx, r.Revision)
		if err != nil {
			return err
		}
		o.Turn = turnOf(&turn)
	}
	if p.Op == grant.OpLand {
		o.Landing = p.Landing
	}
	if r.Earlier != nil {
		o.Earlier = r.Earlier.Page().Rev
	}
	if fill != nil {
		fill(o)
	}
	if f.json {
		printJSON(stdout, o)
		return nil
	}
	if o.Earlier != 0 && !r.Replayed {
		printFailure(os.Stderr, fmt.Sprintf("an earlier attempt, whose answer was lost, had succeeded as revision %d", o.Earlier), "")
	}
	_, err = fmt.Fprintf(stdout, "%s: %s\n", display.Text(p.Container), f.doneText(o, p, now))
	return err
}

// doneText says it for people, in one line.
func (f *grantFlags) doneText(o *grantResult, p *grant.Page, now grant.Time) string {
	text := string(p.Op)
	switch p.Op {
	case grant.OpCreate:
		text = fmt.Sprintf("made; a grant lasts %s at most, %s without a heartbeat", span(p.Params.Cap.Duration()), span(p.Params.Extension.Duration()))
	case grant.OpPetition:
		text = petitionText(o, p, now)
	case grant.OpWithdraw:
		text = "withdrawn"
	case grant.OpRelease:
		text = fmt.Sprintf("grant %d is released; %s", p.Grant, nextText(p))
	case grant.OpIDs:
		if o.Lease != nil {
			text = fmt.Sprintf("lease %d: %d to %d", o.Lease.ID, o.Lease.Lo, o.Lease.Hi)
		}
	case grant.OpBlock:
		if o.Block != nil {
			text = fmt.Sprintf("block %d for %s", o.Block.ID, display.Text(o.Block.Worker))
		}
	case grant.OpCloseBlock:
		text = "closed"
	case grant.OpLand:
		text = landedText(p.Landing, p.Register.Seq, len(o.Entries))
	case grant.OpResolve:
		text = "settled: " + display.Text(p.Note)
	case grant.OpClear:
		text = fmt.Sprintf("cleared: number %d is burned; %s", p.Grant, nextText(p))
	case grant.OpRestore:
		text = fmt.Sprintf("restored: epoch %d begins at revision %d, the next grant is %d", p.Epoch, p.Rev, p.Grant+1)
	default:
		if p.State == grant.StateHeld {
			text = fmt.Sprintf("grant %d of %s until %s", p.Grant, display.Text(p.Holder.Agent), untilText(p.Expiry, now))
		}
	}
	if p.Op == grant.OpAcquire {
		for _, d := range p.Doubts {
			text += fmt.Sprintf("\n  in doubt: nobody saw the end of '%s', of grant %d: look, and say stile grant land %s --resolve done|undone --reason WHY",
				display.Text(d.Command), d.Grant, shown(p.Container))
		}
	}
	if o.SetAside != "" {
		text += "; what could not be read is kept as " + display.Text(o.SetAside)
	}
	if o.Replayed {
		text += " (an earlier attempt had done it)"
	}
	if o.SessionFile != "" {
		text += "\n  session: " + display.Text(o.SessionFile)
	}
	return text
}

func petitionText(o *grantResult, p *grant.Page, now grant.Time) string {
	if o.Turn == nil {
		return "petitioned"
	}
	text := fmt.Sprintf("place %d of %d in the queue", o.Turn.Place, len(p.Queue))
	switch {
	case o.Turn.Open && now >= o.Turn.From:
		return text + "; it is your turn: stile grant acquire " + shown(p.Container)
	case p.Holder != nil && o.Turn.Open:
		return text + "; " + display.Text(p.Holder.Agent) + " is silent; your turn from " + untilText(o.Turn.From, now)
	case p.Holder != nil:
		return text + "; " + display.Text(p.Holder.Agent) + " holds until " + untilText(p.Expiry, now)
	}
	return text + "; your turn from " + untilText(o.Turn.From, now)
}

func nextText(p *grant.Page) string {
	if len(p.Queue) == 0 {
		return "nobody waits"
	}
	return display.Text(p.Queue[0].Agent) + " is next"
}

// untilText is a moment, and how far away it is.
func untilText(t, now grant.Time) string {
	if t == 0 {
		return "now"
	}
	d := t.Sub(now)
	if d < 0 {
		return fmt.Sprintf("%s (%s ago)", clock(t.Std()), hours(-d))
	}
	return fmt.Sprintf("%s (in %s)", clock(t.Std()), hours(d))
}

// hours is span, to the minute where that is what one plans by.
func hours(d time.Duration) string {
	if d < 2*time.Hour || d >= 48*time.Hour {
		return span(d)
	}
	d = d.Round(time.Minute)
	if d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
}

// holdsText says in one line who has a container.
func holdsText(state grant.State, number int64, h *grant.Holder, expiry grant.Time) string {
	switch {
	case state == grant.StateHeld && h != nil:
		return fmt.Sprintf("grant %d, held by %s until %s", number, h.Agent, clock(expiry.Std()))
	case state == grant.StateCleared:
		return fmt.Sprintf("cleared by an operator; %d was the last number", number)
	case number == 0:
		return "free; there was no grant yet"
	}
	return fmt.Sprintf("free; the last grant was %d", number)
}

func ago(t, now grant.Time) time.Duration { return max(now.Sub(t), 0) }
