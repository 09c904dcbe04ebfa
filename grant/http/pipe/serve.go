package pipe

import (
	"bufio"
	"context"
	"errors"
	"io"

	granthttp "github.com/stile-lock/stile/grant/http"
)

// requestHead and responseHead are the heads of messages.
type requestHead struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
}

type responseHead struct {
	Status  int               `json:"status"` // 0: no answer, and Error says why
	Header  map[string]string `json:"header"`
	Error   string            `json:"error,omitempty"`
	NotSent bool              `json:"not_sent,omitempty"` // the request did not leave
}

// Serve is the child's side: it carries the requests that come by in out through a transport, one after the other, until in
// ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, t granthttp.Transport) error {
	r, w := bufio.NewReaderSize(in, chunk), bufio.NewWriterSize(out, chunk)
	for {
		var head requestHead
		if err := readHead(r, &head); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		body := &bodyReader{r: r}
		resp, err := t.Do(ctx, granthttp.Request{Method: head.Method, Path: head.Path, Header: head.Header, Body: body})
		// What the server did not want to read is still before the next request.
		if _, rerr := io.Copy(io.Discard, body); rerr != nil && !errors.Is(rerr, errBroken) {
			return rerr
		}
		if err := answer(w, resp, err); err != nil {
			return err
		}
	}
}

func answer(w *bufio.Writer, resp *granthttp.Response, failed error) error {
	if failed != nil {
		err := writeHead(w, responseHead{Error: failed.Error(), NotSent: errors.Is(failed, granthttp.ErrNotSent)})
		if err == nil {
			_, err = writeBody(w, nil)
		}
		return err
	}
	defer resp.Body.Close() // a failed close of what was only read loses nothing
	if err := writeHead(w, responseHead{Status: resp.Status, Header: resp.Header}); err != nil {
		return err
	}
	_, err := writeBody(w, resp.Body)
	return err
}
