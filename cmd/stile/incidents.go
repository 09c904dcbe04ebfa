package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

type incidentFlags struct {
	json, exact, follow bool
	last                int
}

func (f *incidentFlags) options() []option {
	return []option{
		lastOption(&f.last),
		exactOption(&f.exact),
		jsonOption(&f.json),
		boolOption("f,follow", "go on: show those that come from now on, until interrupted", &f.follow),
	}
}

func incidentsVerb() verb {
	return verb{
		name:     "incidents",
		brief:    "show the waits that ran out",
		synopsis: "[-n N] [--follow] [--json] [--exact] [PATH]",
		detail: `Shows the incidents of one file, or of every file in a folder (by default the
current one) and below: who waited, how long, and who was in the way. The newest
comes last. Only a wait that ran out leaves an incident; 'run -n' never does.

With --follow it goes on and shows each incident as it comes, until it is interrupted
or nobody reads on. Under --json it then prints one object a line.

Exit code: 0; 1 when PATH cannot be read; 2 when a file below it cannot.`,
		examples: `stile incidents notes.json
stile incidents -n 20 ~/shared
stile incidents --json . | jq '.incidents[].holder.agent_id'`,
		options:  func() []option { return new(incidentFlags).options() },
		operands: "FILE",
		run:      cmdIncidents,
	}
}

// incidentsOut is the JSON of the verb.
type incidentsOut struct {
	Incidents []incidentRow `json:"incidents"`
	Skipped   int           `json:"skipped"` // lines that are no incidents
	Errors    []pathError   `json:"errors,omitempty"`
}

type incidentRow struct {
	Target string `json:"target"`
	kernlock.Incident
}

func cmdIncidents(args []string) int {
	var f incidentFlags
	p, err := parse(args, f.options(), false)
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	path, err := onePath(p)
	if err != nil {
		return fail(err, f.json)
	}
	if f.follow {
		return followIncidents(path, &f)
	}
	out, err := incidentsIn(path, f.exact)
	if err != nil {
		return fail(err, f.json)
	}
	if f.last >= 0 && len(out.Incidents) > f.last {
		out.Incidents = out.Incidents[len(out.Incidents)-f.last:]
	}
	code := 0
	if len(out.Errors) > 0 {
		code = exitProblem
	}
	if f.json {
		printJSON(stdout, out)
		return code
	}
	out.print(path)
	return code
}

// incidentsIn reads the incidents of a file, or of all below a folder, the newest last.
func incidentsIn(path string, exact bool) (*incidentsOut, error) {
	out := &incidentsOut{Incidents: []incidentRow{}}
	st, err := os.Stat(path)
	if err == nil && st.IsDir() && !exact {
		err = out.addFolder(path)
	} else {
		err = out.add(path, kernlock.Options{Exact: exact})
	}
	if err != nil {
		return nil, err
	}
	sort.SliceStable(out.Incidents, func(i, j int) bool {
		return out.Incidents[i].RecordedAt.Before(out.Incidents[j].RecordedAt)
	})
	return out, nil
}

func (out *incidentsOut) add(target string, opts kernlock.Options) error {
	log, err := kernlock.Incidents(target, opts)
	if err != nil {
		return err
	}
	for _, row := range log.Rows {
		out.Incidents = append(out.Incidents, incidentRow{log.Target, row})
	}
	out.Skipped += log.Skipped
	return nil
}

// addFolder adds the incidents of every lock below dir. Links are not
// followed. What cannot be read is told and does not hide the rest.
func (out *incidentsOut) addFolder(dir string) error {
	const suffix = ".incidents.jsonl"
	seen := make(map[string]bool)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			out.Errors = append(out.Errors, pathError{Path: path, Code: classify(err).code, Message: display.Text(err.Error())})
			return nil
		}
		lockPath, ok := strings.CutSuffix(strings.TrimSuffix(path, ".1"), suffix)
		if !ok || d.IsDir() || seen[lockPath] {
			return nil
		}
		seen[lockPath] = true
		target, opts := strings.TrimSuffix(lockPath, ".lock"), kernlock.Options{}
		if target == lockPath {
			opts.Exact = true
		}
		if err := out.add(target, opts); err != nil {
			out.Errors = append(out.Errors, pathError{Path: path, Code: classify(err).code, Message: display.Text(err.Error())})
		}
		return nil
	})
}

func (out *incidentsOut) print(path string) {
	for _, e := range out.Errors {
		printFailure(os.Stderr, e.Path+": "+e.Message, "")
	}
	if len(out.Incidents) == 0 {
		fmt.Fprintf(stdout, "no incidents in %s\n", display.Text(path))
	} else {
		rows := [][]string{{"WHEN", "FILE", "WAITED", "WAITER", "IN THE WAY"}}
		for i := range out.Incidents {
			rows = append(rows, incidentCells(&out.Incidents[i]))
		}
		printTable(stdout, rows)
	}
	if out.Skipped > 0 {
		fmt.Fprintf(stdout, "%s skipped: no incidents\n", plural(out.Skipped, "line", "lines"))
	}
}

func inTheWay(in *kernlock.Incident) string {
	switch {
	case in.HolderChanged:
		return "several in turn: busy, not stalled"
	case in.Holder == nil || in.HolderState == kernlock.Previous:
		return "unknown: it wrote no record"
	}
	text := fmt.Sprintf("%s %s (pid %d on %s)", display.Text(in.Holder.AgentID), display.Text(in.Holder.Operation),
		in.Holder.PID, display.Text(in.Holder.Host))
	if in.HolderState != kernlock.Current {
		text += ", perhaps"
	}
	return text
}
