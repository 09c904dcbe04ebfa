package register

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// maxDocument bounds what is read of a refused landing's document.
const maxDocument = 1 << 20

// Refused is a landing that was refused and kept: what was asked, what was said, and what to do. Its canonical
// bytes are an object of the store, which nobody ever writes again. The fields stand in the order of their keys.
type Refused struct {
	At        grant.Time    `json:"at"` // by the store's clock, or the latest page's
	Base      grant.Digest  `json:"base"`
	By        grant.Actor   `json:"by"`
	Container string        `json:"container"`
	Discarded *Discard      `json:"discarded"` // of a document that takes another back; then Refusal is null
	ID        string        `json:"id"`        // the landing's nonce
	IDs       []grant.Range `json:"ids"`
	Manifest  grant.Digest  `json:"manifest"` // of what was brought
	Note      string        `json:"note"`
	Refusal   *Said         `json:"refusal"`
	V         int64         `json:"v"` // 1
}

// Said is a refusal: your grant, the present one, how yours ended, and what to do.
type Said struct {
	Cause  string        `json:"cause"`
	Code   grant.Code    `json:"code"`
	Ended  *grant.End    `json:"ended"` // how your grant ended; null when it has not
	Expiry grant.Time    `json:"expiry"`
	Grant  int64         `json:"grant"` // the present one
	Holder *grant.Holder `json:"holder"`
	Next   string        `json:"next"` // the command that helps
	Rev    int64         `json:"rev"`  // that it was judged on
	State  grant.State   `json:"state"`
	ToDo   []string      `json:"to_do"`
	Yours  int64         `json:"yours"`
}

// Discard says that a refused landing is not needed any more.
type Discard struct {
	Name   grant.Digest `json:"name"` // of the refused landing's document
	Reason string       `json:"reason"`
}

// Kept is a refused landing under its name.
type Kept struct {
	Refused
	Name grant.Digest // of the document
	// Gone is the document that discarded it; nil while it is kept.
	Gone *Refused
}

// Short is the name as people are shown it; Find takes it.
func (k *Kept) Short() string { return string(k.Name[:12]) }

// RefusedError says that a landing was refused for its grant's sake, and is kept.
type RefusedError struct {
	Refusal *grant.Refusal
	Kept    Kept
	Err     error // why it could not be kept: then what was brought is only where it came from
}

func (e *RefusedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%v; and it could not be kept, so what it brought is only where it came from: %v", e.Refusal, e.Err)
	}
	return fmt.Sprintf("%v; what it brought is kept: register refused export %s %s", e.Refusal, quoted(e.Kept.Container), e.Kept.Short())
}

// Unwrap gives the refusal, and why it could not be kept.
func (e *RefusedError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Refusal}
	}
	return []error{e.Refusal, e.Err}
}

// quoted is a container's name as a shell takes it.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(display.Text(s), "'", `'\''`) + "'"
}

// quarantine keeps a refused landing, whose artifacts and manifest are stored, and returns what to say.
func (r *Register) quarantine(ctx context.Context, c grant.Land, why *grant.Refusal) *RefusedError {
	k, err := r.keep(ctx, c, why)
	return &RefusedError{why, k, err}
}

func (r *Register) keep(ctx context.Context, c grant.Land, why *grant.Refusal) (Kept, error) {
	ended := why.Ended
	if ended == nil && why.Yours > 0 && why.Yours < why.Grant {
		// Longer ago than the page remembers. Not to know it is no reason to lose anything.
		ended, _ = grant.FindEnd(ctx, r.store, r.container, why.Yours)
		why.Ended = ended
	}
	d := Refused{
		At: r.now(ctx), Base: c.Base, By: c.By, Container: r.container, ID: c.Nonce, IDs: c.IDs, Manifest: c.Manifest, Note: c.Note, V: 1,
		Refusal: &Said{
			Cause: why.Cause, Code: why.Code, Ended: ended, Expiry: why.Expiry, Grant: why.Grant, Holder: why.Holder, Next: why.Next,
			Rev: why.Rev, State: why.State, Yours: why.Yours, ToDo: []string{
				"stop writing: this grant does not land any more",
				"stile grant petition " + quoted(r.container),
				"when it is granted, look at what landed since, and land again on the new head with new ids",
			},
		},
	}
	if d.IDs == nil {
		d.IDs = []grant.Range{}
	}
	// The same attempt, refused once more, is kept once.
	list, _ := r.Kept(ctx, false)
	for _, k := range list {
		if k.ID == d.ID && k.Manifest == d.Manifest && k.By == d.By && k.Refusal.Yours == d.Refusal.Yours {
			return k, nil
		}
	}
	name, err := r.putDocument(ctx, &d)
	return Kept{Refused: d, Name: name}, err
}

