package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/follow"
)

// followIncidents shows the incidents that there are, and then each that comes.
func followIncidents(path string, f *incidentFlags) int {
	i := &incidentFollower{incidentFlags: f, path: path, w: bufio.NewWriter(stdout), told: map[string]bool{}}
	err := followed(i.round)
	var code *exitCode
	if errors.As(err, &code) {
		return code.n
	}
	return fail(err, f.json)
}

type incidentFollower struct {
	*incidentFlags
	path string
	w    *bufio.Writer

	seen map[string]int  // how often each was there in the last round
	told map[string]bool // what could not be read

	headed bool
	next   bool // the first round is over
}

func (f *incidentFollower) round(w *follow.Watch) error {
	f.watch(w)
	out, err := incidentsIn(f.path, f.exact)
	if err != nil && !f.next {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it is away for the moment, and may come back
	}
	// The channels are rotated, so that places in them mean nothing: what is new is told by its content.
	there := map[string]int{}
	rows := make([]string, 0, len(out.Incidents))
	var fresh []int
	for i := range out.Incidents {
		text, err := json.Marshal(&out.Incidents[i])
		if err != nil {
			return err
		}
		rows = append(rows, string(text))
		if there[rows[i]]++; there[rows[i]] > f.seen[rows[i]] {
			fresh = append(fresh, i)
		}
	}
	f.seen = there
	if !f.next && f.last >= 0 && len(fresh) > f.last {
		fresh = fresh[len(fresh)-f.last:]
	}
	for _, i := range fresh {
		f.print(&out.Incidents[i], rows[i])
	}
	f.complain(out.Errors)
	f.next = true
	return f.w.Flush()
}

const incidentForm = "%-23s  %-24s  %-10s  %-40s  %s\n"

func (f *incidentFollower) print(row *incidentRow, text string) {
	if f.json {
		fmt.Fprintln(f.w, text)
		return
	}
	if !f.headed {
		f.headed = true
		fmt.Fprintf(f.w, incidentForm, "WHEN", "FILE", "WAITED", "WAITER", "IN THE WAY")
	}
	cells := incidentCells(row)
	fmt.Fprintf(f.w, incidentForm, cells[0], cells[1], cells[2], cells[3], cells[4])
}

// complain tells once of each entry that cannot be read.
func (f *incidentFollower) complain(errs []pathError) {
	for _, e := range errs {
		if text := e.Path + ": " + e.Message; !f.told[text] {
			f.told[text] = true
			printFailure(os.Stderr, text, "")
		}
	}
}

// watch adds the folders in which incidents may come: that of the file, or all below the folder.
func (f *incidentFollower) watch(w *follow.Watch) {
	st, err := os.Stat(f.path)
	if err != nil || !st.IsDir() || f.exact {
		path := f.path
		if whole, err := filepath.EvalSymlinks(path); err == nil {
			path = whole
		}
		w.Add(filepath.Dir(path))
		return
	}
	_ = filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			w.Add(path)
		}
		return nil
	})
}

// incidentCells are an incident's cells in a table.
func incidentCells(in *incidentRow) []string {
	return []string{
		clock(in.RecordedAt),
		display.Text(filepath.Base(in.Target)),
		fmt.Sprintf("%.3f s", in.Waiter.WaitedSeconds),
		fmt.Sprintf("%s %s (pid %d)", display.Text(in.Waiter.AgentID), display.Text(in.Waiter.Operation), in.Waiter.PID),
		inTheWay(&in.Incident),
	}
}
