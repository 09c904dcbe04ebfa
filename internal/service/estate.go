package service

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// estateView is what lies in an estate besides its containers.
type estateView struct {
	common
	Errors    []string
	Boards    []board
	Problems  []string
	LockFiles []lockRow
	Locks     []lockRow
	Incidents []incidentRow
}

type board struct {
	Agent string
	Items []dispatch.Item
	Cut   int
}

type lockRow struct {
	File, Holder, Kernel, State, Age, Since string
	Incidents                               int
}

type incidentRow struct {
	When, File, Waiter, Holder string
	at                         time.Time
}

// What the page shows of each at most.
const (
	shownItems     = 50
	shownLocks     = 500
	shownIncidents = 100
)

// pageEstate shows the dispatch boards, the locks and lock files, and who waited in vain.
func (s *Server) pageEstate(w http.ResponseWriter, r *http.Request) error {
	if err := s.there(); err != nil {
		return s.faulty(w, r, err)
	}
	c, err := s.common(r.Context(), "Estate", "")
	if err != nil {
		return err
	}
	v := &estateView{common: c}
	v.dispatches(s.o.Estate)
	v.locks(r.Context(), s.o.Estate)
	return render(w, http.StatusOK, "estate.html", v)
}

func (v *estateView) fault(err error) {
	if err != nil {
		v.Errors = append(v.Errors, display.Text(err.Error()))
	}
}

// dispatches reads the boards. What is in them is unchecked, and shown escaped.
func (v *estateView) dispatches(path string) {
	e, err := dispatch.OpenEstate(dispatch.Options{Flag: path})
	if err != nil {
		v.fault(err)
		return
	}
	defer func() { v.fault(e.Close()) }()
	agents, err := e.Agents()
	v.fault(err)
	for _, agent := range agents {
		items, err := e.Board(agent)
		if err != nil {
			v.fault(err)
			continue
		}
		b := board{Agent: display.Text(agent), Cut: max(0, len(items)-shownItems)}
		for _, it := range items[b.Cut:] {
			it.Title, it.Dispatch = shorten(display.Text(it.Title), 300), shorten(display.Text(it.Dispatch), 60)
			it.Column, it.UpdatedAt = dispatch.Column(shorten(display.Text(string(it.Column)), 30)), shorten(display.Text(it.UpdatedAt), 40)
			b.Items = append(b.Items, it)
		}
		v.Boards = append(v.Boards, b)
		if st, err := e.Lock(agent); err != nil {
			v.fault(err)
		} else if st.Locked {
			v.LockFiles = append(v.LockFiles, lockRow{
				File: below(path, st.LockPath), Holder: shorten(display.Text(st.Holder.String()), 200), State: string(st.Holder.State), Age: span(st.Holder.Age),
			})
		}
	}
	found, err := e.Check()
	v.fault(err)
	for _, p := range found.Problems {
		v.Problems = append(v.Problems, shorten(display.Text(p.String()), 400))
	}
}

// below is a file's path in the estate.
func below(estate, file string) string {
	if rel, err := filepath.Rel(estate, file); err == nil && !strings.HasPrefix(rel, "..") {
		file = rel
	}
	return display.Text(filepath.ToSlash(file))
}

func (v *estateView) locks(ctx context.Context, path string) {
	err := kernlock.Survey(ctx, path, func(r *kernlock.Report, err error) error {
		if err != nil {
			v.fault(err)
			return nil
		}
		if len(v.Locks) == shownLocks {
			return nil
		}
		row := lockRow{File: below(path, r.LockPath), Kernel: string(r.Kernel), Incidents: max(r.Incidents, 0)}
		if h := r.Holder; h != nil {
			row.Holder, row.Since = named(h.AgentID, h.PID, h.Operation), moment(h.AcquiredAt)
		}
		v.Locks = append(v.Locks, row)
		if r.Incidents > 0 {
			v.incidents(path, r)
		}
		return nil
	})
	v.fault(err)
	slices.SortFunc(v.Incidents, func(a, b incidentRow) int { return b.at.Compare(a.at) })
	v.Incidents = v.Incidents[:min(len(v.Incidents), shownIncidents)]
}

// named says who a process is. Whoever did not say which agent it works for is "unknown" in its record.
func named(agent string, pid int64, operation string) string {
	s := fmt.Sprintf("process %d", pid)
	if agent != "" && agent != "unknown" {
		s = agent + ", " + s
	}
	if operation != "" {
		s += ", for " + operation
	}
	return display.Text(s)
}

func (v *estateView) incidents(path string, r *kernlock.Report) {
	log, err := kernlock.Incidents(r.LockPath, kernlock.Options{Exact: true})
	if err != nil {
		v.fault(err)
		return
	}
	for _, in := range log.Rows {
		row := incidentRow{
			When: moment(in.RecordedAt), File: below(path, r.LockPath), Waiter: named(in.Waiter.AgentID, in.Waiter.PID, ""), at: in.RecordedAt,
		}
		if h := in.Holder; h != nil {
			row.Holder = named(h.AgentID, h.PID, h.Operation)
		}
		v.Incidents = append(v.Incidents, row)
	}
}
