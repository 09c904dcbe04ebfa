package dispatch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/stile-lock/stile/internal/vfs"
)

// maxRecord bounds one record, and so what is held of a log in memory.
const maxRecord = 16 << 20

// logReader reads a log, a record at a time, and can pass on what it has read, byte for byte.
type logReader struct {
	path string
	r    io.Reader
	to   io.Writer // nil: nothing is passed on

	pending []byte // read and not passed on yet
	at      int64  // offset in the log of the first pending byte
	records int
	err     error // of reading
}

// newLogReader buffers: the decoder reads a few hundred bytes at a time, which keeps what is pending small.
func newLogReader(path string, r io.Reader) *logReader {
	return &logReader{path: path, r: bufio.NewReaderSize(r, 256<<10)}
}

// Read is for the decoder.
func (l *logReader) Read(p []byte) (int, error) {
	if len(l.pending) > maxRecord {
		l.err = l.bad(l.at, "has more than %d MiB", maxRecord>>20)
		return 0, l.err
	}
	n, err := l.r.Read(p)
	l.pending = append(l.pending, p[:n]...)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = fmt.Errorf("read %s: %w", l.path, err)
	}
	return n, err
}

// pass passes on what comes before offset.
func (l *logReader) pass(offset int64) error {
	n := int(offset - l.at)
	if l.to != nil {
		if err := vfs.WriteAll(l.to, l.pending[:n]); err != nil {
			return err
		}
	}
	l.drop(n)
	return nil
}

func (l *logReader) drop(n int) {
	l.pending = l.pending[:copy(l.pending, l.pending[n:])]
	l.at += int64(n)
}

func (l *logReader) bad(offset int64, format string, args ...any) error {
	return &FileError{Path: l.path, Record: l.records, Offset: offset, Reason: fmt.Sprintf(format, args...), kind: ErrLog}
}

// each calls visit with every record, which is valid JSON and visit's until it returns. What visit returns
// is passed on in the record's place.
func (l *logReader) each(visit func(raw []byte) ([]byte, error)) error {
	d := json.NewDecoder(l)
	open, err := d.Token()
	switch {
	case l.err != nil:
		return l.err
	case errors.Is(err, io.EOF):
		return l.bad(0, "it is empty, and should be a JSON array")
	case bytes.HasPrefix(l.pending, []byte("\xef\xbb\xbf")):
		return l.bad(0, "it begins with a byte order mark, which JSON has no place for")
	case err != nil:
		return l.bad(d.InputOffset(), "it is no JSON array: %v", err)
	case open != json.Delim('['):
		return l.bad(0, "it is no JSON array: it begins with %v", open)
	}
	var raw json.RawMessage
	for d.More() {
		l.records++
		if err := d.Decode(&raw); err != nil {
			return l.damage(d.InputOffset(), err)
		}
		if len(raw) > maxRecord {
			return l.bad(d.InputOffset(), "has more than %d MiB", maxRecord>>20)
		}
		end := d.InputOffset()
		if err := l.pass(end - int64(len(raw))); err != nil {
			return err
		}
		changed, err := visit(raw)
		var bad *FileError
		switch {
		case errors.Is(err, errNoObject):
			return l.bad(l.at, "%v", err)
		case errors.As(err, &bad) && bad.Offset == 0:
			bad.Offset = l.at
			return err
		case err != nil:
			return err
		}
		if l.to != nil {
			if err := vfs.WriteAll(l.to, changed); err != nil {
				return err
			}
		}
		l.drop(len(raw))
	}
	if _, err := d.Token(); err != nil {
		return l.damage(d.InputOffset(), err)
	}
	l.records = 0
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if l.err != nil {
			return l.err
		}
		return l.bad(d.InputOffset(), "something follows the array's end")
	}
	return l.pass(l.at + int64(len(l.pending)))
}

// damage describes an error of the decoder.
func (l *logReader) damage(offset int64, err error) error {
	if l.err != nil {
		return l.err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return l.bad(offset, "it is cut off: the array does not end")
	}
	return l.bad(offset, "%v", err)
}

// records visits the agent's records. No log is one without records.
func (a *agent) records(visit func(raw []byte) error) error {
	f, err := a.seams.FS.Open(a.log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", a.shown(), err)
	}
	defer f.Close() // a failed close of what was only read loses nothing
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", a.shown(), err)
	}
	if !info.Mode.IsRegular() {
		return &FileError{Path: a.log, Reason: "it is no plain file", kind: ErrLog}
	}
	l := newLogReader(a.log, f)
	return a.placed(l.each(func(raw []byte) ([]byte, error) { return nil, visit(raw) }))
}

// placed adds to what is wrong with the log the line that it is in.
func (a *agent) placed(err error) error {
	var e *FileError
	if !errors.As(err, &e) || e.Path != a.log || e.Line > 0 {
		return err
	}
	f, oerr := a.seams.FS.Open(a.log)
	if oerr != nil {
		return err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	line, left := 1, e.Offset
	buf := make([]byte, 64<<10)
	for left > 0 {
		n, rerr := f.Read(buf[:min(int64(len(buf)), left)])
		line += bytes.Count(buf[:n], []byte("\n"))
		if left -= int64(n); rerr != nil {
			break
		}
	}
	e.Line = line
	return err
}
