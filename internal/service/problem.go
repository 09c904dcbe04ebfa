package service

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/register"
)

// statusError is an error with its own answer.
type statusError struct {
	status           int
	code, text, hint string
}

func (e *statusError) Error() string { return e.text }

func errUnauthorized(text string) error {
	return &statusError{http.StatusUnauthorized, granthttp.CodeUnauthorized, text, "stiled token add --agent NAME makes one; it is sent as Authorization: Bearer TOKEN"}
}

func errForbidden(text string) error {
	return &statusError{status: http.StatusForbidden, code: granthttp.CodeForbidden, text: text}
}

// errStale says that If-Match named another revision.
type errStale struct{ want, have string } // have is empty when there is no page that can be read

func (e errStale) Error() string {
	if e.have == "" {
		return "no page can be read, and If-Match names " + display.Text(e.want)
	}
	return "the page is at " + e.have + ", and If-Match names " + display.Text(e.want)
}

// none answers paths that are none.
func (s *Server) none(w http.ResponseWriter, r *http.Request) error {
	if allowed := s.methods(r); allowed != "" {
		w.Header().Set("Allow", allowed)
		return &statusError{http.StatusMethodNotAllowed, granthttp.CodeMethod, "the path takes " + allowed, ""}
	}
	return &statusError{http.StatusNotFound, granthttp.CodeNotFound, "there is nothing at this path", "docs/api.md lists what there is"}
}

// methods are those that a path takes with which it was not asked.
func (s *Server) methods(r *http.Request) string {
	var list []string
	for _, m := range []string{"GET", "POST", "PUT"} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			list = append(list, m)
		}
	}
	return strings.Join(list, ", ")
}

// statuses are those of the grants' codes that are not 409.
var statuses = map[grant.Code]int{
	grant.CodeBadInput:    http.StatusBadRequest,
	grant.CodeLockMissing: http.StatusNotFound, grant.CodeUnknown: http.StatusServiceUnavailable,
	grant.CodeBadPage: http.StatusInternalServerError, grant.CodeNewer: http.StatusInternalServerError,
}

// problem is what an error is to the client.
func (s *Server) problem(err error) granthttp.Problem {
	var (
		own     *statusError
		field   *granthttp.FieldError
		large   *http.MaxBytesError
		refusal *grant.Refusal
		refused *register.RefusedError
		block   *local.BlockError
		stale   errStale
	)
	p := granthttp.Problem{Status: http.StatusInternalServerError, Code: granthttp.CodeInternal, Detail: display.Text(err.Error())}
	code := grant.CodeOf(err)
	switch {
	case errors.As(err, &own):
		p.Status, p.Code, p.Hint = own.status, own.code, own.hint
	case errors.As(err, &field):
		p.Status, p.Code, p.Field = http.StatusBadRequest, string(grant.CodeBadInput), field.Field
	case errors.As(err, &large):
		p.Status, p.Code = http.StatusRequestEntityTooLarge, granthttp.CodeTooLarge
		p.Detail = "the body is too large"
	case errors.As(err, &stale):
		p.Status, p.Code, p.Hint = http.StatusPreconditionFailed, granthttp.CodeStale, "read the container again, and decide again"
	case errors.As(err, &refusal):
		p.Status, p.Code, p.Refusal = http.StatusConflict, string(refusal.Code), refusal
		if n, ok := statuses[refusal.Code]; ok {
			p.Status = n
		}
		if refusal.Op == "" {
			p.Detail = display.Text(refusal.Cause) // of a name or text, before there was a command
		}
		if refusal.Next != "" {
			p.Hint = "stile " + refusal.Next
		}
		if errors.As(err, &refused) {
			p.Quarantine = refused.Kept.Name
		}
	case isNoSpace(err):
		p.Status, p.Code, p.Hint = http.StatusInsufficientStorage, granthttp.CodeNoSpace, "nothing was changed; make room, and repeat it"
	case s.there() != nil:
		p.Status, p.Code, p.Hint = http.StatusServiceUnavailable, granthttp.CodeUnavailable, "the estate's folder is not there; when it is back, so is the service"
		p.Detail = "the estate cannot be reached"
	case code != "":
		p.Status, p.Code = http.StatusConflict, string(code)
		if n, ok := statuses[code]; ok {
			p.Status = n
		}
		if code == grant.CodeUnknown {
			p.Hint = "repeat it with the same Idempotency-Key: it is found, or done"
		}
		if errors.As(err, &block) {
			p.Hint = block.Hint
		}
	default:
		s.other(err, &p)
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// other is what the register and the system say.
func (s *Server) other(err error, p *granthttp.Problem) {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case is(register.ErrMissing):
		p.Status, p.Code, p.Hint = http.StatusConflict, granthttp.CodeMissing, "upload it first: POST …/objects/artifacts"
	case is(register.ErrName, register.ErrTarget, register.ErrManifest, register.ErrNothing, register.ErrReason, register.ErrTellsResult, register.ErrAmbiguous, estate.ErrName):
		p.Status, p.Code = http.StatusBadRequest, string(grant.CodeBadInput)
	case is(register.ErrNoLanding, register.ErrNotKept, register.ErrRecord, fs.ErrNotExist):
		p.Status, p.Code = http.StatusNotFound, granthttp.CodeNotFound
	case is(context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded):
		p.Status, p.Code = http.StatusServiceUnavailable, string(grant.CodeUnknown)
	default:
		p.Detail = "the service met an error of the system; its log says which"
	}
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fail answers an error, and returns the status.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) int {
	p := s.problem(err)
	if p.Code == granthttp.CodeInternal {
		s.log.Error("a request failed", "path", display.Text(r.URL.Path), "error", display.Text(err.Error()))
	}
	if p.Refusal != nil {
		s.metrics.refused(p.Code)
	}
	if name := r.PathValue("container"); name != "" && (p.Status == http.StatusConflict || p.Status == http.StatusPreconditionFailed) {
		if head, err := s.store.Head(r.Context(), name); err == nil {
			p.Page = json.RawMessage(head.Bytes())
			w.Header().Set("ETag", granthttp.Tag(head.Page()))
		}
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="stile"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // who has gone is not told
	return p.Status
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // who has gone is not told
	return nil
}
