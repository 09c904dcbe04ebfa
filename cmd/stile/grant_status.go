package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
)

type grantStatusFlags struct {
	grantFlags
	badge bool
}

func (f *grantStatusFlags) options() []option {
	return append([]option{boolOption("badge", "print the badge alone, for prompts", &f.badge)}, f.base()...)
}

func grantStatusVerb() verb {
	return verb{
		name:     "grant status",
		brief:    "show a container, or all of an estate",
		synopsis: "[NAME] [--badge] [--json] [--estate DIR]",
		detail: `Shows who holds a container, until when, and who waits; without NAME all containers of
the estate in a table. Nothing is changed. The badge is one word:

  free           nobody holds it
  held           a grant that lives
  holder-silent  the grant has expired, or was cleared, and nobody has acquired since
  caution        a new lead holds after a silence, and has not landed and released yet

Exit code: 0; 1 usage, or it could not be done; 2 a container cannot be read.`,
		examples: `stile grant status
stile grant status atlas
PS1='$(stile grant status atlas --badge) $ '`,
		options: func() []option { return new(grantStatusFlags).options() },
		run:     cmdGrantStatus,
	}
}

func cmdGrantStatus(args []string) int {
	var f grantStatusFlags
	p, err := parse(args, f.options(), false)
	switch {
	case err != nil:
		f.json = f.json || wantsJSON(args)
	case len(p.operands) > 1:
		err = usageHint("stile grant status NAME", "one container at a time, or none for all")
	case len(p.operands) == 1:
		f.name = p.operands[0]
		err = grant.CheckName(f.name)
	case f.badge:
		err = usageHint("stile grant status NAME --badge", "a badge is of one container")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) error {
		if f.name == "" {
			return f.all(ctx, c)
		}
		return f.one(ctx, c)
	})
}

func (f *grantStatusFlags) one(ctx context.Context, c *session.Client) error {
	head, err := c.Head(ctx, f.name)
	if err != nil {
		return err
	}
	now, err := c.Store.Now(ctx)
	if err != nil {
		return err
	}
	s := containerStatusOf(head.Page(), now)
	switch {
	case f.json:
		printJSON(stdout, s)
	case f.badge:
		_, err = fmt.Fprintln(stdout, s.Badge)
	default:
		w := bufio.NewWriter(stdout)
		printContainer(w, head.Page(), now)
		err = w.Flush()
	}
	return err
}

func (f *grantStatusFlags) all(ctx context.Context, c *session.Client) error {
	list, bad, err := containerRows(ctx, c)
	if err != nil {
		return err
	}
	if f.json {
		printJSON(stdout, struct {
			Containers []containerRow `json:"containers"`
		}{list})
	} else {
		printContainers(stdout, list)
	}
	if bad {
		return &exitCode{exitProblem}
	}
	return nil
}

// containerRow is a container in a list. One that cannot be read has an error, and nothing but its name.
type containerRow struct {
	Name       string       `json:"container"`
	Badge      grant.Badge  `json:"badge,omitempty"`
	State      grant.State  `json:"state,omitempty"`
	Rev        int64        `json:"rev,omitempty"`
	Grant      int64        `json:"grant"`
	Holder     *holderJSON  `json:"holder"`
	Heartbeat  grant.Time   `json:"heartbeat"`
	AgeSeconds *float64     `json:"heartbeat_age_seconds"`
	Expiry     grant.Time   `json:"expiry"`
	Queue      int          `json:"queue"`
	Landings   int64        `json:"landings"`
	Error      *errorObject `json:"error,omitempty"`

	now grant.Time
}

// containerRows looks at every container of the estate. bad: one of them cannot be read.
func containerRows(ctx context.Context, c *session.Client) (list []containerRow, bad bool, err error) {
	names, err := c.Store.Containers(ctx)
	if err != nil {
		return nil, false, err
	}
	list = make([]containerRow, 0, len(names))
	for _, name := range names {
		row := containerRow{Name: display.Text(name)}
		head, err := c.Head(ctx, name)
		if err == nil {
			row.now, err = c.Store.Now(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil, false, ctx.Err()
		case err != nil:
			g := &grantFlags{name: name}
			row.Error = g.errorObject(g.classify(err))
			bad = true
		default:
			row.fill(head.Page())
		}
		list = append(list, row)
	}
	return list, bad, nil
}

func (r *containerRow) fill(p *grant.Page) {
	r.Badge, r.State, r.Rev, r.Grant, r.Holder = grant.BadgeOf(p, r.now), p.State, p.Rev, p.Grant, holderOf(p.Holder)
	r.Heartbeat, r.Expiry, r.Queue, r.Landings = p.Heartbeat, p.Expiry, len(p.Queue), p.Register.Seq
	if p.Heartbeat != 0 {
		age := ago(p.Heartbeat, r.now).Seconds()
		r.AgeSeconds = &age
	}
}

func printContainers(w io.Writer, list []containerRow) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no containers")
		return
	}
	rows := [][]string{{"CONTAINER", "BADGE", "GRANT", "HOLDER", "HEARTBEAT", "EXPIRES", "WAITING"}}
	for _, c := range list {
		row := []string{c.Name, string(c.Badge), fmt.Sprint(c.Grant), "-", "-", "-", fmt.Sprint(c.Queue)}
		switch {
		case c.Error != nil:
			row = []string{c.Name, c.Error.Code, "?", "?", "?", "?", "?"}
		case c.Holder != nil:
			row[3], row[4] = c.Holder.Agent, span(ago(c.Heartbeat, c.now))+" ago"
			row[5] = "in " + hours(c.Expiry.Sub(c.now))
			if c.Expiry <= c.now {
				row[5] = hours(ago(c.Expiry, c.now)) + " ago"
			}
		}
		rows = append(rows, row)
	}
	printTable(w, rows)
	for _, c := range list {
		if c.Error != nil {
			printFailure(os.Stderr, c.Name+": "+c.Error.Message, c.Error.Hint)
		}
	}
}

