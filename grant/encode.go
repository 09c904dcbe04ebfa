package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Seal checks a page and gives it its bytes. An error is a bug of whoever made the page; Apply's results are
// sealed.
func Seal(p *Page) (Revision, error) {
	r, err := seal(p)
	if err != nil {
		return Revision{}, err
	}
	if err := shape(r.page); err != nil {
		return Revision{}, fmt.Errorf("seal page: %w", err)
	}
	if b := pageInvariant(r.page); b != nil {
		return Revision{}, fmt.Errorf("seal page: %w", b)
	}
	if len(r.bytes) > MaxPage {
		return Revision{}, fmt.Errorf("seal page: %d bytes, at most %d", len(r.bytes), MaxPage)
	}
	return r, nil
}

// seal encodes without a look at what the page says.
func seal(p *Page) (Revision, error) {
	p = p.clone()
	text, err := canonical(p)
	if err != nil {
		return Revision{}, fmt.Errorf("seal page: %w", err)
	}
	return Revision{page: p, bytes: text, hash: digestOf(text)}, nil
}

// Open decodes a page from its bytes. ErrBadPage, with the reason, for anything but the canonical encoding of
// a page that could be; ErrNewer for a later format.
func Open(data []byte) (Revision, error) {
	if len(data) > MaxPage {
		return Revision{}, badPage("%d bytes, at most %d", len(data), MaxPage)
	}
	p := &Page{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil || p.V != Version {
		return Revision{}, notOurs(data, err)
	}
	// Whatever else could be spelt otherwise (order and number of keys, blanks, escapes, numbers, what
	// follows) shows in the bytes.
	r, err := seal(p)
	if err != nil {
		return Revision{}, badPage("%v", err)
	}
	if !bytes.Equal(r.bytes, data) {
		return Revision{}, badPage("not in canonical form")
	}
	if err := shape(r.page); err != nil {
		return Revision{}, badPage("%v", err)
	}
	if b := pageInvariant(r.page); b != nil {
		return Revision{}, badPage("%v", b)
	}
	return r, nil
}

// notOurs says what it is that does not decode: a later format's page, or none.
func notOurs(data []byte, fault error) error {
	var format struct {
		V *int64 `json:"v"`
	}
	err := json.Unmarshal(data, &format)
	switch {
	case err == nil && format.V != nil && *format.V > Version:
		return fmt.Errorf("%w: page of format %d, written by a newer stile; this one reads up to %d", ErrNewer, *format.V, Version)
	case fault != nil:
		return badPage("%s", jsonFault(fault))
	}
	return badPage("no page of format %d", Version)
}

// badPage is an ErrBadPage with its reason.
func badPage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadPage, fmt.Sprintf(format, args...))
}

// jsonFault shows an error of the decoder, which may quote what it read.
func jsonFault(err error) string { return clip(err.Error(), 120) }

// clip makes text safe to show: unprintable characters as \x1b or \u202e, cut at n characters.
func clip(s string, n int) string {
	var b bytes.Buffer
	for i, r := range []rune(s) {
		if i == n {
			b.WriteString("...")
			break
		}
		if printable(string(r)) {
			b.WriteRune(r)
		} else {
			q := fmt.Sprintf("%+q", r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// canonical encodes with keys in the order of the struct's fields, which is the sorted one, and a newline.
func canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func digestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

// list copies a list; a list is never null in JSON.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// clone copies a page, with lists that are never nil.
func (p *Page) clone() *Page {
	q := *p
	q.Blocks, q.Doubts, q.Passed, q.Queue = list(p.Blocks), list(p.Doubts), list(p.Passed), list(p.Queue)
	q.IDs.Free, q.IDs.Leases = list(p.IDs.Free), list(p.IDs.Leases)
	for i := range q.IDs.Leases {
		q.IDs.Leases[i].Used = list(q.IDs.Leases[i].Used)
	}
	for i := range q.Blocks {
		q.Blocks[i].Repro = copyOf(q.Blocks[i].Repro)
	}
	q.Ended, q.Holder, q.Landing, q.Offer, q.Running = copyOf(p.Ended), copyOf(p.Holder), copyOf(p.Landing), copyOf(p.Offer), copyOf(p.Running)
	if q.Audit = copyOf(p.Audit); q.Audit != nil {
		q.Audit.Holder = copyOf(q.Audit.Holder)
	}
	if q.Landing != nil {
		q.Landing.IDs = list(q.Landing.IDs)
	}
	return &q
}

// CommandDigest is what Page.Digest has of a command: everything but its nonce, and of a secret only its hash.
func CommandDigest(cmd Command) Digest {
	switch c := cmd.(type) { // equal commands in one spelling
	case Create:
		c.Params = c.Params.orDefault()
		cmd = c
	case Restore:
		c.Params = c.Params.orDefault()
		cmd = c
	case Land:
		c.IDs, c.Keep = list(c.IDs), sorted(c.Keep)
		cmd = c
	case Finish:
		c.IDs, c.Keep = list(c.IDs), sorted(c.Keep)
		cmd = c
	}
	text, err := canonical(struct {
		Command Command `json:"command"`
		Op      Op      `json:"op"`
	}{cmd, cmd.Op()})
	if err != nil { // there is nothing in a command that does not encode
		panic(err)
	}
	return digestOf(text)
}

func sorted(s []int64) []int64 {
	s = list(s)
	slices.Sort(s)
	return s
}

func (p Params) orDefault() Params {
	if p == (Params{}) {
		return DefaultParams()
	}
	return p
}

// HeadAfter is the register's head after a landing: the SHA-256 over the head before, the manifest and the
// landing, so that no head ever comes back and a base is never mistaken for another with equal content.
func HeadAfter(container string, base Digest, seq, grant int64, nonce string, manifest Digest) Digest {
	text, err := canonical(struct {
		Base      Digest `json:"base"`
		Container string `json:"container"`
		Grant     int64  `json:"grant"`
		ID        string `json:"id"`
		Seq       int64  `json:"seq"`
		SHA256    Digest `json:"sha256"`
	}{base, container, grant, nonce, seq, manifest})
	if err != nil {
		panic(err)
	}
	return digestOf(text)
}
