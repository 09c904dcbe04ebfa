package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/register"
)

// tale is the worked example of a grant, played with what ships: a store in a temporary estate, and a client
// for each who acts in it. Only the clock is not the world's.
type tale struct {
	dir    string
	estate string
	clock  *taleClock
	shown  grant.Ref // the last page that was printed
	broken int
}

// taleClock goes only where it is told to, so that a day takes no time.
type taleClock struct{ now time.Time }

func (c *taleClock) Now() time.Time { return c.now }

func (c *taleClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

// taleStart is hour 0.
func taleStart() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }

const taleContainer = "atlas"

func demoGrant() int {
	work, err := newWorkFolder("", "stile-demo-")
	if err != nil {
		return fail(err, false)
	}
	t := &tale{dir: work.path, clock: &taleClock{now: taleStart()}}
	err = errors.Join(t.play(context.Background()), work.remove())
	if err != nil {
		return fail(err, false)
	}
	return allKept(t.broken)
}

// client is a process of somebody's: nothing is shared with the others but the estate.
func (t *tale) client(who string) (*session.Client, error) {
	store, err := local.Open(t.estate, local.Options{State: filepath.Join(t.dir, "home of "+who), Seams: &seam.Set{Clock: t.clock}})
	if err != nil {
		return nil, err
	}
	return &session.Client{Store: store, Agent: who}, nil
}

// at sets the clock.
func (t *tale) at(hour float64, format string, args ...any) {
	t.clock.now = taleStart().Add(time.Duration(hour * float64(time.Hour)))
	fmt.Fprintf(stdout, "\n%s  %s\n", t.hour(grant.TimeOf(t.clock.now)), fmt.Sprintf(format, args...))
}

