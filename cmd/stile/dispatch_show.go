package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
)

// dispatchRow is the JSON of a dispatch in lists.
type dispatchRow struct {
	Agent    string            `json:"agent"` // whose log it is in
	ID       string            `json:"id"`
	Task     string            `json:"task"`
	Worker   *string           `json:"worker"`
	Status   dispatch.Status   `json:"status"`
	OpenedAt string            `json:"opened_at"`
	OpenedBy *dispatch.Opener  `json:"opened_by"`
	ClosedAt *string           `json:"closed_at"`
	Result   *string           `json:"result"`
	Labels   map[string]string `json:"labels"`
}

func dispatchOf(agent string, r *dispatch.Record) *dispatchRow {
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	row := &dispatchRow{
		Agent: agent, ID: r.ID, Task: r.Task, Worker: orNull(r.Worker), Status: dispatchStatus(r), OpenedAt: r.OpenedAt,
		OpenedBy: r.OpenedBy, ClosedAt: orNull(r.ClosedAt), Result: orNull(r.Result), Labels: r.Labels,
	}
	if row.Labels == nil {
		row.Labels = map[string]string{}
	}
	return row
}

// dispatchStatus takes a record without a status, as other tools may leave one, for an open dispatch.
func dispatchStatus(r *dispatch.Record) dispatch.Status {
	if r.Status == "" {
		return dispatch.Open
	}
	return r.Status
}

func showVerb() verb {
	return verb{
		name:     "dispatch show",
		brief:    "show one dispatch, whole",
		synopsis: "ID [--agent NAME] [--json]",
		detail: `Shows a dispatch with its whole task and result. Without --agent it is looked for in
all logs of the estate. With --json the record is given as the log has it, with
members that other tools put there.

Exit code: 0; 1 usage, or no such dispatch; 2 it is there twice, or a log is not
what it should be.`,
		examples: `stile dispatch show 01JDXYZ…
stile dispatch show --json 01JDXYZ… | jq -r .record.result`,
		options: func() []option { return new(estateFlags).options() },
		run:     cmdShow,
	}
}

func cmdShow(args []string) int {
	var f estateFlags
	p, err := parse(args, f.options(), false)
	if err == nil && (len(p.operands) != 1 || p.operands[0] == "") {
		err = usageHint("stile dispatch show ID", "one ID is to be named")
	}
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	return f.in(func(e *dispatch.Estate) error {
		agent, raw, err := e.Find(f.agent, p.operands[0])
		if err != nil {
			return err
		}
		if f.json {
			// Decoded and encoded again, so that no byte of the file reaches a reader that JSON forbids.
			var whole any
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			if err := d.Decode(&whole); err != nil {
				return err
			}
			printJSON(stdout, map[string]any{"agent": agent, "log": e.LogPath(agent), "record": whole})
			return nil
		}
		w := bufio.NewWriter(stdout)
		printDispatch(w, agent, dispatch.ParseRecord(raw))
		return w.Flush()
	})
}

func printDispatch(w io.Writer, agent string, r dispatch.Record) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-9s %s\n", name, display.Text(text))
		}
	}
	line("dispatch", r.ID)
	line("agent", agent)
	line("worker", r.Worker)
	line("status", string(dispatchStatus(&r)))
	line("opened", r.OpenedAt)
	if r.OpenedBy != nil {
		line("by", fmt.Sprintf("pid %d on %s", r.OpenedBy.PID, r.OpenedBy.Host))
	}
	line("closed", r.ClosedAt)
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		line("label", key+"="+r.Labels[key])
	}
	for _, part := range []struct{ name, text string }{{"task", r.Task}, {"result", r.Result}} {
		if part.text == "" {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", part.name)
		for l := range strings.Lines(part.text) {
			fmt.Fprintf(w, "  %s\n", display.Text(strings.TrimRight(l, "\r\n")))
		}
	}
}
