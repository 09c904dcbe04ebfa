package dispatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/jsontext"
)

// Status is what has become of a dispatch.
type Status string

// The statuses. A dispatch is open until it is closed with one of the others.
const (
	Open      Status = "open"
	Done      Status = "done"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

const (
	// MaxText is the longest task and the longest result, in bytes.
	MaxText = 64 << 10
	// MaxWord is the longest worker, id, label name and label value, in bytes.
	MaxWord = 1 << 10
	// MaxLabels is how many labels a dispatch may have.
	MaxLabels = 64

	recordVersion = 1
	timeForm      = "2006-01-02T15:04:05.000Z"
)

// Opener is the process that opened a dispatch.
type Opener struct {
	PID  int64  `json:"pid"`
	Host string `json:"host"`
}

// Record is a dispatch as its log has it. In what other tools wrote, a member that is missing or of another
// type is its zero value. Text is whole and unchecked: escape it before showing it.
type Record struct {
	V        int               `json:"v"`
	ID       string            `json:"id"` // a ULID, when this package made it
	Agent    string            `json:"agent"`
	Task     string            `json:"task"`
	Worker   string            `json:"worker,omitempty"`
	OpenedAt string            `json:"opened_at"` // UTC, in milliseconds: 2026-11-30T17:43:32.815Z
	OpenedBy *Opener           `json:"opened_by,omitempty"`
	Status   Status            `json:"status"`
	ClosedAt string            `json:"closed_at,omitempty"`
	Result   string            `json:"result,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// Task is what a dispatch is opened with.
type Task struct {
	Text   string // 1 byte to 64 KiB of UTF-8
	Worker string // who works on it; may be empty
	Labels map[string]string
}

// Outcome is what a dispatch is closed with.
type Outcome struct {
	Status Status // Done, Failed or Cancelled
	Result string // up to 64 KiB of UTF-8; may be empty
}

func (t *Task) check() error {
	if t.Text == "" {
		return fmt.Errorf("%w: the task is empty", ErrText)
	}
	if err := checkText("task", t.Text, MaxText); err != nil {
		return err
	}
	if err := checkText("worker", t.Worker, MaxWord); err != nil {
		return err
	}
	if len(t.Labels) > MaxLabels {
		return fmt.Errorf("%w: %d labels, at most %d", ErrText, len(t.Labels), MaxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		if name == "" {
			return fmt.Errorf("%w: a label without a name", ErrText)
		}
		if err := checkText("label's name", name, MaxWord); err != nil {
			return err
		}
		if err := checkText("label", t.Labels[name], MaxWord); err != nil {
			return err
		}
	}
	return nil
}

func (o *Outcome) check() error {
	switch o.Status {
	case Done, Failed, Cancelled:
	default:
		return fmt.Errorf("%w: the status is done, failed or cancelled, not %q", ErrText, short(string(o.Status)))
	}
	return checkText("result", o.Result, MaxText)
}

func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%w: the %s has %d bytes, at most %d", ErrText, what, len(text), limit)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: the %s is not UTF-8", ErrText, what)
	}
	return nil
}

func short(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }

// encode gives v as JSON on one line, with nothing escaped that need not be.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parseRecord reads a record from valid JSON. It is not ok when that is no object.
func parseRecord(raw []byte) (r Record, ok bool) {
	o, ok := jsontext.ObjectAt(raw, 0)
	if !ok {
		return Record{}, false
	}
	for _, m := range o.Members {
		v := m.Value.Of(raw)
		switch m.Key {
		case "v":
			into(v, &r.V)
		case "id":
			text(v, &r.ID)
		case "agent":
			text(v, &r.Agent)
		case "task":
			text(v, &r.Task)
		case "worker":
			text(v, &r.Worker)
		case "opened_at":
			text(v, &r.OpenedAt)
		case "opened_by":
			into(v, &r.OpenedBy)
		case "status":
			text(v, &r.Status)
		case "closed_at":
			text(v, &r.ClosedAt)
		case "result":
			text(v, &r.Result)
		case "labels":
			into(v, &r.Labels)
		}
	}
	return r, true
}

// text decodes a string. One without escapes, as nearly all are, is not handed to a decoder.
func text[T ~string](value []byte, to *T) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		*to = T(value[1 : n-1])
		return
	}
	into(value, to)
}

// into decodes a value, or gives the zero value for one of another type. The last of several counts.
func into[T any](value []byte, to *T) {
	var v T
	if json.Unmarshal(value, &v) != nil {
		var zero T
		v = zero
	}
	*to = v
}

// idOf gives the id of a record; "" when it has none.
func idOf(raw []byte) string {
	var id string
	if o, ok := jsontext.ObjectAt(raw, 0); ok {
		if v, ok := o.Get("id"); ok {
			text(v.Of(raw), &id)
		}
	}
	return id
}

// open tells whether the record's dispatch is still to be closed. Other tools may leave the status out.
func (r *Record) open() bool { return r.Status == Open || r.Status == "" }

// title is the first line of a task that says something, in at most 100 characters.
func title(task string) string {
	for line := range strings.Lines(task) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if utf8.RuneCountInString(line) <= maxTitle {
			return line
		}
		return string([]rune(line)[:maxTitle-1]) + "…"
	}
	return ""
}

const maxTitle = 100

// ParseRecord reads a record from the JSON that Raw and Find give. What is no object is the zero Record.
func ParseRecord(raw []byte) Record {
	r, _ := parseRecord(raw)
	return r
}
