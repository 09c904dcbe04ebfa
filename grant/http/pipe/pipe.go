package pipe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	granthttp "github.com/stile-lock/stile/grant/http"
)

// Transport starts children as they are needed, and keeps those that are idle. It may be used by several goroutines.
type Transport struct {
	command func() *exec.Cmd

	mu   sync.Mutex
	idle []*child
	shut bool
}

var _ granthttp.Transport = (*Transport)(nil)

// New gives the transport. command makes the child's command; its standard input and output are the transport's.
func New(command func() *exec.Cmd) *Transport { return &Transport{command: command} }

// child is one that was started.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	w   *bufio.Writer
	r   *bufio.Reader
	end sync.Once
}

func (t *Transport) start() (*child, error) {
	cmd := t.command()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd: cmd, in: in, w: bufio.NewWriterSize(in, chunk), r: bufio.NewReaderSize(out, chunk)}, nil
}

// kill ends a child whatever it does.
func (c *child) kill() {
	c.end.Do(func() {
		_ = c.cmd.Process.Kill() // it may have ended by itself
		_ = c.in.Close()
		_ = c.cmd.Wait()
	})
}

// leave lets a child that does nothing end by itself.
func (c *child) leave() {
	c.end.Do(func() {
		_ = c.in.Close()
		_ = c.cmd.Wait() // how an idle child ends is nobody's concern
	})
}

func (t *Transport) take() (*child, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		return nil, errors.New("the transport is closed")
	}
	if n := len(t.idle); n > 0 {
		c := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return c, nil
	}
	return t.start()
}

func (t *Transport) give(c *child) {
	t.mu.Lock()
	if !t.shut {
		t.idle = append(t.idle, c)
		c = nil
	}
	t.mu.Unlock()
	if c != nil {
		c.leave()
	}
}

// Close ends the idle children, and those at work when they are done.
func (t *Transport) Close() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.shut = nil, true
	t.mu.Unlock()
	for _, c := range idle {
		c.leave()
	}
}

// Do carries a request out.
func (t *Transport) Do(ctx context.Context, r granthttp.Request) (*granthttp.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := t.take()
	if err != nil {
		return nil, fmt.Errorf("%w: start its client: %w", granthttp.ErrNotSent, err)
	}
	stop := context.AfterFunc(ctx, c.kill)
	head, err := c.ask(r)
	if err == nil && head.Status == 0 {
		_, err = io.Copy(io.Discard, &bodyReader{r: c.r})
		if err == nil {
			stop()
			t.give(c)
			return nil, failure(head)
		}
	}
	if err != nil {
		stop()
		c.kill()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	return &granthttp.Response{Status: head.Status, Header: head.Header, Body: &answerBody{bodyReader{r: c.r}, t, c, stop}}, nil
}

func failure(head responseHead) error {
	if head.NotSent {
		return fmt.Errorf("%w: %s", granthttp.ErrNotSent, head.Error)
	}
	return errors.New(head.Error)
}

// ask sends the request and reads the answer's head.
func (c *child) ask(r granthttp.Request) (head responseHead, err error) {
	if err := writeHead(c.w, requestHead{r.Method, r.Path, r.Header}); err != nil {
		return head, err
	}
	from, err := writeBody(c.w, r.Body)
	if err == nil && from != nil {
		err = from
	}
	if err != nil {
		return head, err
	}
	err = unexpectedNil(readHead(c.r, &head))
	return head, err
}

// unexpectedNil is err, where an end is one that was not expected.
func unexpectedNil(err error) error {
	if err == nil {
		return nil
	}
	return unexpected(err)
}

// answerBody gives its child back once it was read to its end.
type answerBody struct {
	bodyReader
	t    *Transport
	c    *child
	stop func() bool
}

// Close ends the reading. A child with more to say is ended as well.
func (b *answerBody) Close() error {
	if b.c == nil {
		return nil
	}
	c := b.c
	b.c = nil
	b.stop()
	if errors.Is(b.err, io.EOF) {
		b.t.give(c)
	} else {
		c.kill()
	}
	return nil
}
