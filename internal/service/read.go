package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

func isNotThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// replyPage answers with a page: its own bytes, and what a reader makes of it in the headers.
func (s *Server) replyPage(w http.ResponseWriter, r *http.Request, status int, rev grant.Revision, replayed bool) error {
	h := w.Header()
	if now, err := s.store.Now(r.Context()); err == nil {
		h.Set(granthttp.HeaderNow, stamp(now))
		h.Set(granthttp.HeaderBadge, string(grant.BadgeOf(rev.Page(), now)))
	}
	h.Set("ETag", granthttp.Tag(rev.Page()))
	h.Set("Content-Type", "application/json")
	if replayed {
		h.Set(granthttp.HeaderReplayed, "true")
	}
	w.WriteHeader(status)
	_, _ = io.Copy(w, bytes.NewReader(rev.Bytes())) // who has gone is not told
	return nil
}

func stamp(t grant.Time) string {
	text, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	return strings.Trim(string(text), `"`)
}

func (s *Server) getNow(w http.ResponseWriter, r *http.Request) error {
	now, err := s.store.Now(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]grant.Time{"now": now})
}

// Summary is a container in lists and events. One that cannot be read has an error, and nothing but its name.
type Summary struct {
	Container string        `json:"container"`
	Badge     grant.Badge   `json:"badge,omitempty"`
	State     grant.State   `json:"state,omitempty"`
	Epoch     int64         `json:"epoch,omitempty"`
	Rev       int64         `json:"rev,omitempty"`
	Op        grant.Op      `json:"op,omitempty"` // what made the revision
	Grant     int64         `json:"grant"`
	Holder    *grant.Holder `json:"holder"`
	Heartbeat grant.Time    `json:"heartbeat"`
	Expiry    grant.Time    `json:"expiry"`
	Queue     int           `json:"queue"`
	Landings  int64         `json:"landings"`
	Now       grant.Time    `json:"now"`
	Error     string        `json:"error,omitempty"`
}

func summaryOf(p *grant.Page, now grant.Time) Summary {
	return Summary{
		Container: p.Container, Badge: grant.BadgeOf(p, now), State: p.State, Epoch: p.Epoch, Rev: p.Rev, Op: p.Op, Grant: p.Grant, Holder: p.Holder,
		Heartbeat: p.Heartbeat, Expiry: p.Expiry, Queue: len(p.Queue), Landings: p.Register.Seq, Now: now,
	}
}

// summaries are those of all containers.
func (s *Server) summaries(ctx context.Context) ([]Summary, error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	names, err := s.store.Containers(ctx)
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Summary, 0, len(names))
	for _, name := range names {
		head, err := s.store.Head(ctx, name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			list = append(list, Summary{Container: name, Now: now, Error: display.Text(err.Error())})
		default:
			list = append(list, summaryOf(head.Page(), now))
		}
	}
	return list, nil
}

func (s *Server) getContainers(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Get("names") == "only" {
		if err := s.there(); err != nil {
			return err
		}
		names, err := s.store.Containers(r.Context())
		if err != nil {
			return err
		}
		if names == nil {
			names = []string{}
		}
		return reply(w, http.StatusOK, map[string][]string{"names": names})
	}
	list, err := s.summaries(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string][]Summary{"containers": list})
}

// head reads the container that a request is about. A name that nothing can have is not there.
func (s *Server) head(r *http.Request) (grant.Revision, error) {
	name := r.PathValue("container")
	if err := grant.CheckName(name); err != nil {
		return grant.Revision{}, err
	}
	return s.store.Head(r.Context(), name)
}

// headNow is the same with the time that it is read at.
func (s *Server) headNow(r *http.Request) (grant.Revision, grant.Time, error) {
	head, err := s.head(r)
	if err != nil {
		return head, 0, err
	}
	now, err := s.store.Now(r.Context())
	return head, now, err
}

// longest bounds how long a client's question may wait.
const longest = 25 * time.Second

