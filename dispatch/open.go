package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/record"
)

// OpenDispatch records that work is given to an agent: in its log, and then on its board. The agent's folder,
// log and board are made when they are missing. A task that is waiting for a worker comes under "todo", one
// that has a worker under "doing".
//
// On an error that does not match ErrLanded nothing was changed.
func (e *Estate) OpenDispatch(ctx context.Context, agent string, t Task) (r Record, err error) {
	if err := t.check(); err != nil {
		return Record{}, err
	}
	a, err := e.agent(agent, true)
	if err != nil {
		return Record{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	id, err := newID(a.seams)
	if err != nil {
		return Record{}, err
	}
	self := a.seams.Process.Self()
	r = Record{
		V: recordVersion, ID: id, Agent: agent, Task: t.Text, Worker: t.Worker, Status: Open, Labels: t.Labels,
		OpenedAt: stamp(a.seams.Clock.Now()), OpenedBy: &Opener{PID: self.PID, Host: self.Host},
	}
	line, err := encode(&r)
	if err != nil {
		return Record{}, err
	}
	c, err := a.change(&r, true)
	if err != nil {
		return Record{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return r, c.landed(damaged(record.Append(ctx, a.log, line, c.options())))
}

// damaged gives what is wrong with a log the form that it has everywhere in this package.
func damaged(err error) error {
	var e *record.FormatError
	if !errors.Is(err, record.ErrFormat) || !errors.As(err, &e) {
		return err
	}
	return &FileError{Path: e.Path, Offset: e.Offset, Line: e.Line, Reason: e.Reason, kind: ErrLog}
}

// CloseDispatch records the end of a dispatch, in the log of the agent and on its board. When agent is empty
// the dispatch is looked for in all logs. Every other byte of the log stays.
//
// On an error that does not match ErrLanded nothing was changed: ErrNoDispatch, ErrDuplicate, ErrClosed.
func (e *Estate) CloseDispatch(ctx context.Context, agent, id string, o Outcome) (r Record, err error) {
	if err := o.check(); err != nil {
		return Record{}, err
	}
	if agent == "" {
		if agent, _, err = e.Find("", id); err != nil {
			return Record{}, err
		}
	}
	a, err := e.agent(agent, false)
	if err != nil {
		return Record{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	c, err := a.change(&r, false)
	if err != nil {
		return Record{}, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var refused error
	rewrite := func(old io.Reader, w io.Writer) error {
		r, refused = a.closeIn(old, w, id, o)
		return refused
	}
	err = record.Rewrite(ctx, a.log, rewrite, c.options())
	switch {
	case errors.Is(err, record.ErrNoFile):
		err = fmt.Errorf("dispatch %s: %w", display.Text(short(id)), ErrNoDispatch)
	case refused != nil && errors.Is(err, refused):
		err = refused // less that a new log was to be written
	}
	return r, a.placed(c.landed(err))
}

// change is one change of a log and its board under way.
type change struct {
	a      *agent
	r      *Record // set when the log has been changed
	opened bool
	board  *board
	err    error // of the board
}

// change looks at the board first: one that is not what it should be stops the change before it begins.
func (a *agent) change(r *Record, opened bool) (*change, error) {
	b, err := a.openBoard()
	if err != nil {
		return nil, err
	}
	if err := b.look(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return &change{a: a, r: r, opened: opened, board: b}, nil
}

func (c *change) close() error { return c.board.close() }

func (c *change) options() record.UpdateOptions {
	return record.UpdateOptions{
		Lock: record.LockFile(c.a.lockOptions()), Seams: c.a.seams,
		AfterWrite: func(_ context.Context, hold record.Hold) error {
			c.err = c.board.put(*c.r, hold.Fence, c.a.seams.Clock.Now())
			return c.err
		},
	}
}

// landed tells apart a change that is not in the log, and one that is but was not all that was to be done.
func (c *change) landed(err error) error {
	if !errors.Is(err, record.ErrCommitted) {
		return err
	}
	e := &LandedError{Agent: c.a.name, ID: c.r.ID, Opened: c.opened, cause: err}
	if c.err != nil && !errors.Is(c.err, record.ErrNotDurable) { // such a board is in place
		e.Board, e.cause, e.Hint = true, c.err, c.a.repair()
	}
	return e
}
