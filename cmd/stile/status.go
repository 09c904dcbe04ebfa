package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

type statusFlags struct {
	json, exact bool
	estate      string
}

func (f *statusFlags) options() []option {
	return []option{
		estateOption(&f.estate),
		exactOption(&f.exact),
		jsonOption(&f.json),
	}
}

func statusVerb() verb {
	return verb{
		name:     "status",
		brief:    "show who holds the lock of a file, or the locks in a folder",
		synopsis: "[--json] [--exact] [--estate DIR] [PATH]",
		detail: `Shows the lock of one file in detail, or every lock in a folder (by default the
current one) and below as a table. Nothing is taken, changed or repaired to find
it, so it works on read-only folders too.

Of a kernel lock, the kernel alone decides who holds; the record says who took it
last. Of a lock file, the file says who holds, and status whether that process
lives. The lock of a folder itself lies beside it: 'stile status --exact FOLDER.lock'.

Of a folder it says besides which estate the commands begun there use, and why, and
lists the containers in it: who holds each, when the holder was last heard of, until
when it holds, and how many wait.

Exit code: 0; 1 when PATH cannot be read; 2 when an entry of the folder cannot.`,
		examples: `stile status notes.json
stile status
stile status --json ~/shared | jq '.locks[] | select(.kernel == "held")'`,
		options:  func() []option { return new(statusFlags).options() },
		operands: "FILE",
		run:      cmdStatus,
	}
}

// folderStatus is the JSON of a folder. The containers are those of the estate
// in use there.
type folderStatus struct {
	Estate     *estateInUse       `json:"estate"`
	EstateErr  *errorObject       `json:"estate_error,omitempty"` // why the one in reach would not be used
	Locks      []*kernlock.Report `json:"locks"`
	LockFiles  []lockFileStatus   `json:"lock_files"`
	Containers []containerRow     `json:"containers"`
	Errors     []pathError        `json:"errors,omitempty"`
}

