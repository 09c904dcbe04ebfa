package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Landing is what to land: files, or a reason why there is nothing.
type Landing struct {
	Files []string // paths
	Empty string
	Note  string
	IDs   []grant.Range
	Keep  []int64 // leases
	// Base is the register's head that the work was based on; nil: the present one, which nobody else moves
	// while the grant lasts.
	Base *grant.Digest
	ID   string // the landing's nonce; empty: a fresh one
	// Tell, if there is one, is given what has landed while the same landing, given again, still finds it: whoever
	// dies before the answer is told does not land twice.
	Tell func(Landed) error
}

// Landed is a landing that is in the register.
type Landed struct {
	Result
	Manifest Manifest
	SHA256   grant.Digest // of the manifest
}

// RefusedLanding is a landing that was refused because its grant is not the live one. What it was made of is
// kept: nothing in it reached the register.
type RefusedLanding struct {
	*grant.Refusal
	// Kept is the document in quarantine that has it all; empty when Err says why it could not be kept.
	Kept grant.Digest
	Err  error
}

func (e *RefusedLanding) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Refusal}
	}
	return []error{e.Refusal, e.Err}
}

// Land stores files and moves the register's head to them, under the agent's grant. path names the session's
// file; empty: Find looks for it. A landing that comes too late is a *RefusedLanding.
func (c *Client) Land(ctx context.Context, container, path string, l Landing) (Landed, error) {
	x, head, err := c.Find(ctx, grant.OpLand, container, path)
	var none *grant.Refusal
	if err != nil && !errors.As(err, &none) {
		return Landed{}, err
	}
	all, why := artifacts(l.Files)
	switch {
	case why != "":
	case len(all) > 0 && l.Empty != "":
		why = "either files land, or a reason why there are none"
	case len(all) == 0 && strings.TrimSpace(l.Empty) == "":
		why = "nothing was named to land, and no reason given why"
	}
	if why != "" {
		return Landed{}, Refuse(head, grant.OpLand, grant.CodeBadInput, why, "grant land --help", "shows what it takes")
	}
	out := Landed{Manifest: Manifest{V: 1, Empty: l.Empty, Note: l.Note}}
	if out.SHA256, err = c.store(ctx, container, &out.Manifest, all); err != nil {
		return Landed{}, fmt.Errorf("store what is to land: %w", err)
	}
	if none != nil {
		return Landed{}, c.keep(ctx, none, &l, &out, c.Agent, 0)
	}
	var base grant.Digest // the present head, unless it is said
	if l.Base != nil {
		base = *l.Base
	}
	tell := func(r Result) error {
		out.Result = r
		if l.Tell == nil {
			return nil
		}
		return l.Tell(out)
	}
	out.Result, err = c.land(ctx, x, l, base, out.SHA256, tell)
	var r *grant.Refusal
	if errors.As(err, &r) && r.Quarantined() {
		return Landed{}, c.keep(ctx, r, &l, &out, x.Agent, x.Grant)
	}
	return out, err
}

func (c *Client) land(ctx context.Context, x *local.Session, l Landing, base, manifest grant.Digest, tell func(Result) error) (r Result, err error) {
	release, err := c.Store.Guard(ctx, x.Container, x.Agent)
	if err != nil {
		return Result{}, err
	}
	defer release()
	build := func(base grant.Digest) func(m grant.Meta) grant.Command {
		return func(m grant.Meta) grant.Command {
			return grant.Land{Meta: m, Session: x.Proof(), Base: base, Manifest: manifest, Empty: l.Empty, IDs: l.IDs, Keep: l.Keep, Note: l.Note}
		}
	}
	if l.Base == nil && l.ID == "" {
		// An attempt whose answer was lost had an earlier base: it is the same landing all the same.
		found, a, err := c.lostLanding(ctx, x, build)
		if err != nil {
			return Result{}, err
		}
		if found != nil {
			r := Result{Revision: *found, Replayed: true}
			return r, errors.Join(tell(r), c.Store.Settle(a))
		}
	}
	if l.Base == nil {
		// Another landing under this session may have come before ours.
		head, err := c.Store.Head(ctx, x.Container)
		if err != nil {
			return Result{}, err
		}
		base = head.Page().Register.Head
	}
	if l.Base == nil && l.ID != "" {
		// Repeated with its id, it is on the base that it had.
		rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, l.ID, x.Base)
		if err != nil {
			return Result{}, err
		}
		if ok && rev.Page().Landing != nil {
			base = rev.Page().Landing.Base
		}
	}
	return c.guarded(ctx, x, grant.OpLand, l.ID, build(base), tell)
}

