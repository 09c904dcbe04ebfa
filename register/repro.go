package register

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/grant"
)

// maxResult bounds the results that are searched for in what a deriver is given.
const maxResult = 1 << 20

// maxGiven bounds a kernel or assumptions.
const maxGiven = 64 << 20

// ErrTellsResult says that a deriver would be told the result that is to be derived again.
var ErrTellsResult = errors.New("it tells the result")

// ErrRecord says that there is no such record to be derived again.
var ErrRecord = errors.New("there is no such record")

// Record is an artifact that landed, as a reproduction names it: "12:data/mass.json" is data/mass.json of
// landing 12.
type Record struct {
	Seq  int64
	Name string
}

func (r Record) String() string { return fmt.Sprintf("%d:%s", r.Seq, r.Name) }

// ParseRecord reads what String writes.
func ParseRecord(s string) (Record, error) {
	seq, name, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(seq, 10, 64)
	r := Record{n, name}
	if !ok || err != nil || n < 1 || nameFault(name) != "" || r.String() != s {
		return Record{}, fmt.Errorf("%w: %s", ErrRecord, shown(s))
	}
	return r, nil
}

// Bundle is what a deriver is given: the kernel and the record's assumptions, frozen, and not the result. Its JSON
// is what stile repro commission prints.
type Bundle struct {
	Assumptions grant.Digest `json:"assumptions"`
	Block       int64        `json:"block"`
	Container   string       `json:"container"`
	Deriver     string       `json:"deriver"`
	Kernel      grant.Digest `json:"kernel"`
	Record      string       `json:"record"`
	V           int64        `json:"v"` // 1
}

// Commissioning asks for a reproduction of a record.
type Commissioning struct {
	// Command says who asks, and for whom: its Meta, Session and Deriver. The rest is made here; Author, where it
	// is empty, is who landed the record.
	Command     grant.Commission
	Record      Record // Seq 0: of the latest landing
	Kernel      []byte
	Assumptions []byte
	Since       grant.Ref
}

// Commission freezes the kernel and the record's assumptions, and asks for the derivation. Where one of them has
// the result in it, or the SHA-256 of it, that is ErrTellsResult, and nothing is commissioned.
func (r *Register) Commission(ctx context.Context, c Commissioning) (bundle Bundle, err error) {
	err = r.guarded(ctx, func() error {
		which := ""
		if c.Record.Seq != 0 {
			which = strconv.FormatInt(c.Record.Seq, 10)
		}
		l, e, err := r.record(ctx, which, c.Record.Name)
		if err != nil {
			return err
		}
		c.Record.Seq = l.Seq
		if err := r.tellsNothing(ctx, e, c.Kernel, c.Assumptions); err != nil {
			return err
		}
		cmd := c.Command
		cmd.Record = c.Record.String()
		if cmd.Author == "" {
			cmd.Author = l.Agent
		}
		if cmd.Kernel, err = r.put(ctx, grant.KindArtifact, c.Kernel); err != nil {
			return err
		}
		if cmd.Assumptions, err = r.put(ctx, grant.KindArtifact, c.Assumptions); err != nil {
			return err
		}
		rev, _, err := r.do(ctx, grant.Request{Command: cmd, Since: c.Since})
		if err == nil {
			bundle = BundleOf(r.container, rev.Page().Blocks[len(rev.Page().Blocks)-1])
		}
		return err
	})
	return bundle, err
}

// BundleOf is what the deriver of a block is given.
func BundleOf(container string, b grant.Block) Bundle {
	return Bundle{
		Assumptions: b.Repro.Assumptions, Block: b.ID, Container: container, Deriver: b.Worker, Kernel: b.Repro.Kernel, Record: b.Repro.Record, V: 1,
	}
}

// record finds an artifact in the content after a landing.
func (r *Register) record(ctx context.Context, which, name string) (Landed, Entry, error) {
	l, m, err := r.Content(ctx, which)
	if err != nil {
		return l, Entry{}, err
	}
	if m != nil {
		if e, ok := m.Find(name); ok && e.Kind == KindFile {
			return l, e, nil
		}
	}
	return l, Entry{}, fmt.Errorf("%w: landing %d has no file %s", ErrRecord, l.Seq, shown(name))
}

// tellsNothing searches what a deriver is given for the result.
func (r *Register) tellsNothing(ctx context.Context, result Entry, given ...[]byte) error {
	needles := [][]byte{[]byte(result.SHA256)}
	if result.Size > 0 && result.Size <= maxResult {
		f, err := r.Open(ctx, result)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		// A result of a byte or two is in everything.
		if data = bytes.TrimSpace(data); len(data) >= 8 {
			needles = append(needles, data)
		}
	}
	for i, g := range given {
		if len(g) > maxGiven {
			return fmt.Errorf("%s of %d bytes: at most %d", []string{"a kernel", "assumptions"}[i], len(g), maxGiven)
		}
		for _, n := range needles {
			if bytes.Contains(g, n) {
				return fmt.Errorf("%s: %w", []string{"the kernel", "the assumptions"}[i], ErrTellsResult)
			}
		}
	}
	return nil
}

