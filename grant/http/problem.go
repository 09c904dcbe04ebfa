package granthttp

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// Problem is how the service answers what it did not do: application/problem+json (RFC 9457), with fields of its
// own. All text in it is safe to show.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Code is stable: a grant.Code, or one of the codes below.
	Code string `json:"code"`
	Hint string `json:"hint,omitempty"`
	// Field is the field of the body that is at fault.
	Field string `json:"field,omitempty"`
	// Refusal is why a command was refused; Page is the container's page as it is, where it can be read.
	Refusal *grant.Refusal  `json:"refusal,omitempty"`
	Page    json.RawMessage `json:"page,omitempty"`
	// Quarantine is the document that keeps a refused landing.
	Quarantine grant.Digest `json:"quarantine,omitempty"`
}

// The codes of problems that are no grant.Code.
const (
	CodeUnauthorized = "UNAUTHORIZED" // 401: no token, or none that is known
	CodeForbidden    = "FORBIDDEN"    // 403: not with this token; or another site's request
	CodeNotFound     = "NOT_FOUND"    // 404: no such path or object
	CodeMethod       = "METHOD"       // 405
	CodeTooLarge     = "TOO_LARGE"    // 413
	CodeMediaType    = "MEDIA_TYPE"   // 415
	CodeHash         = "HASH"         // 422: the bytes are not those of the hash
	CodeMissing      = "MISSING"      // 409: an object that is named is not in the store
	CodeStale        = "STALE"        // 412: If-Match names another revision than the present one
	CodeNoSpace      = "NO_SPACE"     // 507
	CodeUnavailable  = "UNAVAILABLE"  // 503: the estate cannot be reached
	CodeInternal     = "INTERNAL"     // 500
)

// Error says that the service, or something on the way, did not do what was asked.
type Error struct {
	Problem
}

func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	if text == "" {
		text = "the service answered " + strconv.Itoa(e.Status)
	}
	if e.Hint != "" {
		text += "; next: " + e.Hint
	}
	return display.Text(text)
}

// Unwrap gives the grant.Code, or the system's own error, that the problem stands for.
func (e *Error) Unwrap() error {
	switch e.Code {
	case CodeNoSpace:
		return syscall.ENOSPC
	case CodeNotFound:
		return fs.ErrNotExist
	case CodeStale:
		return grant.ErrConflict
	case CodeUnauthorized, CodeForbidden, CodeMethod, CodeTooLarge, CodeMediaType, CodeHash, CodeMissing, CodeUnavailable, CodeInternal:
		return nil
	}
	return grant.Code(e.Code)
}

// problemOf is the error of an answer that is none of success.
func problemOf(status int, data []byte) error {
	e := &Error{}
	if json.Unmarshal(data, &e.Problem) != nil || e.Code == "" {
		e.Problem = Problem{Code: CodeInternal, Detail: fmt.Sprintf("the service, or a proxy before it, answered %d and not as this program knows it", status)}
	}
	e.Status = status
	if e.Refusal != nil {
		return e.Refusal
	}
	return e
}

// Tag is a revision's ETag: its epoch and number.
func Tag(p *grant.Page) string { return `"` + Place(p.Epoch, p.Rev) + `"` }

// Place writes a revision's epoch and number as EPOCH.REV.
func Place(epoch, rev int64) string {
	return strconv.FormatInt(epoch, 10) + "." + strconv.FormatInt(rev, 10)
}

// ParsePlace reads what Place writes, and a hash after another dot.
func ParsePlace(s string) (grant.Ref, bool) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return grant.Ref{}, false
	}
	epoch, err1 := strconv.ParseInt(parts[0], 10, 64)
	rev, err2 := strconv.ParseInt(parts[1], 10, 64)
	r := grant.Ref{Epoch: epoch, Rev: rev}
	if len(parts) == 3 {
		r.Hash = grant.Digest(parts[2])
	}
	return r, err1 == nil && err2 == nil && epoch >= 0 && rev >= 0
}

// kinds are those of objects that paths can name.
var kinds = []grant.Kind{grant.KindArtifact, grant.KindQuarantine, grant.KindStaging}

// ParseKind reads a kind of objects.
func ParseKind(s string) (grant.Kind, bool) {
	return grant.Kind(s), slices.Contains(kinds, grant.Kind(s))
}

// containerPath is a container's path, and what lies below it.
func containerPath(container string, more ...string) string {
	path := "/v1/containers/" + escape(container)
	for _, m := range more {
		path += "/" + escape(m)
	}
	return path
}

// escape makes text one element of a path, or of what follows it. All but what never needs it is written as %XX.
// Package net/url is not linked for this alone: its start, and that of net/netip behind it, would be part of each
// command's.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