// containerStatus is the JSON of one container.
type containerStatus struct {
	Container  string            `json:"container"`
	Badge      grant.Badge       `json:"badge"`
	State      grant.State       `json:"state"`
	Epoch      int64             `json:"epoch"`
	Rev        int64             `json:"rev"`
	Grant      int64             `json:"grant"`
	Holder     *holderJSON       `json:"holder"`
	GrantTime  grant.Time        `json:"grant_time"`
	Heartbeat  grant.Time        `json:"heartbeat"`
	AgeSeconds *float64          `json:"heartbeat_age_seconds"`
	Expiry     grant.Time        `json:"expiry"`
	Register   grant.Register    `json:"register"`
	Landing    *grant.Landing    `json:"landing"`
	Queue      []waiterJSON      `json:"queue"`
	Silent     grant.Silence     `json:"silent"`
	Running    *grant.Running    `json:"running"`
	Doubts     []grant.Doubt     `json:"doubts"`
	IDs        grant.Identifiers `json:"ids"`
	Blocks     []grant.Block     `json:"blocks"`
	Params     grant.Params      `json:"params"`
}

type waiterJSON struct {
	Agent    string     `json:"agent"`
	Petition int64      `json:"petition"`
	Place    int        `json:"place"`
	From     grant.Time `json:"from"` // null: at once, when the container is open
	Misses   int64      `json:"misses"`
}

func containerStatusOf(p *grant.Page, now grant.Time) *containerStatus {
	s := &containerStatus{
		Container: display.Text(p.Container), Badge: grant.BadgeOf(p, now), State: p.State, Epoch: p.Epoch, Rev: p.Rev, Grant: p.Grant,
		Holder: holderOf(p.Holder), GrantTime: p.GrantTime, Heartbeat: p.Heartbeat, Expiry: p.Expiry, Register: p.Register,
		Landing: p.Landing, Queue: waitersOf(p, now), Silent: p.Silent, Running: p.Running, Doubts: p.Doubts, IDs: p.IDs, Blocks: p.Blocks, Params: p.Params,
	}
	if p.Heartbeat != 0 {
		age := ago(p.Heartbeat, now).Seconds()
		s.AgeSeconds = &age
	}
	return s
}

func waitersOf(p *grant.Page, now grant.Time) []waiterJSON {
	list := []waiterJSON{}
	for _, w := range p.Queue {
		t, _ := grant.TurnOf(p, w.Agent, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
		list = append(list, waiterJSON{display.Text(w.Agent), w.Rev, t.Place, t.From, w.Misses})
	}
	return list
}

func printContainer(w io.Writer, p *grant.Page, now grant.Time) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, display.Text(fmt.Sprintf(format, args...)))
	}
	line("container", "%s, revision %d", p.Container, p.Rev)
	line("badge", "%s%s", grant.BadgeOf(p, now), badgeText(p, now))
	if p.Holder != nil {
		line("held by", "%s, grant %d since %s", p.Holder.Agent, p.Grant, clock(p.GrantTime.Std()))
		line("heartbeat", "%s ago", span(ago(p.Heartbeat, now)))
		line("expires", "%s", untilText(p.Expiry, now))
	} else {
		line("grant", "%s", holdsText(p.State, p.Grant, nil, 0))
	}
	if p.Running != nil {
		line("running", "%s, since %s", p.Running.Command, clock(p.Running.Started.Std()))
	}
	for _, d := range p.Doubts {
		line("in doubt", "%s: %s, of grant %d, begun %s", d.ID, d.Command, d.Grant, clock(d.Started.Std()))
	}
	line("register", "%s, head %s", plural(int(p.Register.Seq), "landing", "landings"), orNone(shortDigest(p.Register.Head)))
	if p.Landing != nil {
		line("", "%s by this grant", plural(int(p.Landing.N), "landing", "landings"))
	}
	for i, q := range waitersOf(p, now) {
		name := ""
		if i == 0 {
			name = "queue"
		}
		line(name, "%d. %s", q.Place, q.Agent+turnText(p, q.From, now))
	}
	for _, l := range p.IDs.Leases {
		line("lease", "%d: %d to %d for %s", l.ID, l.Lo, l.Hi, l.Worker)
	}
	for _, b := range p.Blocks {
		line("block", "%d for %s: %s", b.ID, b.Worker, b.Note)
	}
}

func turnText(p *grant.Page, from, now grant.Time) string {
	switch {
	case p.State == grant.StateHeld && now < p.Expiry:
		return ""
	case now >= from:
		return ", whose turn it is"
	}
	return ", from " + untilText(from, now)
}

func badgeText(p *grant.Page, now grant.Time) string {
	switch grant.BadgeOf(p, now) {
	case grant.BadgeHolderSilent:
		return ": nobody has been heard of in time; the queue's head may acquire, an operator may clear"
	case grant.BadgeCaution:
		return fmt.Sprintf(": grant %d ended without a release, and nothing has landed and been released since", p.Silent.SinceGrant)
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
