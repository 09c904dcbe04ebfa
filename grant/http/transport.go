package granthttp

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Request is one request, as a Transport carries it. The Transport adds the server's address and the token.
type Request struct {
	Method string
	Path   string            // with its query, beginning with a slash
	Header map[string]string // in their canonical form
	Body   io.Reader         // nil for none
}

// Response is its answer. Body must be closed.
type Response struct {
	Status int
	Header map[string]string
	Body   io.ReadCloser
}

// Transport carries requests to the service. An error means that there is no answer; one that matches ErrNotSent,
// that the request did not reach the service, and that nothing was done.
type Transport interface {
	Do(ctx context.Context, r Request) (*Response, error)
}

// ErrNotSent says that a request did not leave: the server cannot be reached.
var ErrNotSent = errors.New("the service cannot be reached")

// call carries a request out, and gives the answer to success. The caller closes its body.
func (s *Store) call(ctx context.Context, r Request) (*Response, error) {
	resp, err := s.transport.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if resp.Status >= 200 && resp.Status < 300 {
		return resp, nil
	}
	data, rerr := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if cerr := resp.Body.Close(); rerr == nil {
		rerr = cerr
	}
	if rerr != nil {
		return nil, fmt.Errorf("read the service's answer: %w", rerr)
	}
	return nil, problemOf(resp.Status, data)
}

// maxAnswer bounds an answer that is read into memory: a page in a problem, or a list of names.
const maxAnswer = 64 << 20

// read is call, with the answer's whole body.
func (s *Store) read(ctx context.Context, r Request) ([]byte, *Response, error) {
	resp, err := s.call(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		return nil, nil, fmt.Errorf("read the service's answer: %w", err)
	}
	return data, resp, nil
}
