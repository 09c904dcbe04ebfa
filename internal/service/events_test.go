package service

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
)

// follow gives what a stream says, until the test ends.
func (w *world) follow(path string) <-chan Summary {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", w.http.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // the cleanup below closes it
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatal(resp.Status)
	}
	said := make(chan Summary, 1000)
	go func() {
		defer close(said)
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var s Summary
				if json.Unmarshal([]byte(data), &s) == nil {
					said <- s
				}
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); resp.Body.Close() })
	return said
}

// until reads a stream up to what is looked for. Each state is said in the end, though not each revision.
func (w *world) until(said <-chan Summary, what string, is func(Summary) bool) {
	w.t.Helper()
	for {
		select {
		case s, ok := <-said:
			if !ok {
				w.t.Fatalf("the stream ended before %s", what)
			}
			if is(s) {
				return
			}
		case <-time.After(20 * time.Second):
			w.t.Fatalf("the stream never said %s", what)
		}
	}
}

// A stream tells the state at first, then each change: the service's own, others', and those that only time makes.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.created()
	all, one := w.follow("/v1/events"), w.follow(atlas+"/events")
	both := func(what string, is func(Summary) bool) {
		t.Helper()
		w.until(all, what, is)
		w.until(one, what, is)
	}
	both("free", func(s Summary) bool { return s.Badge == grant.BadgeFree })
	w.holds("ada")
	both("held", func(s Summary) bool { return s.Badge == grant.BadgeHeld && s.Holder.Agent == "ada" })
	cmd := grant.Petition{Meta: grant.Meta{Container: "atlas", Nonce: "beside-it", By: grant.Agent("bob")}}
	if _, _, err := w.store.Do(t.Context(), grant.Request{Command: cmd}); err != nil {
		t.Fatal(err)
	}
	both("the petition", func(s Summary) bool { return s.Queue == 1 })
	w.clock.Step(5 * time.Hour)
	both("the silence", func(s Summary) bool { return s.Badge == grant.BadgeHolderSilent })
	w.wants(w.ask("olga", "POST", "/v1/containers/other/create", "{}"), 201, "")
	w.until(all, "the other container", func(s Summary) bool { return s.Container == "other" })
	w.wants(w.ask("nobody", "GET", "/v1/containers/none/events", nil), 404, "LOCK_MISSING")
}

// A question that waits is answered by the next revision.
func TestAfter(t *testing.T) {
	w := newWorld(t)
	w.created()
	got := make(chan *answer, 1)
	go func() { got <- w.ask("nobody", "GET", atlas+"?after=1.1", nil) }()
	w.wants(w.command("ada", grant.OpPetition, nil), 200, "")
	if a := <-got; a.page == nil || a.page.Rev != 2 {
		t.Errorf("%s", a.body)
	}
	if a := w.ask("nobody", "GET", atlas+"?after=1.1", nil); a.page == nil || a.page.Rev != 2 { // at once
		t.Errorf("%s", a.body)
	}
	w.wants(w.ask("nobody", "GET", atlas+"?after=soon", nil), 400, "BAD_INPUT")
}

// When the service ends, so do its streams, and nothing of it stays.
func TestCloseEndsStreams(t *testing.T) {
	w := newWorld(t)
	w.created()
	said := w.follow("/v1/events")
	<-said
	w.server.Close()
	for range said {
	}
	if n := w.server.hub.count(); n != 0 {
		t.Errorf("%d listeners are left", n)
	}
}