// now is the store's clock; where it has none, the head's stamp: a time that is not too late.
func (r *Register) now(ctx context.Context) grant.Time {
	if c, ok := r.store.(grant.Clock); ok {
		if t, err := c.Now(ctx); err == nil {
			return t
		}
	}
	if head, err := r.store.Head(ctx, r.container); err == nil {
		return head.Page().Stamp.T
	}
	return 0
}

func (r *Register) putDocument(ctx context.Context, d *Refused) (grant.Digest, error) {
	data, err := canonical(d)
	if err != nil {
		return "", err
	}
	return r.put(ctx, grant.KindQuarantine, data)
}

// Kept lists the refused landings, the earliest first; those that were discarded only if asked. Where a document
// cannot be read, there is an error as well as the others: it may be the only one that knows of somebody's work.
func (r *Register) Kept(ctx context.Context, discarded bool) ([]Kept, error) {
	names, err := r.store.Objects(ctx, r.container, grant.KindQuarantine)
	if err != nil {
		return nil, err
	}
	var list []Kept
	var faults []error
	gone := map[grant.Digest]*Refused{}
	for _, name := range names {
		d, err := r.readDocument(ctx, name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if d.Discarded != nil {
			gone[d.Discarded.Name] = d
			continue
		}
		list = append(list, Kept{Refused: *d, Name: name})
	}
	for i := range list {
		list[i].Gone = gone[list[i].Name]
	}
	if !discarded {
		list = slices.DeleteFunc(list, func(k Kept) bool { return k.Gone != nil })
	}
	slices.SortStableFunc(list, func(a, b Kept) int { return cmp.Compare(a.At, b.At) })
	return list, errors.Join(faults...)
}

func (r *Register) readDocument(ctx context.Context, name grant.Digest) (*Refused, error) {
	data, err := r.document(ctx, grant.KindQuarantine, name, "a refused landing", maxDocument)
	if err != nil {
		return nil, err
	}
	d := &Refused{}
	err = decode(data, d, &d.V)
	if err == nil {
		var again []byte
		if again, err = canonical(d); err == nil && !bytes.Equal(again, data) {
			err = errors.New("not in canonical form")
		}
	}
	if err == nil {
		err = d.check(r.container)
	}
	if err != nil {
		return nil, fmt.Errorf("refused landing %s of %s: %w", name, display.Text(r.container), err)
	}
	return d, nil
}

func (d *Refused) check(container string) error {
	switch {
	case d.V != 1:
		return errors.New("v is not 1")
	case d.Container != container:
		return errors.New("it is of another container")
	case (d.Discarded == nil) == (d.Refusal == nil):
		return errors.New("it is one of a refusal and a discard")
	case d.Discarded != nil && (!valid(d.Discarded.Name) || d.Discarded.Reason == "" || !line(d.Discarded.Reason, grant.MaxText)):
		return errors.New("discarded is not what it should be")
	case d.Refusal != nil && (!valid(d.Manifest) || grant.CheckNonce(d.ID) != nil):
		return errors.New("manifest or id is not what it should be")
	}
	return nil
}

// What may be wrong with the name of a refused landing.
var (
	ErrNotKept   = errors.New("there is no such refused landing")
	ErrAmbiguous = errors.New("more than one begins so")
)

// Find looks a refused landing up by the first six digits of its name or more, or by its id. One that was
// discarded is found as well: see Kept.Gone.
func (r *Register) Find(ctx context.Context, name string) (Kept, error) {
	list, err := r.Kept(ctx, true)
	var found []Kept
	for _, k := range list {
		if k.ID == name || len(name) >= 6 && strings.HasPrefix(string(k.Name), name) {
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && err != nil:
		return Kept{}, err
	case len(found) == 0:
		return Kept{}, fmt.Errorf("%w: %s", ErrNotKept, shown(name))
	}
	return Kept{}, fmt.Errorf("%w: %s", ErrAmbiguous, shown(name))
}

// ErrReason says that a discard needs a reason.
var ErrReason = errors.New("a discard needs a reason")

// Discard says, with a reason, that a refused landing is not needed any more: the next collection takes what only
// it needed. Until then everything is there. Discarding twice is once.
func (r *Register) Discard(ctx context.Context, k Kept, by grant.Actor, reason string) (Kept, error) {
	switch {
	case strings.TrimSpace(reason) == "":
		return k, ErrReason
	case !line(reason, grant.MaxText):
		return k, fmt.Errorf("%w: of one line that can be shown, at most %d bytes", ErrReason, grant.MaxText)
	case k.Gone != nil:
		return k, nil
	}
	d := Refused{
		At: r.now(ctx), By: by, Container: r.container, Discarded: &Discard{k.Name, reason}, IDs: []grant.Range{}, V: 1,
	}
	if _, err := r.putDocument(ctx, &d); err != nil {
		return k, err
	}
	k.Gone = &d
	return k, nil
}
