package granthttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// said is a service that always says the same, or says nothing.
type said struct {
	status int
	body   string
	err    error
}

func (s said) Do(_ context.Context, r Request) (*Response, error) {
	if r.Method == "GET" && s.err == nil && s.status == 0 {
		return nil, errors.New("never asked")
	}
	if s.err != nil {
		return nil, s.err
	}
	return &Response{Status: s.status, Body: io.NopCloser(bytes.NewBufferString(s.body))}, nil
}

// What a service says is success, a refusal, an error by its name, or that nobody knows: never one for another.
func TestAnswers(t *testing.T) {
	cut := errors.New("connection reset")
	for name, c := range map[string]struct {
		service said
		want    error
		unknown bool
	}{
		"refused":      {said{409, `{"code":"HELD","refusal":{"code":"HELD","op":"petition"}}`, nil}, grant.CodeHeld, false},
		"unknown":      {said{503, `{"code":"UNKNOWN"}`, nil}, grant.ErrUnknown, true},
		"unavailable":  {said{503, `{"code":"UNAVAILABLE"}`, nil}, nil, false},
		"conflict":     {said{409, `{"code":"CONFLICT"}`, nil}, grant.ErrConflict, false},
		"stale":        {said{412, `{"code":"STALE"}`, nil}, grant.ErrConflict, false},
		"missing":      {said{404, `{"code":"LOCK_MISSING"}`, nil}, grant.ErrLockMissing, false},
		"no object":    {said{404, `{"code":"NOT_FOUND"}`, nil}, fs.ErrNotExist, false},
		"full":         {said{507, `{"code":"NO_SPACE"}`, nil}, syscall.ENOSPC, false},
		"internal":     {said{500, `{"code":"INTERNAL"}`, nil}, nil, true},
		"a proxy":      {said{502, `<html>bad gateway</html>`, nil}, nil, true},
		"not sent":     {said{0, "", ErrNotSent}, ErrNotSent, false},
		"cut":          {said{0, "", cut}, cut, true},
		"no page":      {said{200, `{}`, nil}, grant.ErrBadPage, true},
		"nothing":      {said{200, ``, nil}, grant.ErrBadPage, true},
		"another page": {said{200, strings.Repeat("x", 100), nil}, grant.ErrBadPage, true},
	} {
		s, err := Open(c.service, Options{Server: "http://localhost:1", State: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		cmd := grant.Petition{Meta: grant.Meta{Container: "atlas", Nonce: "nonce-0001", By: grant.Agent("ada")}}
		_, _, err = s.Do(t.Context(), grant.Request{Command: cmd})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, grant.ErrUnknown) != c.unknown {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Fenced commands are not given through a service.
func TestFencedCommandsStayThere(t *testing.T) {
	for _, cmd := range []grant.Command{grant.Begin{}, grant.Finish{}} {
		if _, err := Encode(cmd); !errors.Is(err, ErrNotRemote) {
			t.Errorf("%s: %v", cmd.Op(), err)
		}
	}
}