func (t *tale) hour(at grant.Time) string {
	d := at.Std().Sub(taleStart())
	return fmt.Sprintf("hour %02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

func (t *tale) promise(kept bool, format string, args ...any) {
	mark := "ok:"
	if !kept {
		mark = "BROKEN:"
		t.broken++
	}
	fmt.Fprintf(stdout, "   %s %s\n", mark, fmt.Sprintf(format, args...))
}

// page prints the head, if it is another than before, and gives it.
func (t *tale) page(ctx context.Context) (*grant.Page, error) {
	c, err := t.client("reader")
	if err != nil {
		return nil, err
	}
	head, err := c.Head(ctx, taleContainer)
	if err != nil {
		return nil, err
	}
	p := head.Page()
	if head.Ref() != t.shown {
		t.shown = head.Ref()
		t.print(p)
	}
	return p, nil
}

// badge is what a reader sees now.
func (t *tale) badge(p *grant.Page) grant.Badge { return grant.BadgeOf(p, grant.TimeOf(t.clock.now)) }

func (t *tale) print(p *grant.Page) {
	holder := "nobody"
	if p.Holder != nil {
		holder = p.Holder.Agent + " until " + strings.TrimPrefix(t.hour(p.Expiry), "hour ")
	}
	var queue []string
	for _, w := range p.Queue {
		queue = append(queue, w.Agent)
	}
	silent := "off"
	if p.Silent.On {
		silent = fmt.Sprintf("since grant %d", p.Silent.SinceGrant)
	}
	fmt.Fprintf(stdout, "   | rev %-2d %-9s  %s, grant %d, %s; queue: %s; register: %d, %s\n", p.Rev, p.Op, p.State, p.Grant, holder,
		orNone(strings.Join(queue, ", ")), p.Register.Seq, orNone(shortDigest(p.Register.Head)))
	fmt.Fprintf(stdout, "   |                   ids from %d; silent: %s; badge: %s\n", p.IDs.Next, silent, strings.ToUpper(string(t.badge(p))))
}

// refusal is what somebody was refused with; anything else ends the play.
func refusal(err error) (*grant.Refusal, error) {
	var r *grant.Refusal
	if errors.As(err, &r) {
		fmt.Fprintf(stdout, "   %s refused: %s: %s\n", r.Op, r.Code, r.Cause)
		return r, nil
	}
	if err == nil {
		err = errors.New("it was not refused")
	}
	return nil, err
}

func (t *tale) play(ctx context.Context) error {
	place, _, err := estate.Init(estate.Options{Flag: filepath.Join(t.dir, "estate")})
	if err != nil {
		return err
	}
	t.estate = place.Path
	fmt.Fprintln(stdout, "The worked example of a grant: the shipped code, a real store in a temporary estate, and a clock that")
	fmt.Fprintln(stdout, "jumps. Each page of the container is shown when it changes.")
	for _, scene := range []func(context.Context) error{t.granted, t.dies, t.takenOver, t.late, t.landed, t.verified} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *tale) granted(ctx context.Context) error {
	olga, err := t.client("olga")
	if err != nil {
		return err
	}
	olga.Operator = "olga"
	t.at(0, "The operator makes a container; ada is granted number 1, and leases identifiers.")
	if _, err := olga.Create(ctx, taleContainer, "", grant.DefaultParams()); err != nil {
		return err
	}
	if _, err := t.page(ctx); err != nil {
		return err
	}
	ada, err := t.client("ada")
	if err != nil {
		return err
	}
	x, _, err := ada.Acquire(ctx, taleContainer, "")
	if err != nil {
		return err
	}
	if _, err := t.page(ctx); err != nil {
		return err
	}
	if _, err := ada.LeaseIDs(ctx, x, "", 10, 0, ""); err != nil {
		return err
	}
	if _, err := t.page(ctx); err != nil {
		return err
	}
	t.at(1, "bob petitions. His place is kept, whatever becomes of his process.")
	bob, err := t.client("bob")
	if err != nil {
		return err
	}
	if _, err := bob.Petition(ctx, taleContainer, ""); err != nil {
		return err
	}
	_, err = t.page(ctx)
	return err
}

// dies: heartbeats until hour 20, and not one more.
func (t *tale) dies(ctx context.Context) error {
	for hour := 3.5; hour < 20; hour += 3.5 {
		t.at(hour, "ada is heard of.")
		if err := t.beat(ctx); err != nil {
			return err
		}
	}
	t.at(20, "ada is heard of, and dies without a release. The cap is hour 24, whatever she had sent.")
	if err := t.beat(ctx); err != nil {
		return err
	}
	t.at(24-1.0/60, "bob asks.")
	bob, err := t.client("bob")
	if err != nil {
		return err
	}
	_, _, err = bob.Acquire(ctx, taleContainer, "")
	r, err := refusal(err)
	if err != nil {
		return err
	}
	t.promise(r.Code == grant.CodeHeld, "a grant that lives is nobody else's.")
	t.at(24, "The grant expires. No page changes: each reader sees it by the clock.")
	p, err := t.page(ctx)
	if err != nil {
		return err
	}
	t.promise(t.badge(p) == grant.BadgeHolderSilent, "the badge is HOLDER SILENT.")
	return nil
}

func (t *tale) beat(ctx context.Context) error {
	ada, err := t.client("ada")
	if err != nil {
		return err
	}
	x, _, err := ada.Find(ctx, grant.OpHeartbeat, taleContainer, "")
	if err != nil {
		return err
	}
	if _, err := ada.Heartbeat(ctx, x, ""); err != nil {
		return err
	}
	_, err = t.page(ctx)
	return err
}

func (t *tale) takenOver(ctx context.Context) error {
	t.at(24+10.0/60, "carl, who has not petitioned, tries; then bob, whose window it is.")
	carl, err := t.client("carl")
	if err != nil {
		return err
	}
	_, _, err = carl.Acquire(ctx, taleContainer, "")
	r, err := refusal(err)
	if err != nil {
		return err
	}
	t.promise(r.Code == grant.CodeNotYourTurn, "nobody passes the queue.")
	bob, err := t.client("bob")
	if err != nil {
		return err
	}
	if _, _, err := bob.Acquire(ctx, taleContainer, ""); err != nil {
		return err
	}
	p, err := t.page(ctx)
	if err != nil {
		return err
	}
	t.promise(p.Grant == 2 && p.Holder.Agent == "bob" && t.badge(p) == grant.BadgeCaution,
		"bob has number 2, inside his window; the badge is CAUTION until he has landed and released.")
	return nil
}

const taleWork = "what ada had found before she died\n"

func (t *tale) late(ctx context.Context) error {
	t.at(25, "ada's client wakes up and lands what it has, under number 1.")
	file := filepath.Join(t.dir, "findings.txt")
	if err := os.WriteFile(file, []byte(taleWork), 0o600); err != nil {
		return err
	}
	ada, err := t.client("ada")
	if err != nil {
		return err
	}
	before := t.shown
	_, err = ada.Land(ctx, taleContainer, "", session.Landing{Tree: taleTree(file), IDs: []grant.Range{{Lo: 1, Hi: 3}}})
	var kept *register.RefusedError
	if !errors.As(err, &kept) {
		return errors.Join(errors.New("a late landing was not refused"), err)
	}
	if _, err := refusal(err); err != nil {
		return err
	}
	p, err := t.page(ctx)
	if err != nil {
		return err
	}
	t.promise(kept.Refusal.Code == grant.CodeFenced && p.Register.Seq == 0 && t.shown == before, "the register is as it was, and no page has come.")
	back, err := t.back(ctx, kept.Kept)
	if err != nil {
		return err
	}
	t.promise(kept.Err == nil && back, "what she brought is kept as %s, and comes back byte for byte.", kept.Kept.Short())
	return nil
}

// taleTree is what lands in the tale: one file.
func taleTree(file string) *register.Tree {
	tree := &register.Tree{}
	if err := tree.AddAs(filepath.Base(file), file); err != nil {
		return nil // there is nothing to land, as the landing says
	}
	return tree
}

// back tells whether ada's work comes back as she brought it.
func (t *tale) back(ctx context.Context, k register.Kept) (bool, error) {
	c, err := t.client("reader")
	if err != nil {
		return false, err
	}
	reg := register.Of(c.Store, taleContainer)
	m, err := reg.Manifest(ctx, k.Manifest)
	if err != nil {
		return false, err
	}
	dir := filepath.Join(t.dir, "rescued")
	if err := reg.Export(ctx, m, dir, false); err != nil {
		return false, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "findings.txt"))
	return string(text) == taleWork, err
}

func (t *tale) landed(ctx context.Context) error {
	t.at(26, "bob leases identifiers, lands and releases.")
	file := filepath.Join(t.dir, "map.svg")
	if err := os.WriteFile(file, []byte("<svg/>\n"), 0o600); err != nil {
		return err
	}
	bob, err := t.client("bob")
	if err != nil {
		return err
	}
	x, _, err := bob.Find(ctx, grant.OpLand, taleContainer, "")
	if err != nil {
		return err
	}
	r, err := bob.LeaseIDs(ctx, x, "", 5, 0, "")
	if err != nil {
		return err
	}
	lease := r.Revision.Page().IDs.Leases[0]
	if _, err := t.page(ctx); err != nil {
		return err
	}
	t.promise(lease.Lo == 11, "the dead grant's identifiers 1 to 10 never come back: his begin at %d.", lease.Lo)
	if _, err := bob.Land(ctx, taleContainer, "", session.Landing{Tree: taleTree(file), IDs: []grant.Range{{Lo: lease.Lo, Hi: lease.Lo}}}); err != nil {
		return err
	}
	if _, err := t.page(ctx); err != nil {
		return err
	}
	if _, err := bob.Release(ctx, x, ""); err != nil {
		return err
	}
	p, err := t.page(ctx)
	if err != nil {
		return err
	}
	t.promise(p.Register.Seq == 1 && t.badge(p) == grant.BadgeFree, "what bob landed was read back before the release; the badge is clear.")
	return nil
}

func (t *tale) verified(ctx context.Context) error {
	c, err := t.client("reader")
	if err != nil {
		return err
	}
	chain, err := grant.Chain(ctx, c.Store, taleContainer)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	broken := grant.Verify(chain)
	t.promise(broken == nil, "Verify: %s, each hash is that of the page before, and I1 to I14 hold.", plural(len(chain), "revision", "revisions"))
	if broken != nil {
		fmt.Fprintf(stdout, "   %v\n", broken)
	}
	return nil
}
