package record

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/lockfile"
)

// What an error of this package can match with errors.Is, besides those of the lock that was used and
// those of the system, which are always themselves.
var (
	// ErrNoFile: there is no such file, and it was not to be made. It matches fs.ErrNotExist too.
	ErrNoFile error = noFile{}
	// ErrNotRegular: the file is a folder, a FIFO or a device.
	ErrNotRegular = commit.ErrNotRegular
	// ErrFormat: the file is not what it should be. The error is a *FormatError that names the place.
	ErrFormat = errors.New("file is not what it should be")
	// ErrRecord: what was to be added is not what it should be. The error is a *FormatError whose
	// place is in the record, or in the line.
	ErrRecord = errors.New("record is not what it should be")
	// ErrCommitted: the change is in the file; what failed came after. Doing it again would do it twice.
	ErrCommitted = errors.New("the change is in the file")
	// ErrNotDurable: the change is in the file, and was not known to be on disk when the system said
	// that it could not sync it. It comes with ErrCommitted.
	ErrNotDurable = commit.ErrNotDurable
	// ErrStale: the file is not the one that was read in this hold: somebody has changed it without the
	// lock. It is tried again like a lost hold, and comes when there was no time left for that.
	ErrStale = lockfile.ErrStale
	// ErrClosed: the Lines were closed.
	ErrClosed = errors.New("lines are closed")
)

type noFile struct{}

func (noFile) Error() string        { return "no such file" }
func (noFile) Is(target error) bool { return target == fs.ErrNotExist }

// FormatError says where a file, or a record to be added to one, is not what it should be. It matches
// ErrFormat or ErrRecord.
type FormatError struct {
	Path string // of the file; empty when the record itself is meant
	// Offset counts bytes from 0, Line and Column (in bytes) from 1. Of one of several lines to be
	// added, Line says which.
	Offset int64
	Line   int
	Column int
	Reason string

	kind error
}

func (e *FormatError) Error() string {
	what := display.Text(e.Path)
	if what == "" {
		what = "record"
	}
	return fmt.Sprintf("%s:%d:%d (byte %d): %s", what, e.Line, e.Column, e.Offset, e.Reason)
}

// Unwrap gives ErrFormat or ErrRecord.
func (e *FormatError) Unwrap() error { return e.kind }

// badFile describes what is wrong at offset of a file's content.
func badFile(path string, data []byte, offset int64, format string, args ...any) error {
	e := &FormatError{Path: path, Reason: fmt.Sprintf(format, args...), kind: ErrFormat}
	e.place(data, offset)
	return e
}

// badRecord is badFile for what was to be added.
func badRecord(data []byte, offset int64, format string, args ...any) error {
	e := &FormatError{Reason: fmt.Sprintf(format, args...), kind: ErrRecord}
	e.place(data, offset)
	return e
}

// place turns an offset in data into a line and a column.
func (e *FormatError) place(data []byte, offset int64) {
	e.Offset = min(max(offset, 0), int64(len(data)))
	e.Line, e.Column = 1, 1
	for _, b := range data[:e.Offset] {
		e.Column++
		if b == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
}

// committed marks an error of what came after the change.
func committed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w, but: %w", ErrCommitted, err)
}
