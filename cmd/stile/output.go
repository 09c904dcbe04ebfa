package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	report(os.Stdout, f, asJSON)
	if lostOutput != nil { // somebody should know
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

// lostOutput is why JSON that was to be printed on the standard output was not: a command that is asked by
// a program must not end with 0 then.
var lostOutput error

func printJSON(w io.Writer, v any) {
	if err := writeJSON(w, v); err != nil && w == os.Stdout {
		lostOutput = err
	}
}

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
	if code != 0 || lostOutput == nil {
		return code
	}
	printFailure(os.Stderr, "print the result: "+lostOutput.Error(), "what was asked for is done")
	return exitFailed
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