type pathError struct {
	Path    string `json:"path"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func cmdStatus(args []string) int {
	var f statusFlags
	p, err := parse(args, f.options(), false)
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	path, err := onePath(p)
	if err != nil {
		return fail(err, f.json)
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() && !f.exact {
		return folderStatusOf(path, &f)
	}
	report, err := kernlock.Status(path, kernlock.Options{Exact: f.exact})
	if err != nil {
		return fail(err, f.json)
	}
	if !f.json && strings.HasSuffix(path, ".lock") && !f.exact && report.Content == kernlock.ContentAbsent {
		fmt.Fprintf(os.Stderr, "stile: this is about the lock of %s; with --exact the named file itself is the lock\n", display.Text(path))
	}
	w := bufio.NewWriter(stdout)
	lf, isLockFile := lockFileOf(report)
	switch {
	case f.json && isLockFile:
		printJSON(w, lockFileStatusOf(lf))
	case f.json:
		printJSON(w, report)
	case isLockFile:
		printLockFile(w, lf)
	default:
		printReport(w, report)
	}
	if err := w.Flush(); err != nil {
		return fail(err, false)
	}
	return 0
}

// onePath is the one operand that a verb takes, by default the current folder.
func onePath(p parsed) (string, error) {
	switch {
	case len(p.operands) == 0:
		return ".", nil
	case len(p.operands) > 1:
		return "", usagef("one PATH at a time")
	case p.operands[0] == "":
		return "", usagef("PATH is empty")
	}
	return p.operands[0], nil
}

func folderStatusOf(dir string, f *statusFlags) int {
	out := folderStatus{Locks: []*kernlock.Report{}, LockFiles: []lockFileStatus{}, Containers: []containerRow{}}
	err := kernlock.Survey(context.Background(), dir, func(r *kernlock.Report, err error) error {
		if err != nil {
			f := classify(err)
			out.Errors = append(out.Errors, pathError{Path: r.LockPath, Code: f.code, Message: display.Text(err.Error())})
			return nil
		}
		if estate.Of(r.Target) == "" || r.Content == kernlock.ContentRecord {
			out.Locks = append(out.Locks, r)
		}
		return nil
	})
	if err != nil {
		return fail(err, f.json)
	}
	base, err := filepath.Abs(dir)
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	var files []lockfile.State
	if err == nil {
		err = surveyLockFiles(context.Background(), base, func(s lockfile.State) {
			files = append(files, s)
			out.LockFiles = append(out.LockFiles, lockFileStatusOf(s))
		})
	}
	if err != nil {
		return fail(err, f.json)
	}
	in, refused := lookForEstate(f.estate, dir)
	out.Estate = in
	if refused != nil {
		out.EstateErr = newErrorObject(refused)
	}
	unreadable := false
	if in != nil {
		if unreadable, err = out.lookAtContainers(in.Path); err != nil {
			return fail(err, f.json)
		}
	}
	code := 0
	if len(out.Errors) > 0 || unreadable {
		code = exitProblem
	}
	if f.json {
		printJSON(stdout, out)
		return code
	}
	fmt.Fprintf(stdout, "estate  %s\n", estateText(in, refused))
	for _, e := range out.Errors {
		printFailure(os.Stderr, e.Path+": "+e.Message, "")
	}
	if len(out.Locks)+len(files) == 0 {
		fmt.Fprintf(stdout, "no locks in %s\n", display.Text(dir))
		out.printContainers()
		return code
	}
	rows := [][]string{{"TARGET", "LOCK", "HOLDER", "AGENT", "OPERATION", "SINCE", "WAITERS", "INCIDENTS"}}
	for _, r := range out.Locks {
		rows = append(rows, statusRow(base, r))
	}
	for _, l := range files {
		rows = append(rows, lockFileRow(base, l))
	}
	printTable(stdout, rows)
	out.printContainers()
	return code
}

// lookAtContainers fills in those of the estate. bad: one of them cannot be read.
func (out *folderStatus) lookAtContainers(path string) (bad bool, err error) {
	c, err := openContainers(path, true)
	if err != nil {
		return false, err
	}
	out.Containers, bad, err = containerRows(context.Background(), c)
	return bad, err
}

func (out *folderStatus) printContainers() {
	if len(out.Containers) > 0 {
		fmt.Fprintln(stdout)
		printContainers(stdout, out.Containers)
	}
}

func statusRow(base string, r *kernlock.Report) []string {
	row := []string{relativeTo(base, r.Target), lockWord(r), "-", "-", "-", "-", count(r.Waiters), count(r.Incidents)}
	if r.Kernel == kernlock.KernelFree {
		return row
	}
	if h := r.Holder; h != nil && r.HolderState == kernlock.Current {
		row[2] = fmt.Sprintf("%d (%s)", h.PID, r.Liveness)
		row[3], row[4], row[5] = display.Text(h.AgentID), display.Text(h.Operation), span(seconds(r.AgeSeconds))
	} else if len(r.Holders) > 0 {
		row[2] = processes(r.Holders)
	}
	return row
}

func lockWord(r *kernlock.Report) string {
	if r.Kernel == kernlock.KernelHeld && r.Shared {
		return "shared"
	}
	return string(r.Kernel)
}

func count(n int) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

func processes(ps []kernlock.Process) string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d", p.PID)
		if p.Name != "" {
			fmt.Fprintf(&b, " %s", display.Text(p.Name))
		}
	}
	return b.String()
}

// printReport writes one lock in detail, what the kernel says first: the
// record below it may be of an earlier holder.
func printReport(w io.Writer, r *kernlock.Report) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("target", "%s", display.Text(r.Target))
	line("lock file", "%s (%s)", display.Text(r.LockPath), contentText(r.Content))
	line("lock id", "%s", display.Text(r.LockID))
	line("kernel", "%s", kernelText(r))
	if len(r.Holders) > 0 {
		line("held by", "%s", processes(r.Holders))
	}
	switch {
	case r.Waiters > 0:
		line("waiters", "%d", r.Waiters)
	case r.Waiters < 0 && r.Kernel != kernlock.KernelFree:
		line("waiters", "not known here")
	}
	if h := r.Holder; h != nil {
		line("record", "%s", holderText(h))
		line("", "policy %s, taken %s (%s ago)", display.Text(string(h.Policy)), clock(h.AcquiredAt), span(seconds(r.AgeSeconds)))
		if !h.ReleasedAt.IsZero() {
			line("", "released %s", clock(h.ReleasedAt))
		}
		line("", "its process: %s", livenessText(r.Liveness))
		line("", "%s", stateText(r))
	} else {
		line("record", "%s", livenessText(r.Liveness))
	}
	switch {
	case r.Incidents < 0:
		line("incidents", "cannot be read")
	case r.Incidents > 0:
		line("incidents", "%d: see 'stile incidents %s'", r.Incidents, display.Text(r.Target))
	default:
		line("incidents", "none")
	}
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func kernelText(r *kernlock.Report) string {
	switch {
	case r.Kernel == kernlock.KernelHeld && r.Shared:
		return "held, shared"
	case r.Kernel == kernlock.KernelUnknown:
		return "unknown: the system does not show it from here"
	}
	return string(r.Kernel)
}

func contentText(c kernlock.Content) string {
	switch c {
	case kernlock.ContentAbsent:
		return "not there yet"
	case kernlock.ContentEmpty:
		return "empty: no record"
	case kernlock.ContentRecord:
		return "holder record"
	case kernlock.ContentDamaged:
		return "damaged record; the next holder writes a new one"
	case kernlock.ContentForeign:
		return "another program's file: locked, never written"
	case kernlock.ContentOther:
		return "of the lock file family: refused"
	}
	return string(c)
}

func livenessText(l kernlock.Liveness) string {
	switch l {
	case kernlock.Absent:
		return "none"
	case kernlock.Unreadable:
		return "cannot be read"
	case kernlock.Released:
		return "let go in the normal way"
	case kernlock.ForeignHost:
		return "on another host, not looked up from here"
	case kernlock.Live:
		return "runs"
	case kernlock.Dead:
		return "is gone"
	case kernlock.Unknown:
		return "cannot be told from here"
	}
	return string(l)
}

func stateText(r *kernlock.Report) string {
	if r.Kernel == kernlock.KernelFree {
		return "nobody holds the lock now"
	}
	switch r.HolderState {
	case kernlock.Current:
		return "the present holder wrote it"
	case kernlock.Previous:
		return "of an earlier holder: the present one wrote none"
	}
	return "it is not known whether the present holder wrote it"
}
