package granthttp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// The headers that this API has of its own, and those that it reads.
const (
	HeaderKey      = "Idempotency-Key" // the command's nonce
	HeaderSince    = "Stile-Since"     // where a retry is to be looked for: "new", or EPOCH.REV; everywhere without it
	HeaderReplayed = "Stile-Replayed"  // "true": an earlier attempt had done it
	HeaderNow      = "Stile-Now"       // the service's clock
	HeaderBadge    = "Stile-Badge"     // of the page, by that clock
	HeaderKept     = "Stile-Kept"      // of a restore: where bytes are that could not be read
)

// SinceNew says that a nonce was never tried.
const SinceNew = "new"

// MaxBody bounds a command's body, in bytes.
const MaxBody = 1 << 20

// body is what a command says, besides its container and nonce. Each command has some of the fields.
type body struct {
	By          *grant.Actor   `json:"by,omitempty"`
	Grant       int64          `json:"grant,omitempty"`
	Secret      string         `json:"secret,omitempty"` // 64 hex digits
	Session     grant.Digest   `json:"session,omitempty"`
	Params      *grant.Params  `json:"params,omitempty"`
	Count       int64          `json:"count,omitempty"`
	Block       int64          `json:"block,omitempty"`
	Worker      string         `json:"worker,omitempty"`
	Note        string         `json:"note,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Base        grant.Digest   `json:"base,omitempty"`
	Manifest    grant.Digest   `json:"manifest,omitempty"`
	Empty       string         `json:"empty,omitempty"`
	IDs         []grant.Range  `json:"ids,omitempty"`
	Keep        []int64        `json:"keep,omitempty"`
	ReadBack    grant.Digest   `json:"read_back,omitempty"`
	Seen        int64          `json:"seen,omitempty"`
	Own         []grant.Digest `json:"own,omitempty"`
	Witness     *grant.Witness `json:"witness,omitempty"`
	ID          string         `json:"id,omitempty"`
	Done        bool           `json:"done,omitempty"`
	Record      string         `json:"record,omitempty"`
	Author      string         `json:"author,omitempty"`
	Kernel      grant.Digest   `json:"kernel,omitempty"`
	Assumptions grant.Digest   `json:"assumptions,omitempty"`
	Deriver     string         `json:"deriver,omitempty"`
	Result      grant.Digest   `json:"result,omitempty"`
	Verdict     grant.Verdict  `json:"verdict,omitempty"`
}

const proof = "grant secret "

// fields are those that a command may have. Fenced commands are missing: they run where the estate is, under its
// kernel lock.
var fields = map[grant.Op]string{
	grant.OpCreate: "params", grant.OpPetition: "", grant.OpTouch: "", grant.OpWithdraw: "",
	grant.OpAcquire: "session secret", grant.OpHeartbeat: proof,
	grant.OpIDs: proof + "count block worker", grant.OpBlock: proof + "worker note", grant.OpCloseBlock: proof + "block reason",
	grant.OpLand: proof + "base manifest empty ids keep note", grant.OpRelease: proof + "read_back",
	grant.OpClear: "reason seen own", grant.OpRestore: "reason witness params",
	grant.OpResolve:    proof + "id done reason",
	grant.OpCommission: proof + "record author kernel assumptions deriver",
	grant.OpDerive:     "block", grant.OpStage: "block result", grant.OpJudge: "block verdict reason",
}

// Ops lists the commands that can be given, in order.
func Ops() []grant.Op {
	list := make([]grant.Op, 0, len(fields))
	for op := range fields {
		list = append(list, op)
	}
	slices.Sort(list)
	return list
}

// FieldError says what is wrong with a body, and with which of its fields, if it is one's fault.
type FieldError struct {
	Field string
	Why   string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Why
	}
	return e.Field + ": " + e.Why
}

// Object reads a JSON object whose keys are among those allowed; an empty text is an object without any.
func Object(data []byte, allowed ...string) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var object map[string]json.RawMessage
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil, &FieldError{Why: "the body is not a JSON object"}
	}
	if dec.More() {
		return nil, &FieldError{Why: "something follows the JSON object"}
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys) // the same one is named each time
	for _, key := range keys {
		if !slices.Contains(allowed, key) {
			return nil, &FieldError{Field: display.Text(cut(key)), Why: "no such field; there are: " + strings.Join(allowed, ", ")}
		}
	}
	return object, nil
}

func cut(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// Decode reads the body of a command. meta has its container and nonce; its By is what the body says, the zero Actor
// when it says nothing. also are fields that are the caller's to read. Errors are a *FieldError, or grant.CodeBadInput
// for an op that is no command here.
func Decode(op grant.Op, meta grant.Meta, data []byte, also ...string) (grant.Command, error) {
	names, ok := fields[op]
	if !ok {
		return nil, fmt.Errorf("%w: %q is no command that can be given over HTTP", grant.CodeBadInput, display.Text(cut(string(op))))
	}
	allowed := append([]string{"by"}, strings.Fields(names)...)
	object, err := Object(data, append(allowed, also...)...)
	if err != nil {
		return nil, err
	}
	for _, key := range also {
		delete(object, key)
	}
	var b body
	for key, raw := range object {
		one, err := json.Marshal(map[string]json.RawMessage{key: raw})
		if err == nil {
			dec := json.NewDecoder(bytes.NewReader(one))
			dec.DisallowUnknownFields()
			err = dec.Decode(&b)
		}
		if err != nil {
			return nil, &FieldError{Field: key, Why: "not of the type that it must be"}
		}
	}
	if b.By != nil {
		meta.By = *b.By
	}
	return b.command(op, meta)
}

func (b *body) proof() (grant.Session, error) {
	s := grant.Session{Grant: b.Grant}
	raw, err := hex.DecodeString(b.Secret)
	if err != nil || len(raw) != len(s.Secret) {
		return s, &FieldError{Field: "secret", Why: "64 hex digits are needed"}
	}
	copy(s.Secret[:], raw)
	return s, nil
}

func (b *body) command(op grant.Op, m grant.Meta) (grant.Command, error) {
	var s grant.Session
	var err error
	if strings.HasPrefix(fields[op], proof) {
		if s, err = b.proof(); err != nil {
			return nil, err
		}
	}
	switch op {
	case grant.OpCreate:
		return grant.Create{Meta: m, Params: deref(b.Params)}, nil
	case grant.OpPetition:
		return grant.Petition{Meta: m}, nil
	case grant.OpTouch:
		return grant.Touch{Meta: m}, nil
	case grant.OpWithdraw:
		return grant.Withdraw{Meta: m}, nil
	case grant.OpAcquire:
		return b.acquire(m)
	case grant.OpHeartbeat:
		return grant.Heartbeat{Meta: m, Session: s}, nil
	case grant.OpIDs:
		return grant.LeaseIDs{Meta: m, Session: s, Count: b.Count, Block: b.Block, Worker: b.Worker}, nil
	case grant.OpBlock:
		return grant.AssignBlock{Meta: m, Session: s, Worker: b.Worker, Note: b.Note}, nil
	case grant.OpCloseBlock:
		return grant.CloseBlock{Meta: m, Session: s, Block: b.Block, Reason: b.Reason}, nil
	case grant.OpLand:
		return grant.Land{Meta: m, Session: s, Base: b.Base, Manifest: b.Manifest, Empty: b.Empty, IDs: b.IDs, Keep: b.Keep, Note: b.Note}, nil
	case grant.OpRelease:
		return grant.Release{Meta: m, Session: s, ReadBack: b.ReadBack}, nil
	case grant.OpClear:
		return grant.Clear{Meta: m, Reason: b.Reason, Seen: b.Seen, Own: b.Own}, nil
	case grant.OpRestore:
		return grant.Restore{Meta: m, Reason: b.Reason, Witness: deref(b.Witness), Params: deref(b.Params)}, nil
	case grant.OpResolve:
		return grant.Resolve{Meta: m, Session: s, ID: b.ID, Done: b.Done, Reason: b.Reason}, nil
	case grant.OpCommission:
		return grant.Commission{
			Meta: m, Session: s, Record: b.Record, Author: b.Author, Kernel: b.Kernel, Assumptions: b.Assumptions, Deriver: b.Deriver,
		}, nil
	case grant.OpDerive:
		return grant.Derive{Meta: m, Block: b.Block}, nil
	case grant.OpStage:
		return grant.Stage{Meta: m, Block: b.Block, Result: b.Result}, nil
	case grant.OpJudge:
		return grant.Judge{Meta: m, Block: b.Block, Verdict: b.Verdict, Reason: b.Reason}, nil
	}
	return nil, fmt.Errorf("%w: %q", grant.CodeBadInput, string(op))
}

// acquire takes the secret, or its hash alone, which is better: the service need not see the secret yet.
func (b *body) acquire(m grant.Meta) (grant.Command, error) {
	hash := b.Session
	if b.Secret != "" {
		s, err := b.proof()
		if err != nil {
			return nil, err
		}
		if hash != "" && hash != s.Secret.Hash() {
			return nil, &FieldError{Field: "session", Why: "it is not the secret's SHA-256"}
		}
		hash = s.Secret.Hash()
	}
	if hash == "" {
		return nil, &FieldError{Field: "session", Why: "the SHA-256 of a fresh secret is needed, or the secret itself"}
	}
	return grant.Acquire{Meta: m, Session: hash}, nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// ErrNotRemote says that a command cannot be given through a service.
var ErrNotRemote = errors.New("it runs where the estate is, not through a service")

// Encode gives a command's body. ErrNotRemote for fenced commands.
func Encode(c grant.Command) ([]byte, error) {
	by := grant.MetaOf(c).By
	b := body{By: &by}
	own := func(s grant.Session) { b.Grant, b.Secret = s.Grant, hex.EncodeToString(s.Secret[:]) }
	switch c := c.(type) {
	case grant.Create:
		b.Params = &c.Params
	case grant.Petition, grant.Touch, grant.Withdraw:
	case grant.Acquire:
		b.Session = c.Session
	case grant.Heartbeat:
		own(c.Session)
	case grant.LeaseIDs:
		own(c.Session)
		b.Count, b.Block, b.Worker = c.Count, c.Block, c.Worker
	case grant.AssignBlock:
		own(c.Session)
		b.Worker, b.Note = c.Worker, c.Note
	case grant.CloseBlock:
		own(c.Session)
		b.Block, b.Reason = c.Block, c.Reason
	case grant.Land:
		own(c.Session)
		b.Base, b.Manifest, b.Empty, b.IDs, b.Keep, b.Note = c.Base, c.Manifest, c.Empty, c.IDs, c.Keep, c.Note
	case grant.Release:
		own(c.Session)
		b.ReadBack = c.ReadBack
	case grant.Clear:
		b.Reason, b.Seen, b.Own = c.Reason, c.Seen, c.Own
	case grant.Restore:
		b.Reason, b.Witness, b.Params = c.Reason, &c.Witness, &c.Params
	case grant.Resolve:
		own(c.Session)
		b.ID, b.Done, b.Reason = c.ID, c.Done, c.Reason
	case grant.Commission:
		own(c.Session)
		b.Record, b.Author, b.Kernel, b.Assumptions, b.Deriver = c.Record, c.Author, c.Kernel, c.Assumptions, c.Deriver
	case grant.Derive:
		b.Block = c.Block
	case grant.Stage:
		b.Block, b.Result = c.Block, c.Result
	case grant.Judge:
		b.Block, b.Verdict, b.Reason = c.Block, c.Verdict, c.Reason
	default:
		return nil, fmt.Errorf("%s: %w", c.Op(), ErrNotRemote)
	}
	return json.Marshal(b)
}
