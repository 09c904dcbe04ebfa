package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

// errorObject is the one object that an error is under --json.
type errorObject struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`

	// Of a timeout.
	ErrorCode        string                   `json:"error_code,omitempty"`
	LockTimeout      *kernlock.Incident       `json:"lock_timeout,omitempty"`
	IncidentRecorded *bool                    `json:"incident_recorded,omitempty"`
	IncidentChannel  string                   `json:"incident_channel,omitempty"`
	OperatorAction   *kernlock.OperatorAction `json:"operator_action,omitempty"`

	// Of a grant's refusal.
	Refusal *refusalObject `json:"refusal,omitempty"`

	// Of a lock that is held under -n.
	Duplicate *kernlock.Duplicate `json:"duplicate,omitempty"`

	// Of a dispatch that is in the log although not all was done.
	Dispatch string `json:"dispatch,omitempty"`

	// Of a lock file that was not removed.
	LockFileHolder *lockFileHolder `json:"holder,omitempty"`
}

func newErrorObject(f *failure) *errorObject {
	o := &errorObject{Code: f.code, Message: display.Text(f.Error()), Hint: f.hint}
	var timeout *kernlock.TimeoutError
	if errors.As(f.err, &timeout) {
		recorded := timeout.RecordErr == nil
		o.ErrorCode = timeout.Code()
		o.LockTimeout = &timeout.Incident
		o.IncidentRecorded = &recorded
		o.IncidentChannel = display.Text(timeout.Channel)
		o.OperatorAction = &timeout.Incident.Action
	}
	var held *kernlock.HeldError
	if errors.As(f.err, &held) {
		o.Duplicate = &held.Duplicate
	}
	var inTheWay *lockfile.HeldError // its message names the command; a program need not search it
	if errors.As(f.err, &inTheWay) {
		o.LockFileHolder = lockFileStatusOf(inTheWay.State).Holder
		if o.Hint == "" {
			o.Hint = inTheWay.Hint
		}
	}
	return o
}

// report tells the user of an error, as text on stderr or as JSON on w.
func report(w io.Writer, f *failure, asJSON bool) {
	if asJSON {
		printJSON(w, newErrorObject(f))
		return
	}
	printFailure(os.Stderr, f.Error(), f.hint)
}

// fail is how a command that runs no command of the user's ends on an error.
// Its exit code says only "usage or failure", or "refused".
func fail(err error, asJSON bool) int {
	f := classify(err)
	report(stdout, f, asJSON)
	if stdout.toldOf(err, asJSON) {
		report(os.Stderr, f, false)
	}
	return exitOfOthers(f)
}

// exitOfOthers is a failure's exit code in commands that run no command.
func exitOfOthers(f *failure) int {
	if f.refused {
		return exitProblem
	}
	switch f.exit {
	case exitBadFile, exitHeld, exitLost:
		return exitProblem
	}
	return exitFailed
}

// printFailure writes a message and what helps. It is where every text that
// came from outside meets the terminal, so it cleans once more.
func printFailure(w io.Writer, message, hint string) {
	fmt.Fprintf(w, "stile: %s\n", display.Text(message))
	if hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", display.Text(hint))
	}
}

// stdout is the standard output, for all that a command prints. It remembers that something could not be
// written: no command must end with 0 then, and none needs to look at each error for that.
var stdout = &output{file: os.Stdout}

type output struct {
	file *os.File
	lost error // why the first that could not be written was not
	told bool  // the user knows
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.file.Write(b)
	if err == nil {
		return n, nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the name that the file has in Go says nothing
	}
	err = &failure{exit: exitIO, code: "io_error", hint: "what was asked for is done; only what was to be printed is lost",
		err: fmt.Errorf("cannot write the output: %w", err)}
	if o.lost == nil {
		o.lost = err
	}
	return n, err
}

// toldOf notes that err is told, which may be what was lost. It says whether it is to be told on the standard error
// too, since that is where an object on the standard output did not arrive.
func (o *output) toldOf(err error, asJSON bool) (again bool) {
	again = asJSON && o.lost != nil
	o.told = o.told || again || o.lost != nil && errors.Is(err, o.lost)
	return again
}

func printJSON(w io.Writer, v any) { _ = writeJSON(w, v) }

func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		b = fmt.Appendf(nil, `{"code":"io_error","message":%q,"hint":""}`, err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// afterOutput is how a command ends whose work ended with code.
func afterOutput(code int) int {
	if stdout.lost == nil {
		return code
	}
	if !stdout.told {
		report(os.Stderr, classify(stdout.lost), false)
	}
	if code == 0 {
		return exitFailed
	}
	return code
}

// printTable writes rows in columns as wide as their widest cell.
func printTable(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(w, b.String())
}

// span says how long d is, in the unit that a reader would choose.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// holderText names the process in a record, for people.
func holderText(r *kernlock.Record) string {
	if r == nil {
		return "unknown"
	}
	return fmt.Sprintf("pid %d on %s, agent %s, operation %s",
		r.PID, display.Text(r.Host), display.Text(r.AgentID), display.Text(r.Operation))
}