// Given opens what a deriver is given: kernel or assumptions.
func (r *Register) Given(ctx context.Context, d grant.Digest, name string) ([]byte, error) {
	return r.document(ctx, grant.KindArtifact, d, name, maxGiven)
}

// Derive begins a derivation, for its deriver.
func (r *Register) Derive(ctx context.Context, c grant.Derive) (Bundle, error) {
	rev, _, err := r.do(ctx, grant.Request{Command: c})
	if err != nil {
		return Bundle{}, err
	}
	b, err := reproduction(rev.Page(), c.Block)
	if err != nil {
		return Bundle{}, err
	}
	return BundleOf(r.container, b), nil
}

func reproduction(p *grant.Page, id int64) (grant.Block, error) {
	i := slices.IndexFunc(p.Blocks, func(b grant.Block) bool { return b.ID == id && b.Repro != nil })
	if i < 0 {
		return grant.Block{}, fmt.Errorf("%w: no open reproduction %d", grant.CodeNoBlock, id)
	}
	return p.Blocks[i], nil
}

// Submit stages a result: from then on it cannot change, and its stamp is the store's.
func (r *Register) Submit(ctx context.Context, c grant.Stage, result io.Reader) (grant.Block, error) {
	var b grant.Block
	err := r.guarded(ctx, func() error {
		var err error
		if c.Result, _, err = r.store.Put(ctx, r.container, grant.KindStaging, result); err != nil {
			return err
		}
		rev, _, err := r.do(ctx, grant.Request{Command: c})
		if err != nil {
			return err
		}
		b, err = reproduction(rev.Page(), c.Block)
		return err
	})
	return b, err
}

// Pair is what a judge compares: the record as it landed, and the result that was staged.
type Pair struct {
	Block  grant.Block
	Record Entry
	reg    *Register
}

// Pair gives what is to be judged. A result that is not staged yet is the machine's to refuse, so that nobody
// sees one before its stamp: NOT_STAGED comes from judging.
func (r *Register) Pair(ctx context.Context, block int64) (Pair, error) {
	head, err := r.store.Head(ctx, r.container)
	if err != nil {
		return Pair{}, err
	}
	b, err := reproduction(head.Page(), block)
	if err != nil {
		return Pair{}, err
	}
	rec, err := ParseRecord(b.Repro.Record)
	if err != nil {
		return Pair{}, err
	}
	_, e, err := r.record(ctx, strconv.FormatInt(rec.Seq, 10), rec.Name)
	return Pair{b, e, r}, err
}

// Staged tells whether there is a result.
func (p Pair) Staged() bool { return p.Block.Repro.Result != "" }

// Same tells whether both have the same bytes.
func (p Pair) Same() bool { return p.Block.Repro.Result == p.Record.SHA256 }

// Original and Result open the two.
func (p Pair) Original(ctx context.Context) (io.ReadCloser, error) { return p.reg.Open(ctx, p.Record) }

// Result opens what was staged.
func (p Pair) Result(ctx context.Context) (io.ReadCloser, error) {
	return p.reg.open(ctx, grant.KindStaging, p.Block.Repro.Result, "the staged result")
}

// Judge records a verdict.
func (r *Register) Judge(ctx context.Context, c grant.Judge) (grant.Block, error) {
	rev, _, err := r.do(ctx, grant.Request{Command: c})
	if err != nil {
		return grant.Block{}, err
	}
	return reproduction(rev.Page(), c.Block)
}

// Reproduction is one, as it is or, when it was closed, as it last was.
type Reproduction struct {
	grant.Block
	Closed bool
}

// Reproductions lists the open ones, or all that ever were, the earliest first.
func (r *Register) Reproductions(ctx context.Context, all bool) ([]Reproduction, error) {
	at, err := r.store.Head(ctx, r.container)
	if err != nil {
		return nil, err
	}
	var list []Reproduction
	seen := map[int64]bool{}
	pages := &ahead{r: r}
	for open := true; ; open = false {
		p := at.Page()
		for _, b := range p.Blocks {
			if b.Repro != nil && !seen[b.ID] {
				seen[b.ID] = true
				list = append(list, Reproduction{b, !open})
			}
		}
		if !all {
			break
		}
		if at, err = pages.before(ctx, p); err != nil {
			return nil, err
		}
		if at.Page() == nil {
			break
		}
	}
	slices.SortFunc(list, func(a, b Reproduction) int { return int(a.ID - b.ID) })
	return list, nil
}
