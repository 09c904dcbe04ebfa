package dispatch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/jsontext"
)

// closeIn copies a log with one dispatch closed in it. The whole log is read, so that one that is damaged
// anywhere, or has the dispatch twice, is not changed.
func (a *agent) closeIn(old io.Reader, w io.Writer, id string, o Outcome) (r Record, err error) {
	l := newLogReader(a.log, old)
	out := bufio.NewWriterSize(w, 256<<10)
	l.to = out
	found := false
	err = l.each(func(raw []byte) ([]byte, error) {
		if idOf(raw) != id {
			return raw, nil
		}
		if found {
			return nil, fmt.Errorf("dispatch %s of %s: %w", display.Text(id), a.shown(), ErrDuplicate)
		}
		found = true
		was, _ := parseRecord(raw)
		if !was.open() {
			return nil, fmt.Errorf("dispatch %s of %s: %w: %s at %s", display.Text(id), a.shown(), ErrClosed,
				display.Text(short(string(was.Status))), display.Text(short(was.ClosedAt)))
		}
		changed, err := a.closed(raw, o)
		if err == nil {
			r, _ = parseRecord(changed)
		}
		return changed, err
	})
	switch {
	case err != nil:
		return Record{}, err
	case !found:
		return Record{}, fmt.Errorf("dispatch %s of %s: %w", display.Text(short(id)), a.shown(), ErrNoDispatch)
	}
	return r, out.Flush()
}

// closed gives a record with its end in it.
func (a *agent) closed(raw []byte, o Outcome) ([]byte, error) {
	pairs := []jsontext.Pair{{Key: "status"}, {Key: "closed_at"}}
	values := []any{o.Status, stamp(a.seams.Clock.Now())}
	if o.Result != "" {
		pairs, values = append(pairs, jsontext.Pair{Key: "result"}), append(values, o.Result)
	}
	for i, v := range values {
		var err error
		if pairs[i].Value, err = encode(v); err != nil {
			return nil, err
		}
	}
	changed, ok := jsontext.Set(raw, 0, pairs...)
	if !ok || !json.Valid(changed) {
		return nil, &FileError{Path: a.log, Reason: "a record cannot be taken apart", kind: ErrLog}
	}
	return changed, nil
}
