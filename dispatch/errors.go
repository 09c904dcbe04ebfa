package dispatch

import (
	"errors"
	"fmt"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
)

// What an error of this package can match with errors.Is, besides those of packages lockfile and record and
// those of the system, which are always themselves.
var (
	// ErrLog: a log is not what it should be. The error is a *FileError; nothing was changed.
	ErrLog = errors.New("log is not what it should be")
	// ErrBoard: a board is not what it should be. The error is a *FileError.
	ErrBoard = errors.New("board is not what it should be")
	// ErrNewerBoard: a newer stile has written the board. It comes with ErrBoard.
	ErrNewerBoard = errors.New("written by a newer stile")
	// ErrNoDispatch: no log that was asked has the dispatch.
	ErrNoDispatch = errors.New("no such dispatch")
	// ErrDuplicate: the log has the dispatch more than once; which is meant cannot be told.
	ErrDuplicate = errors.New("the dispatch is there more than once")
	// ErrClosed: the dispatch is closed already.
	ErrClosed = errors.New("the dispatch is closed already")
	// ErrText: a text is too long, empty or not UTF-8; or a label or status cannot be one.
	ErrText = errors.New("not a possible text")
	// ErrNoAgent: the estate has no such agent.
	ErrNoAgent = estate.ErrNoAgent
	// ErrName: no agent can have the name.
	ErrName = estate.ErrName
	// ErrNameTaken: another agent's name differs from this one in case only.
	ErrNameTaken = estate.ErrTaken
	// ErrLink: a symbolic link lies where none is followed.
	ErrLink = estate.ErrLink
	// ErrLanded: the log was changed, and what should have followed was not. The error is a *LandedError.
	ErrLanded = errors.New("the log was changed, but not all that follows")
)

// FileError says where a log or a board is not what it should be. It matches ErrLog or ErrBoard.
type FileError struct {
	Path   string
	Record int   // which record, from 1; 0 when it is not about one
	Offset int64 // in bytes, from 0
	Line   int   // from 1; 0 when it is not known
	Reason string

	kind  error
	cause error // may be nil
}

func (e *FileError) Error() string {
	at := display.Text(e.Path)
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	at += fmt.Sprintf(" (byte %d)", e.Offset)
	if e.Record > 0 {
		at += fmt.Sprintf(": record %d", e.Record)
	}
	return at + ": " + e.Reason
}

// Unwrap gives ErrLog or ErrBoard, and the cause.
func (e *FileError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// LandedError says that a dispatch was opened or closed in its log, and what then went wrong: as a rule the
// board is behind. The change is never repeated. It matches ErrLanded and the cause: lockfile.ErrLost when
// the lock was lost between log and board.
type LandedError struct {
	Agent  string
	ID     string
	Opened bool // opened, or else closed
	// Board says that the board was not changed; Check then names the dispatch, and Repair mends it.
	Board bool
	// Hint is the command that mends the board; empty when it was changed.
	Hint string

	cause error
}

func (e *LandedError) Error() string {
	did := "closed"
	if e.Opened {
		did = "opened"
	}
	s := fmt.Sprintf("dispatch %s is %s in the log of %s", display.Text(e.ID), did, display.Text(e.Agent))
	if e.Board {
		s += ", but its board was not changed"
	}
	return s + ": " + e.cause.Error()
}

// Unwrap gives ErrLanded and the cause.
func (e *LandedError) Unwrap() []error { return []error{ErrLanded, e.cause} }
