package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/register"
)

// body reads a command's body, of JSON.
func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(ct), "application/json") {
		// A form of another site's can send a few other types without asking first.
		return nil, &statusError{http.StatusUnsupportedMediaType, granthttp.CodeMediaType, "the body must be of Content-Type: application/json", ""}
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, granthttp.MaxBody))
}

// request is a command as it came.
type request struct {
	cmd   grant.Command
	do    grant.Request
	files []register.Entry // of a landing that lists them
}

// command carries one out: POST /v1/containers/NAME/OP.
func (s *Server) command(w http.ResponseWriter, r *http.Request) error {
	id, err := s.acts(r)
	if err != nil {
		return err
	}
	data, err := s.body(w, r)
	if err != nil {
		return err
	}
	req, err := s.decode(r, id, data)
	if err != nil {
		return err
	}
	if err := s.there(); err != nil {
		return err
	}
	rev, replayed, kept, err := s.carryOut(r.Context(), req)
	if err != nil {
		return err
	}
	s.hub.nudge()
	if kept != "" {
		w.Header().Set(granthttp.HeaderKept, kept)
	}
	status := http.StatusOK
	if req.cmd.Op() == grant.OpCreate && !replayed {
		status = http.StatusCreated
	}
	if req.cmd.Op() == grant.OpLand && !replayed {
		s.metrics.landed()
	}
	return s.replyPage(w, r, status, rev, replayed)
}

// nonceOf is the nonce of a request: its Idempotency-Key, or a fresh one.
func nonceOf(r *http.Request) (string, error) {
	nonce := r.Header.Get(granthttp.HeaderKey)
	if nonce == "" {
		var b [12]byte
		_, _ = rand.Read(b[:]) // never fails
		nonce = hex.EncodeToString(b[:])
	}
	return nonce, grant.CheckNonce(nonce)
}

// field reads one field of a body, if it is there.
func field(object map[string]json.RawMessage, key string, into any) error {
	raw, ok := object[key]
	if !ok || json.Unmarshal(raw, into) == nil {
		return nil
	}
	return &granthttp.FieldError{Field: key, Why: "not of the type that it must be"}
}

// decode reads a command and who gives it.
func (s *Server) decode(r *http.Request, id identity, data []byte) (*request, error) {
	meta := grant.Meta{Container: r.PathValue("container")}
	if err := grant.CheckName(meta.Container); err != nil {
		return nil, err
	}
	var err error
	if meta.Nonce, err = nonceOf(r); err != nil {
		return nil, err
	}
	anywhere := r.Header.Get(granthttp.HeaderKey) != ""
	op := grant.Op(r.PathValue("op"))
	var also []string
	if op == grant.OpLand {
		also = []string{"entries"}
	}
	cmd, err := granthttp.Decode(op, meta, data, also...)
	if err != nil {
		return nil, err
	}
	by, err := id.as(grant.MetaOf(cmd).By)
	if err != nil {
		return nil, err
	}
	if (op == grant.OpClear || op == grant.OpRestore) && by.Role != grant.RoleOperator {
		return nil, errForbidden(string(op) + " is an operator's, and the token is an agent's")
	}
	if grant.MetaOf(cmd).By != by {
		meta.By = by
		if cmd, err = granthttp.Decode(op, meta, data, also...); err != nil {
			return nil, err
		}
	}
	req := &request{cmd: cmd, do: grant.Request{Command: cmd}}
	if req.files, err = entries(op, data); err != nil {
		return nil, err
	}
	switch since := r.Header.Get(granthttp.HeaderSince); {
	case since == granthttp.SinceNew:
	case since != "":
		at, ok := granthttp.ParsePlace(since)
		if !ok {
			return nil, &granthttp.FieldError{Field: granthttp.HeaderSince, Why: `it is "new", or EPOCH.REV`}
		}
		req.do.Since = at
		req.do.Anywhere = at == grant.Ref{}
	default:
		req.do.Anywhere = anywhere
	}
	req.do.Check, err = ifMatch(r)
	return req, err
}

// entries are the files that a landing lists.
func entries(op grant.Op, data []byte) ([]register.Entry, error) {
	if op != grant.OpLand {
		return nil, nil
	}
	var b struct {
		Entries json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, &granthttp.FieldError{Why: "the body is not a JSON object"}
	}
	if b.Entries == nil {
		return nil, nil
	}
	var list []register.Entry
	if err := json.Unmarshal(b.Entries, &list); err != nil || len(list) == 0 {
		return nil, &granthttp.FieldError{Field: "entries", Why: `a list of {"kind":"file","mode":420,"name":…,"sha256":…,"size":…} is needed`}
	}
	for i := range list {
		if list[i].Kind == "" {
			list[i].Kind = register.KindFile
		}
		if list[i].Kind == register.KindFile && list[i].Mode == 0 {
			list[i].Mode = 0o644
		}
		if err := register.CheckName(list[i].Name); err != nil {
			return nil, &granthttp.FieldError{Field: "entries", Why: err.Error()}
		}
	}
	return list, nil
}

