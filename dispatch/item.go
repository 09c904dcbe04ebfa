package dispatch

import (
	"bytes"
	"slices"
	"time"

	"github.com/stile-lock/stile/internal/jsontext"
)

// Column is where on a board an item is.
type Column string

// The columns.
const (
	Todo   Column = "todo"
	Doing  Column = "doing"
	Closed Column = "done"
)

// Item is one item of a board. Items that were put there by hand may belong to no dispatch.
type Item struct {
	Dispatch  string `json:"dispatch"`
	Title     string `json:"title"`
	Column    Column `json:"column"`
	UpdatedAt string `json:"updated_at"`
}

// placed is an item and where in the board's text it is.
type placed struct {
	Item
	span jsontext.Span
}

// list finds the board's array of items. It is not ok when the text breaks off or is no board.
func list(text []byte) (o jsontext.Object, items []jsontext.Span, whole jsontext.Span, ok bool) {
	o, ok = jsontext.ObjectAt(text, 0)
	if !ok {
		return o, nil, whole, false
	}
	v, ok := o.Get("items")
	if !ok {
		return o, nil, whole, false
	}
	items, whole, ok = jsontext.ElementsAt(text, v.Start)
	return o, items, whole, ok
}

// parts finds the array of items, after checking what can be checked in little time.
func (b *board) parts(always bool) (items []jsontext.Span, whole jsontext.Span, err error) {
	if k := b.known; !always && len(k.text) > 0 && len(k.text) == len(b.text) && &k.text[0] == &b.text[0] {
		return k.items, k.whole, nil // the very same bytes
	}
	if err := b.valid(always); err != nil {
		return nil, whole, err
	}
	o, items, whole, ok := list(b.text)
	if !ok && !always { // a long one that was not looked at closely: it says better what is wrong
		if err := b.valid(true); err != nil {
			return nil, whole, err
		}
	}
	version := boardVersion
	if v, there := o.Get("v"); there {
		into(v.Of(b.text), &version)
	}
	switch {
	case version > boardVersion:
		e := b.bad(0, "written by a newer stile: its form is %d, and %d is the newest known here", version, boardVersion)
		e.cause = ErrNewerBoard
		return nil, whole, e
	case !ok:
		return nil, whole, b.bad(0, "it is no JSON object with an array of items")
	}
	b.known.text, b.known.items, b.known.whole = b.text, items, whole
	return items, whole, nil
}

// parse reads the items. What is no object is somebody else's, and is passed over.
func (b *board) parse() ([]placed, error) {
	spans, _, err := b.parts(true)
	if err != nil {
		return nil, err
	}
	items := make([]placed, 0, len(spans))
	for _, s := range spans {
		if it, ok := parseItem(s.Of(b.text)); ok {
			items = append(items, placed{it, s})
		}
	}
	return items, nil
}

func parseItem(raw []byte) (it Item, ok bool) {
	o, ok := jsontext.ObjectAt(raw, 0)
	if !ok {
		return Item{}, false
	}
	for _, m := range o.Members {
		v := m.Value.Of(raw)
		switch m.Key {
		case "dispatch":
			text(v, &it.Dispatch)
		case "title":
			text(v, &it.Title)
		case "column":
			text(v, &it.Column)
		case "updated_at":
			text(v, &it.UpdatedAt)
		}
	}
	return it, true
}

// column is where the item of a dispatch belongs.
func (r *Record) column() Column {
	switch {
	case !r.open():
		return Closed
	case r.Worker != "":
		return Doing
	}
	return Todo
}

// setItem changes b.text so that the dispatch's item is there, and in its column when it is closed.
func (b *board) setItem(r Record, now time.Time) error {
	if r.open() {
		return b.addItems([]Record{r}, now)
	}
	items, err := b.items()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(items, func(it placed) bool { return it.Dispatch == r.ID })
	if at < 0 {
		return b.addItems([]Record{r}, now)
	}
	return b.move(items[at], Closed, now)
}

// move puts an item into a column, its other bytes kept.
func (b *board) move(it placed, to Column, now time.Time) error {
	pairs := []jsontext.Pair{{Key: "column"}, {Key: "updated_at"}}
	for i, v := range []any{to, stamp(now)} {
		var err error
		if pairs[i].Value, err = encode(v); err != nil {
			return err
		}
	}
	text, ok := jsontext.Set(b.text, it.span.Start, pairs...)
	if !ok {
		return b.bad(int64(it.span.Start), "an item cannot be taken apart")
	}
	b.text = text
	return nil
}

// addItems adds the items of dispatches that are not on the board.
func (b *board) addItems(records []Record, now time.Time) error {
	if len(records) == 0 {
		return nil
	}
	texts := make([][]byte, 0, len(records))
	for i := range records {
		r := &records[i]
		text, err := encode(&Item{Dispatch: r.ID, Title: title(r.Task), Column: r.column(), UpdatedAt: stamp(now)})
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	if b.text == nil {
		b.text = []byte("{\n  \"v\": 1,\n  \"items\": []\n}\n")
	}
	items, whole, err := b.parts(false)
	if err != nil {
		return err
	}
	at, rest := whole.Start+1, whole.End-1
	lead, between, tail := []byte("\n    "), []byte(",\n    "), []byte("\n  ")
	if n := len(items); n > 0 {
		at = items[n-1].End
		rest = at
		between = jsontext.Separator(b.text, items[n-1].Start)
		lead, tail = between, nil
	}
	b.text = slices.Concat(b.text[:at], lead, bytes.Join(texts, between), tail, b.text[rest:])
	return nil
}
