package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strconv"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/register"
)

// objectsOf is the container and the kind that a request for objects is about.
func (s *Server) objectsOf(r *http.Request) (string, grant.Kind, error) {
	kind, ok := granthttp.ParseKind(r.PathValue("kind"))
	if !ok {
		return "", "", &granthttp.FieldError{Field: "kind", Why: "it is artifacts, quarantine or staging"}
	}
	name := r.PathValue("container")
	if _, err := s.acts(r); err != nil { // bytes are for those who have a part in the work
		return "", "", err
	}
	return name, kind, grant.CheckName(name)
}

var errHash = &statusError{http.StatusUnprocessableEntity, granthttp.CodeHash, "the bytes are not those of the SHA-256 in the path", "nothing was kept; send them again"}

// putObject stores one: POST …/objects/KIND, or PUT …/objects/KIND/SHA256, which checks the bytes.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := s.objectsOf(r)
	if err != nil {
		return err
	}
	want := r.PathValue("sha256")
	if raw, err := hex.DecodeString(want); want != "" && (err != nil || len(raw) != sha256.Size) {
		return &granthttp.FieldError{Field: "sha256", Why: "64 hex digits are needed"}
	}
	if _, err := nonceOf(r); err != nil {
		return err // the bytes' hash is the key; one that is wrong is told all the same
	}
	if err := s.there(); err != nil {
		return err
	}
	if err := s.onPage(r); err != nil {
		return err
	}
	body := io.Reader(http.MaxBytesReader(w, r.Body, s.o.MaxUpload))
	if want != "" {
		body = &verifying{r: body, sum: sha256.New(), want: want}
	}
	digest, size, err := s.store.Put(r.Context(), name, kind, body)
	if err != nil {
		return err
	}
	return reply(w, http.StatusCreated, struct {
		SHA256 grant.Digest `json:"sha256"`
		Size   int64        `json:"size"`
	}{digest, size})
}

// verifying fails at the end of what has another hash than it must have: nothing is then stored.
type verifying struct {
	r    io.Reader
	sum  hash.Hash
	want string
}

func (v *verifying) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(v.sum.Sum(nil)) != v.want {
		return n, errHash
	}
	return n, err
}

func (s *Server) getObjects(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := s.objectsOf(r)
	if err != nil {
		return err
	}
	list, err := s.store.Objects(r.Context(), name, kind)
	if err != nil {
		return err
	}
	if list == nil {
		list = []grant.Digest{}
	}
	return reply(w, http.StatusOK, map[string][]grant.Digest{"objects": list})
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	name, kind, err := s.objectsOf(r)
	if err != nil {
		return err
	}
	f, err := s.store.Get(r.Context(), name, kind, grant.Digest(r.PathValue("sha256")))
	if err != nil {
		return err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	// Whatever it is, no browser is to take it for a page of this site.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	// The first bytes first: an error before them still has an answer of its own.
	var first [32 << 10]byte
	n, err := io.ReadFull(f, first[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	out := &steadyWriter{w, http.NewResponseController(w), s.o.stall}
	if _, err := out.Write(first[:n]); err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return err
}

// submit stages a derivation's result: POST …/reproductions/BLOCK/result, the bytes. The stamp is the service's.
func (s *Server) submit(w http.ResponseWriter, r *http.Request) error {
	id, err := s.acts(r)
	if err != nil {
		return err
	}
	block, err := strconv.ParseInt(r.PathValue("block"), 10, 64)
	if err != nil {
		return &granthttp.FieldError{Field: "block", Why: "it is a block's number"}
	}
	var by grant.Actor
	if agent := r.URL.Query().Get("agent"); agent != "" {
		by = grant.Agent(agent)
	}
	if by, err = id.as(by); err != nil {
		return err
	}
	nonce, err := nonceOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("container")
	if err := errors.Join(grant.CheckName(name), s.there()); err != nil {
		return err
	}
	check, err := ifMatch(r)
	if err != nil {
		return err
	}
	cmd := grant.Stage{Meta: grant.Meta{Container: name, Nonce: nonce, By: by}, Block: block}
	staged, err := register.Of(asking{s.store, check, grant.Ref{}, r.Header.Get(granthttp.HeaderKey) != ""}, name).Submit(r.Context(), cmd, http.MaxBytesReader(w, r.Body, s.o.MaxUpload))
	if err != nil {
		return err
	}
	s.hub.nudge()
	return reply(w, http.StatusCreated, staged)
}

// getRefused lists the landings that were refused and kept.
func (s *Server) getRefused(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.head(r); err != nil {
		return err
	}
	list, err := register.Of(s.store, r.PathValue("container")).Kept(r.Context(), r.URL.Query().Get("all") != "")
	out := []refusedLanding{}
	for _, k := range list {
		out = append(out, refusedLanding{k.Name, k.Gone != nil, k.Refused})
	}
	answer := struct {
		Refused []refusedLanding `json:"refused"`
		// Unread: documents that are another program's, or damaged.
		Unread string `json:"unread,omitempty"`
	}{Refused: out}
	if err != nil {
		if r.Context().Err() != nil {
			return err
		}
		answer.Unread = err.Error()
	}
	return reply(w, http.StatusOK, answer)
}

// refusedLanding is one as the API gives it.
type refusedLanding struct {
	Name      grant.Digest `json:"name"`
	Discarded bool         `json:"gone"`
	register.Refused
}

// kept finds the refused landing that a request is about.
func (s *Server) kept(r *http.Request) (*register.Register, register.Kept, error) {
	if _, err := s.head(r); err != nil {
		return nil, register.Kept{}, err
	}
	reg := register.Of(s.store, r.PathValue("container"))
	k, err := reg.Find(r.Context(), r.PathValue("name"))
	return reg, k, err
}

func (s *Server) getRefusedOne(w http.ResponseWriter, r *http.Request) error {
	reg, k, err := s.kept(r)
	if err != nil {
		return err
	}
	m, err := reg.Manifest(r.Context(), k.Manifest)
	if err != nil && !errors.Is(err, register.ErrManifest) {
		return err
	}
	return reply(w, http.StatusOK, struct {
		refusedLanding
		Content *register.Manifest `json:"content"`
	}{refusedLanding{k.Name, k.Gone != nil, k.Refused}, m})
}

// discard gives a refused landing up: POST …/refused/NAME/discard {"reason":…}.
func (s *Server) discard(w http.ResponseWriter, r *http.Request) error {
	id, err := s.acts(r)
	if err != nil {
		return err
	}
	data, err := s.body(w, r)
	if err != nil {
		return err
	}
	object, err := granthttp.Object(data, "by", "reason")
	if err != nil {
		return err
	}
	var reason string
	var by grant.Actor
	if err := errors.Join(field(object, "reason", &reason), field(object, "by", &by)); err != nil {
		return err
	}
	if by, err = id.as(by); err != nil {
		return err
	}
	if _, err := nonceOf(r); err != nil {
		return err // what is discarded stays so: a repetition needs no key to be found
	}
	reg, k, err := s.kept(r)
	if err != nil {
		return err
	}
	if by.Role != grant.RoleOperator && by.Name != k.By.Name {
		return errForbidden("a refused landing is given up by who brought it, or by an operator")
	}
	if k.Gone == nil {
		if err := s.onPage(r); err != nil {
			return err
		}
	}
	if k, err = reg.Discard(r.Context(), k, by, reason); err != nil {
		return err
	}
	return reply(w, http.StatusOK, refusedLanding{k.Name, k.Gone != nil, k.Refused})
}