// getContainer gives the page; with ?after=EPOCH.REV it waits until that is no longer the head, but not for long.
func (s *Server) getContainer(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("container")
	if after := r.URL.Query().Get("after"); after != "" {
		at, ok := granthttp.ParsePlace(after)
		if !ok {
			return &granthttp.FieldError{Field: "after", Why: "it is EPOCH.REV"}
		}
		if err := grant.CheckName(name); err != nil {
			return err
		}
		ctx, cancel := s.patience(r.Context(), longest)
		defer cancel()
		if at == (grant.Ref{}) {
			if err := s.store.Watch(ctx, name, at); err != nil && ctx.Err() == nil {
				return err
			}
		} else if head, err := s.store.Read(ctx, name, at); err == nil {
			if err := s.store.Watch(ctx, name, head.Ref()); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	head, err := s.head(r)
	if err != nil {
		return err
	}
	if r.Header.Get("If-None-Match") == granthttp.Tag(head.Page()) {
		w.Header().Set("ETag", granthttp.Tag(head.Page()))
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.replyPage(w, r, http.StatusOK, head, false)
}

// patience ends with the request, with the server, or after most.
func (s *Server) patience(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, most)
	stop := context.AfterFunc(s.ended, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Server) getStatus(w http.ResponseWriter, r *http.Request) error {
	head, now, err := s.headNow(r)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", granthttp.Tag(head.Page()))
	return reply(w, http.StatusOK, summaryOf(head.Page(), now))
}

// getTurn tells an agent's place: GET …/turn?agent=NAME.
func (s *Server) getTurn(w http.ResponseWriter, r *http.Request) error {
	agent := r.URL.Query().Get("agent")
	if err := grant.CheckName(agent); err != nil {
		return &granthttp.FieldError{Field: "agent", Why: "an agent's name is needed"}
	}
	head, now, err := s.headNow(r)
	if err != nil {
		return err
	}
	turn, queued := grant.TurnOf(head.Page(), agent, grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}})
	return reply(w, http.StatusOK, struct {
		grant.Turn
		Queued bool       `json:"queued"`
		May    bool       `json:"may"`
		Now    grant.Time `json:"now"`
	}{turn, queued && turn.Petition != 0, queued && turn.May(now), now})
}

// Event is a revision in a history.
type Event struct {
	Epoch  int64        `json:"epoch"`
	Rev    int64        `json:"rev"`
	Op     grant.Op     `json:"op"`
	By     grant.Actor  `json:"by"`
	At     grant.Time   `json:"at"`
	State  grant.State  `json:"state"`
	Grant  int64        `json:"grant"`
	Note   string       `json:"note"`
	Audit  *grant.Audit `json:"audit"`
	SHA256 grant.Digest `json:"sha256"` // of the page
}

// pastOf reads a container's history back from the head, as far as limit goes.
func (s *Server) pastOf(ctx context.Context, at grant.Revision, limit int) ([]Event, error) {
	list := []Event{}
	for {
		p := at.Page()
		list = append(list, Event{p.Epoch, p.Rev, p.Op, p.By, p.Stamp.T, p.State, p.Grant, p.Note, p.Audit, at.Hash()})
		before := grant.Ref{Epoch: p.Epoch, Rev: p.Rev - 1}
		switch {
		case len(list) >= limit, p.PrevHash == "":
			return list, nil
		case p.Op == grant.OpRestore && p.Audit != nil:
			before = grant.Ref{Epoch: p.Audit.SeenEpoch, Rev: p.Audit.Seen}
		}
		var err error
		if at, err = s.store.Read(ctx, p.Container, before); err != nil {
			return list, err
		}
	}
}

const mostEvents = 1000

func (s *Server) getHistory(w http.ResponseWriter, r *http.Request) error {
	limit := 100
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostEvents {
			return &granthttp.FieldError{Field: "limit", Why: "it is 1 to 1000"}
		}
		limit = n
	}
	head, err := s.head(r)
	if err == nil && r.URL.Query().Get("from") != "" {
		at, ok := granthttp.ParsePlace(r.URL.Query().Get("from"))
		if !ok {
			return &granthttp.FieldError{Field: "from", Why: "it is EPOCH.REV"}
		}
		head, err = s.store.Read(r.Context(), r.PathValue("container"), at)
	}
	if err != nil {
		return err
	}
	list, err := s.pastOf(r.Context(), head, limit)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string][]Event{"history": list})
}

