package service

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

//go:embed assets
var assets embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"time":  stamp,
	"when":  func(t grant.Time) string { return moment(t.Std()) },
	"path":  url.PathEscape,
	"word":  func(b grant.Badge) string { return badgeWords[b] },
	"short": func(d grant.Digest) string { return string(d[:min(len(d), 12)]) },
	"words": func(e any) string { return strings.ReplaceAll(fmt.Sprint(e), "_", " ") },
	"age":   func(t, now grant.Time) string { return span(now.Sub(t)) },
	"until": func(t, now grant.Time) string {
		if d := t.Sub(now); d > 0 {
			return "in " + span(d)
		}
		return span(now.Sub(t)) + " ago"
	},
}).ParseFS(assets, "assets/*.html"))

// moment is a time as people read it.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// span is a duration as people read it.
func span(d time.Duration) string {
	d = max(d, 0)
	days, h, m, s := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, h)
	case h > 0:
		return fmt.Sprintf("%dh %dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm %ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// common is what every page has.
type common struct {
	Title, Heading string
	Estate, Events string
	Now            grant.Time
	Said, Hint     string // what came of a form, or what is wrong
}

func (s *Server) common(ctx context.Context, title, events string) (common, error) {
	now, err := s.store.Now(ctx)
	return common{Title: title + " · stile", Heading: title, Estate: display.Text(s.o.Estate), Events: events, Now: now}, err
}

// render writes a page, all of it or an error.
func render(w http.ResponseWriter, status int, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who has gone is not told
	return nil
}

// faulty shows an error as a page: who looks with a browser reads no JSON.
func (s *Server) faulty(w http.ResponseWriter, r *http.Request, err error) error {
	p := s.problem(err)
	c, cerr := s.common(r.Context(), p.Title, "")
	if cerr != nil {
		return err
	}
	c.Said, c.Hint = p.Detail, p.Hint
	return render(w, p.Status, "fault.html", c)
}

type count struct {
	Badge grant.Badge
	N     int
}

func (s *Server) pageList(w http.ResponseWriter, r *http.Request) error {
	list, err := s.summaries(r.Context())
	if err != nil {
		return s.faulty(w, r, err)
	}
	c, err := s.common(r.Context(), "Containers", "/v1/events")
	if err != nil {
		return err
	}
	only := grant.Badge(r.FormValue("badge"))
	if _, known := badgeWords[only]; !known && only != "" {
		return s.faulty(w, r, &granthttp.FieldError{Field: "badge", Why: "there is no such badge"})
	}
	counts := []count{{grant.BadgeHolderSilent, 0}, {grant.BadgeCaution, 0}, {grant.BadgeHeld, 0}, {grant.BadgeFree, 0}}
	for _, l := range list {
		for i := range counts {
			if counts[i].Badge == l.Badge {
				counts[i].N++
			}
		}
	}
	if only != "" {
		list = slices.DeleteFunc(list, func(l Summary) bool { return l.Badge != only })
	}
	return render(w, http.StatusOK, "list.html", struct {
		common
		Counts []count
		Only   grant.Badge // what is shown; empty: all
		List   []Summary
	}{c, counts, only, list})
}

// waiting is a place in the queue, as the page shows it.
type waiting struct {
	Place    int
	Agent    string
	Petition int64
	Misses   int64
	Open     bool
	Now      bool // it may acquire
	From     grant.Time
}

func queueOf(p *grant.Page, now grant.Time) []waiting {
	var list []waiting
	for _, q := range p.Queue {
		t, _ := grant.TurnOf(p, q.Agent, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
		list = append(list, waiting{t.Place, q.Agent, q.Rev, q.Misses, t.Open, t.May(now), t.From})
	}
	return list
}

// containerView is what the page of a container shows.
type containerView struct {
	common
	Name     string
	Tag      string
	Error    string // why the container, or a part of it, cannot be read
	Page     *grant.Page
	Badge    grant.Badge
	Queue    []waiting
	Landings []register.Landed
	Refused  []register.Kept
	Unread   string
	History  []Event
	Audit    []Event
	Cut      bool // there is more history
	CanClear bool
	Past     bool // the expiry is over
}

// What a page shows at most.
const (
	shownEvents   = 200
	shownLandings = 50
)

func (s *Server) view(ctx context.Context, head grant.Revision) (*containerView, error) {
	p := head.Page()
	c, err := s.common(ctx, p.Container, "/v1/containers/"+url.PathEscape(p.Container)+"/events")
	if err != nil {
		return nil, err
	}
	v := &containerView{common: c, Name: p.Container, Tag: granthttp.Place(p.Epoch, p.Rev), Page: p, Badge: grant.BadgeOf(p, c.Now), Queue: queueOf(p, c.Now)}
	v.CanClear = p.State == grant.StateHeld && c.Now >= p.Expiry
	v.Past = c.Now >= p.Expiry
	var faults []error
	if v.History, err = s.pastOf(ctx, head, shownEvents); err != nil {
		faults = append(faults, err)
	}
	v.Cut = len(v.History) == shownEvents
	for _, e := range v.History {
		if e.Audit != nil {
			v.Audit = append(v.Audit, e)
		}
	}
	if v.Landings, err = s.landings(ctx, p.Container, shownLandings); err != nil {
		faults = append(faults, err)
	}
	if v.Refused, err = register.Of(s.store, p.Container).Kept(ctx, false); err != nil {
		v.Unread = display.Text(err.Error())
	}
	if err := errors.Join(faults...); err != nil {
		v.Error = display.Text(err.Error())
	}
	return v, nil
}

func (s *Server) pageContainer(w http.ResponseWriter, r *http.Request) error {
	return s.showContainer(w, r, http.StatusOK, "")
}

func (s *Server) showContainer(w http.ResponseWriter, r *http.Request, status int, said string) error {
	head, err := s.head(r)
	if err != nil {
		return s.faulty(w, r, err)
	}
	v, err := s.view(r.Context(), head)
	if err != nil {
		return s.faulty(w, r, err)
	}
	v.Said = said
	return render(w, status, "container.html", v)
}

// maxForm bounds a form.
const maxForm = 16 << 10

// pageClear is the operator's form: it needs an operator's token each time, and keeps none.
func (s *Server) pageClear(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return s.faulty(w, r, &granthttp.FieldError{Why: "the form cannot be read"})
	}
	err := s.clearBy(r)
	if err == nil {
		s.hub.nudge()
		http.Redirect(w, r, "/c/"+url.PathEscape(r.PathValue("container")), http.StatusSeeOther)
		return nil
	}
	p := s.problem(err)
	if p.Refusal != nil {
		s.metrics.refused(p.Code)
	}
	return s.showContainer(w, r, p.Status, "Nothing was cleared: "+p.Detail)
}

func (s *Server) clearBy(r *http.Request) error {
	id, err := s.bearer(strings.TrimSpace(r.PostFormValue("token")))
	if err != nil {
		return err
	}
	if id.actor.Role != grant.RoleOperator {
		return errForbidden("to clear is an operator's, and the token is an agent's")
	}
	seen, err := strconv.ParseInt(r.PostFormValue("seen"), 10, 64)
	epoch, err2 := strconv.ParseInt(r.PostFormValue("epoch"), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return &granthttp.FieldError{Field: "seen", Why: "the revision that was seen is needed"}
	}
	nonce, err := nonceOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("container")
	if err := grant.CheckName(name); err != nil {
		return err
	}
	cmd := grant.Clear{Meta: grant.Meta{Container: name, Nonce: nonce, By: id.actor}, Reason: r.PostFormValue("reason"), Seen: seen}
	_, _, err = s.store.Do(r.Context(), grant.Request{Command: cmd, Check: func(head grant.Revision) error {
		if head.Page() != nil && head.Page().Epoch != epoch {
			return errStale{want: granthttp.Place(epoch, seen), have: granthttp.Place(head.Page().Epoch, head.Page().Rev)}
		}
		return nil
	}})
	return err
}

var assetTypes = map[string]string{"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	kind, ok := assetTypes[name]
	if !ok {
		return fs.ErrNotExist
	}
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(data) //nolint:gosec // a file of ours, by a name from a list; who has gone is not told
	return nil
}
