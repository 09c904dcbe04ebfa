package granthttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// Store is the service's store. Its methods may be called from any goroutine.
type Store struct {
	transport Transport
	own       *local.Store // of which only the user's state folder is used
}

var (
	_ grant.Store   = (*Store)(nil)
	_ grant.Clock   = (*Store)(nil)
	_ grant.Watcher = (*Store)(nil)
)

// Options are the choices of a Store.
type Options struct {
	// Server is the service's address: it tells its sessions and witnesses from those of others.
	Server string
	// State is the user's own folder; local.StateDir when empty.
	State string
	// Local are more options of the state: its log, and what tests need.
	Local local.Options
}

// Open gives the store behind a transport. It asks the service nothing yet.
func Open(t Transport, o Options) (*Store, error) {
	state := o.State
	if state == "" {
		state = local.StateDir()
	}
	if state == "" {
		return nil, fmt.Errorf("open store: %w", local.ErrNoState)
	}
	sum := sha256.Sum256([]byte(strings.TrimRight(o.Server, "/")))
	name := "server-" + hex.EncodeToString(sum[:8])
	dir := filepath.Join(state, "servers", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	o.Local.State, o.Local.Estate = state, name
	own, err := local.Open(dir, o.Local)
	if err != nil {
		return nil, err
	}
	return &Store{t, own}, nil
}

// Now is the service's clock.
func (s *Store) Now(ctx context.Context) (grant.Time, error) {
	data, _, err := s.read(ctx, Request{Method: "GET", Path: "/v1/now"})
	if err != nil {
		return 0, err
	}
	var a struct {
		Now grant.Time `json:"now"`
	}
	if err := json.Unmarshal(data, &a); err != nil || a.Now == 0 {
		return 0, errors.New("the service's answer has no time in it")
	}
	return a.Now, nil
}

// Containers lists the containers, in order.
func (s *Store) Containers(ctx context.Context) ([]string, error) {
	data, _, err := s.read(ctx, Request{Method: "GET", Path: "/v1/containers?names=only"})
	if err != nil {
		return nil, err
	}
	var a struct {
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return a.Names, nil
}

// Head reads the last revision.
func (s *Store) Head(ctx context.Context, container string) (grant.Revision, error) {
	if err := grant.CheckName(container); err != nil {
		return grant.Revision{}, err
	}
	return s.page(ctx, container, containerPath(container))
}

// Read reads one revision.
func (s *Store) Read(ctx context.Context, container string, at grant.Ref) (grant.Revision, error) {
	if err := grant.CheckName(container); err != nil {
		return grant.Revision{}, err
	}
	return s.page(ctx, container, containerPath(container, "revisions", Place(at.Epoch, at.Rev)))
}

func (s *Store) page(ctx context.Context, container, path string) (grant.Revision, error) {
	data, _, err := s.read(ctx, Request{Method: "GET", Path: path})
	if err != nil {
		return grant.Revision{}, err
	}
	return opened(container, data)
}

// opened reads a page that the service gave: it must be one, and of the container that was asked for.
func opened(container string, data []byte) (grant.Revision, error) {
	rev, err := grant.Open(data)
	if err == nil && rev.Page().Container != container {
		err = fmt.Errorf("%w: it is of another container", grant.ErrBadPage)
	}
	if err != nil {
		return grant.Revision{}, fmt.Errorf("read the service's answer: %w", err)
	}
	return rev, nil
}

// Swap publishes a page, for whoever has an operator's token.
func (s *Store) Swap(ctx context.Context, base grant.Ref, next grant.Revision) error {
	p := next.Page()
	if p == nil {
		return fmt.Errorf("swap: %w: there is no page", grant.CodeBadInput)
	}
	h := map[string]string{"Content-Type": "application/json"}
	if base == (grant.Ref{}) {
		h["If-None-Match"] = "*"
	} else {
		h["If-Match"] = `"` + Place(base.Epoch, base.Rev) + "." + string(base.Hash) + `"`
	}
	_, _, err := s.read(ctx, Request{
		Method: "PUT", Path: containerPath(p.Container, "revisions", Place(p.Epoch, p.Rev)), Header: h, Body: bytes.NewReader(next.Bytes()),
	})
	return lost(ctx, err)
}

// lost is the error of something that may have been done all the same: ErrUnknown unless the service said what became
// of it, or was never asked.
func lost(ctx context.Context, err error) error {
	var answer *Error
	switch {
	case err == nil, errors.Is(err, ErrNotSent), isRefusal(err):
		return err
	case errors.As(err, &answer) && answer.Code != CodeInternal:
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", grant.ErrUnknown, ctx.Err())
	}
	return fmt.Errorf("%w: %w", grant.ErrUnknown, err)
}

func isRefusal(err error) bool {
	var r *grant.Refusal
	return errors.As(err, &r)
}

// Put stores an object.
func (s *Store) Put(ctx context.Context, container string, kind grant.Kind, r io.Reader) (grant.Digest, int64, error) {
	if err := grant.CheckName(container); err != nil {
		return "", 0, err
	}
	from := &source{r: r}
	data, _, err := s.read(ctx, Request{
		Method: "POST", Path: containerPath(container, "objects", string(kind)), Header: map[string]string{"Content-Type": "application/octet-stream"}, Body: from,
	})
	if from.err != nil {
		return "", 0, from.err // the transport's error is only its consequence
	}
	if err != nil {
		return "", 0, err
	}
	var a struct {
		SHA256 grant.Digest `json:"sha256"`
		Size   int64        `json:"size"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return "", 0, fmt.Errorf("store an object: %w", err)
	}
	return a.SHA256, a.Size, nil
}

// source remembers why its reader failed.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Get opens an object.
func (s *Store) Get(ctx context.Context, container string, kind grant.Kind, hash grant.Digest) (io.ReadCloser, error) {
	if err := grant.CheckName(container); err != nil {
		return nil, err
	}
	resp, err := s.call(ctx, Request{Method: "GET", Path: containerPath(container, "objects", string(kind), string(hash))})
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Objects lists the objects of a kind, in order.
func (s *Store) Objects(ctx context.Context, container string, kind grant.Kind) ([]grant.Digest, error) {
	data, _, err := s.read(ctx, Request{Method: "GET", Path: containerPath(container, "objects", string(kind))})
	if err != nil {
		return nil, err
	}
	var a struct {
		Objects []grant.Digest `json:"objects"`
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return a.Objects, nil
}

// Watch returns when the head is no longer at, or too early.
func (s *Store) Watch(ctx context.Context, container string, at grant.Ref) error {
	if err := grant.CheckName(container); err != nil {
		return err
	}
	_, _, err := s.read(ctx, Request{Method: "GET", Path: containerPath(container) + "?after=" + Place(at.Epoch, at.Rev)})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, grant.ErrLockMissing), errors.Is(err, grant.ErrBadPage):
		return nil // the head is no longer at; whoever reads it is told what is there
	}
	return err
}
