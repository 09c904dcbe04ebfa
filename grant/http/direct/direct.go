// Package direct carries a granthttp store's requests by net/http in this process.
//
// It guarantees that the token goes to the server that was named and to no other: it follows no redirect. It does
// not guarantee that anybody else cannot read along: over plain HTTP whoever is on the way can.
package direct

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	granthttp "github.com/stile-lock/stile/grant/http"
)

// Transport asks one server. It may be used by several goroutines.
type Transport struct {
	base   string
	token  string
	client *http.Client
}

var _ granthttp.Transport = (*Transport)(nil)

// New gives the transport to a server, http://HOST:PORT or https://HOST:PORT. The token may be empty.
func New(server, token string) (*Transport, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("a server is named as http://HOST:PORT")
	}
	return &Transport{
		base: u.Scheme + "://" + u.Host, token: token,
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second,
				MaxIdleConnsPerHost: 16,
				IdleConnTimeout:     90 * time.Second,
				DisableCompression:  true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Do carries a request out.
func (t *Transport) Do(ctx context.Context, r granthttp.Request) (*granthttp.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, t.base+r.Path, r.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", granthttp.ErrNotSent, err)
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := t.client.Do(req) //nolint:bodyclose // it is the caller's to close, as Response says
	var dial *net.OpError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil, fmt.Errorf("%w: %w", granthttp.ErrNotSent, err)
	case err != nil:
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	h := make(map[string]string, len(resp.Header))
	for name := range resp.Header {
		h[name] = resp.Header.Get(name)
	}
	return &granthttp.Response{Status: resp.StatusCode, Header: h, Body: resp.Body}, nil
}

// Close ends the connections that are idle.
func (t *Transport) Close() { t.client.CloseIdleConnections() }