// lostLanding finds an unsettled landing of the same content that has reached the register.
func (c *Client) lostLanding(ctx context.Context, x *local.Session, build func(grant.Digest) func(grant.Meta) grant.Command) (*grant.Revision, *local.Attempt, error) {
	list, err := c.Store.Attempts(x)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range list {
		if a.Op != grant.OpLand {
			continue
		}
		rev, ok, err := grant.FindNonce(ctx, c.Store, x.Container, a.Nonce, a.Base)
		if err != nil {
			return nil, nil, err
		}
		if !ok || rev.Page().Landing == nil {
			continue
		}
		meta := grant.Meta{Container: x.Container, Nonce: a.Nonce, By: grant.Agent(x.Agent)}
		if grant.SameCommand(rev, build(rev.Page().Landing.Base)(meta)) == nil {
			return &rev, a, nil
		}
	}
	return nil, nil, nil // there is none: the caller goes on to land
}

// quarantined is the document of a refused landing.
type quarantined struct {
	Agent     string        `json:"agent"`
	Code      grant.Code    `json:"code"`
	Cause     string        `json:"cause"`
	Container string        `json:"container"`
	Current   currentGrant  `json:"current"`
	Do        string        `json:"do"`
	Ended     *grant.End    `json:"ended"` // how the grant ended that it came with
	Files     []File        `json:"files"`
	IDs       []grant.Range `json:"ids"`
	Manifest  grant.Digest  `json:"manifest"`
	RefusedAt grant.Time    `json:"refused_at"`
	V         int           `json:"v"`
	YourGrant int64         `json:"your_grant"` // 0: none
}

type currentGrant struct {
	Grant  int64         `json:"grant"`
	Holder *grant.Holder `json:"holder"`
	Rev    int64         `json:"rev"`
	State  grant.State   `json:"state"`
}

// keep copies what a refused landing was made of to the quarantine, with the refusal.
func (c *Client) keep(ctx context.Context, r *grant.Refusal, l *Landing, out *Landed, agent string, yours int64) error {
	refused := &RefusedLanding{Refusal: r}
	refused.Kept, refused.Err = c.quarantine(ctx, r, l, out, agent, yours)
	return refused
}

func (c *Client) quarantine(ctx context.Context, r *grant.Refusal, l *Landing, out *Landed, agent string, yours int64) (grant.Digest, error) {
	copied := []grant.Digest{out.SHA256}
	for _, f := range out.Manifest.Files {
		copied = append(copied, f.SHA256)
	}
	for _, d := range copied {
		if err := c.copyToQuarantine(ctx, r.Container, d); err != nil {
			return "", fmt.Errorf("keep the refused landing: %w", err)
		}
	}
	now, err := c.Store.Now(ctx)
	if err != nil {
		return "", err
	}
	ids := l.IDs
	if ids == nil {
		ids = []grant.Range{}
	}
	text, err := json.Marshal(quarantined{
		Agent: agent, Code: r.Code, Cause: r.Cause, Container: r.Container, Do: r.Hint, Ended: r.Ended,
		Current: currentGrant{r.Grant, r.Holder, r.Rev, r.State},
		Files:   out.Manifest.Files, IDs: ids, Manifest: out.SHA256, RefusedAt: now, V: 1, YourGrant: yours,
	})
	if err != nil {
		return "", err
	}
	sum, _, err := c.Store.Put(ctx, r.Container, grant.KindQuarantine, bytes.NewReader(append(text, '\n')))
	return sum, err
}

func (c *Client) copyToQuarantine(ctx context.Context, container string, d grant.Digest) error {
	f, err := c.Store.Get(ctx, container, grant.KindArtifact, d)
	if err != nil {
		return err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	_, _, err = c.Store.Put(ctx, container, grant.KindQuarantine, f)
	return err
}

func isDamaged(err error) bool { return errors.Is(err, local.ErrBadObject) }