// ifMatch is the check of a request that names the revision that it is for.
func ifMatch(r *http.Request) (func(grant.Revision) error, error) {
	want := r.Header.Get("If-Match")
	if want == "" || want == "*" {
		return nil, nil //nolint:nilnil // without the header nothing is checked
	}
	at, ok := granthttp.ParsePlace(strings.Trim(want, `"`))
	if !ok {
		return nil, &granthttp.FieldError{Field: "If-Match", Why: `it is "EPOCH.REV", as in ETag`}
	}
	return func(head grant.Revision) error {
		if head.Page() == nil {
			return errStale{want: want}
		}
		have := head.Ref()
		if have.Epoch != at.Epoch || have.Rev != at.Rev || at.Hash != "" && at.Hash != have.Hash {
			return errStale{want: want, have: granthttp.Place(have.Epoch, have.Rev)}
		}
		return nil
	}, nil
}

// onPage holds a request that changes no page against its If-Match.
func (s *Server) onPage(r *http.Request) error {
	check, err := ifMatch(r)
	if err != nil || check == nil {
		return err
	}
	head, err := s.head(r)
	if err != nil {
		return err
	}
	return check(head)
}

// asking is the store as a request has it: with its precondition, and where its first attempt is looked for.
type asking struct {
	*local.Store
	check    func(grant.Revision) error
	since    grant.Ref
	anywhere bool
}

func (a asking) Do(ctx context.Context, r grant.Request) (grant.Revision, bool, error) {
	r.Check, r.Since, r.Anywhere = a.check, a.since, a.anywhere
	return a.Store.Do(ctx, r)
}

// carryOut does what a command needs besides its page: a landing's and a reproduction's objects are looked at, what is
// refused is kept, and a release's register read back.
func (s *Server) carryOut(ctx context.Context, req *request) (rev grant.Revision, replayed bool, kept string, err error) {
	name := grant.MetaOf(req.cmd).Container
	reg := register.Of(asking{s.store, req.do.Check, req.do.Since, req.do.Anywhere}, name)
	switch cmd := req.cmd.(type) {
	case grant.Restore:
		rev, kept, err = s.store.RestoreIf(ctx, cmd, req.do.Check)
		return rev, false, kept, err
	case grant.Land:
		if cmd.Manifest == "" || len(req.files) > 0 {
			rev, replayed, err = s.land(ctx, reg, cmd, req)
			return rev, replayed, "", err
		}
		if err := s.has(ctx, name, grant.KindArtifact, cmd.Manifest, "the manifest"); err != nil {
			return rev, false, "", err
		}
	case grant.Release:
		if cmd.ReadBack == "" {
			head, err := s.store.Head(ctx, name)
			if err != nil {
				return rev, false, "", err
			}
			if cmd.ReadBack, err = reg.ReadBack(ctx, head); err != nil {
				return rev, false, "", err
			}
			req.do.Command = cmd
		}
	case grant.Stage:
		if err := s.has(ctx, name, grant.KindStaging, cmd.Result, "the result"); err != nil {
			return rev, false, "", err
		}
	case grant.Commission:
		rev, err = s.commission(ctx, reg, cmd, req)
		return rev, false, "", err
	}
	rev, replayed, err = s.store.Do(ctx, req.do)
	return rev, replayed, "", err
}

// land lands a tree of which every file was uploaded, or nothing, with its reason.
func (s *Server) land(ctx context.Context, reg *register.Register, cmd grant.Land, req *request) (grant.Revision, bool, error) {
	l := register.Landing{Command: cmd, Since: req.do.Since, Anywhere: req.do.Anywhere}
	if len(req.files) > 0 {
		if cmd.Manifest != "" {
			return grant.Revision{}, false, &granthttp.FieldError{Field: "manifest", Why: "a landing has entries or a manifest, not both"}
		}
		l.Manifest = &register.Manifest{V: 1, Entries: req.files}
	}
	receipt, err := reg.Land(ctx, l)
	if err != nil {
		return grant.Revision{}, false, err
	}
	rev, err := s.store.Read(ctx, cmd.Container, grant.Ref{Epoch: receipt.Epoch, Rev: receipt.Rev})
	return rev, receipt.Replayed, err
}

// commission freezes what was uploaded for the deriver: it must not tell the result.
func (s *Server) commission(ctx context.Context, reg *register.Register, cmd grant.Commission, req *request) (grant.Revision, error) {
	record, err := register.ParseRecord(cmd.Record)
	if err != nil {
		return grant.Revision{}, &granthttp.FieldError{Field: "record", Why: "it is written as LANDING:NAME, as in 3:data/mass.json"}
	}
	c := register.Commissioning{Command: cmd, Record: record, Since: req.do.Since}
	if c.Kernel, err = reg.Given(ctx, cmd.Kernel, "the kernel"); err != nil {
		return grant.Revision{}, err
	}
	if c.Assumptions, err = reg.Given(ctx, cmd.Assumptions, "the assumptions"); err != nil {
		return grant.Revision{}, err
	}
	bundle, err := reg.Commission(ctx, c)
	if err != nil {
		return grant.Revision{}, err
	}
	// The block's number is the revision that brought it.
	head, err := s.store.Head(ctx, cmd.Container)
	if err != nil {
		return grant.Revision{}, err
	}
	return s.store.Read(ctx, cmd.Container, grant.Ref{Epoch: head.Page().Epoch, Rev: bundle.Block})
}

// has wants an object to be there before a page names it.
func (s *Server) has(ctx context.Context, container string, kind grant.Kind, d grant.Digest, what string) error {
	f, err := s.store.Get(ctx, container, kind, d)
	if err == nil {
		return f.Close()
	}
	if errors.Is(err, grant.CodeBadInput) || isNotThere(err) {
		return &register.ObjectError{Container: container, Name: what, SHA256: d, Err: register.ErrMissing}
	}
	return err
}