func (s *Server) getRevision(w http.ResponseWriter, r *http.Request) error {
	at, ok := granthttp.ParsePlace(r.PathValue("place"))
	if !ok {
		return &granthttp.FieldError{Field: "place", Why: "a revision is EPOCH.REV"}
	}
	rev, err := s.store.Read(r.Context(), r.PathValue("container"), at)
	if err != nil {
		return err
	}
	return s.replyPage(w, r, http.StatusOK, rev, false)
}

// putRevision is a store's Swap. Who can write any page is the estate's operator.
func (s *Server) putRevision(w http.ResponseWriter, r *http.Request) error {
	id, err := s.acts(r)
	if err != nil {
		return err
	}
	if id.actor.Role != grant.RoleOperator {
		return errForbidden("pages are an operator's to write; agents give commands")
	}
	data, err := s.body(w, r)
	if err != nil {
		return err
	}
	next, err := grant.Open(data)
	if err != nil {
		return &granthttp.FieldError{Why: err.Error()}
	}
	base, ok := grant.Ref{}, r.Header.Get("If-None-Match") == "*"
	if !ok {
		base, ok = granthttp.ParsePlace(strings.Trim(r.Header.Get("If-Match"), `"`))
	}
	at, isPlace := granthttp.ParsePlace(r.PathValue("place"))
	if p := next.Page(); !ok || !isPlace || p.Container != r.PathValue("container") || at.Epoch != p.Epoch || at.Rev != p.Rev {
		return &granthttp.FieldError{Field: "If-Match", Why: "it is the base, EPOCH.REV.SHA256, or If-None-Match: * for none; and the path is the page's own"}
	}
	if err := s.there(); err != nil {
		return err
	}
	err = s.store.Swap(r.Context(), base, next)
	if errors.Is(err, grant.ErrConflict) && base != (grant.Ref{}) {
		if have, herr := s.head(r); herr == nil {
			err = errStale{want: r.Header.Get("If-Match"), have: granthttp.Place(have.Page().Epoch, have.Page().Rev)}
		}
	}
	if err != nil {
		return err
	}
	s.hub.nudge()
	return s.replyPage(w, r, http.StatusOK, next, false)
}

func (s *Server) getRegister(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.head(r); err != nil {
		return err
	}
	list, err := s.landings(r.Context(), r.PathValue("container"), mostEvents)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string][]register.Landed{"landings": list})
}

// landings are the last ones, the latest first.
func (s *Server) landings(ctx context.Context, container string, limit int) ([]register.Landed, error) {
	list := []register.Landed{}
	for l, err := range register.Of(s.store, container).All(ctx) {
		if err != nil {
			return list, err
		}
		if list = append(list, l); len(list) >= limit {
			break
		}
	}
	return list, nil
}

func (s *Server) getLanding(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.head(r); err != nil {
		return err
	}
	reg := register.Of(s.store, r.PathValue("container"))
	l, err := reg.At(r.Context(), r.PathValue("landing"))
	if err != nil {
		return err
	}
	// A manifest that is another program's is not shown: its bytes are an artifact like any.
	m, err := reg.Manifest(r.Context(), l.Manifest)
	if err != nil && !errors.Is(err, register.ErrManifest) {
		return err
	}
	return reply(w, http.StatusOK, struct {
		register.Landed
		Content *register.Manifest `json:"content"`
	}{l, m})
}

func (s *Server) getReproductions(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.head(r); err != nil {
		return err
	}
	list, err := register.Of(s.store, r.PathValue("container")).Reproductions(r.Context(), r.URL.Query().Get("all") != "")
	if err != nil {
		return err
	}
	type one struct {
		grant.Block
		Closed bool `json:"closed"`
	}
	out := []one{}
	for _, l := range list {
		out = append(out, one{l.Block, l.Closed})
	}
	return reply(w, http.StatusOK, map[string][]one{"reproductions": out})
}
