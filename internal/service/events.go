package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stile-lock/stile/grant"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/local"
)

// hub looks for changes while anybody listens, and tells those who do. One look serves all: others change the estate
// as well, and a watch for each listener and container would cost as many descriptors.
type hub struct {
	store *local.Store
	poll  time.Duration
	wake  chan struct{}
	ended context.Context
	done  sync.WaitGroup

	mu        sync.Mutex
	listeners map[*listener]bool
	running   bool
	last      map[string]Summary
}

// listener is one stream. What it has not been sent yet is kept once for each container: a slow reader misses
// revisions, never the last one.
type listener struct {
	container string // empty: all
	ready     chan struct{}

	mu      sync.Mutex
	pending map[string]Summary
}

func newHub(ended context.Context, store *local.Store, poll time.Duration) *hub {
	return &hub{store: store, poll: poll, wake: make(chan struct{}, 1), ended: ended, listeners: map[*listener]bool{}, last: map[string]Summary{}}
}

// wait returns when nothing of it runs any more.
func (h *hub) wait() { h.done.Wait() }

// nudge makes it look at once.
func (h *hub) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hub) listen(container string) *listener {
	l := &listener{container: container, ready: make(chan struct{}, 1), pending: map[string]Summary{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = true
	for name, sum := range h.last {
		if container == "" || container == name {
			l.put(sum)
		}
	}
	if !h.running && h.ended.Err() == nil {
		h.running = true
		h.done.Add(1)
		go h.run()
	}
	return l
}

func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners)
}

// run looks until nobody listens.
func (h *hub) run() {
	defer h.done.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-h.ended.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		h.mu.Lock()
		if len(h.listeners) == 0 {
			h.running = false
			clear(h.last) // what changes meanwhile nobody compares
			h.mu.Unlock()
			return
		}
		names, all := h.wanted()
		h.mu.Unlock()
		began := time.Now()
		h.look(names, all)
		// However many containers there are, looking takes a tenth of the time at most.
		timer.Reset(max(h.poll, 10*time.Since(began)))
	}
}

// wanted are the containers that are listened to. The caller holds mu.
func (h *hub) wanted() (names map[string]bool, all bool) {
	names = map[string]bool{}
	for l := range h.listeners {
		if l.container == "" {
			return nil, true
		}
		names[l.container] = true
	}
	return names, false
}

func (h *hub) look(names map[string]bool, all bool) {
	if all {
		list, err := h.store.Containers(h.ended)
		if err != nil {
			return // the estate is away; the next look may find it
		}
		names = make(map[string]bool, len(list))
		for _, name := range list {
			names[name] = true
		}
	}
	now, err := h.store.Now(h.ended)
	if err != nil {
		return
	}
	for name := range names {
		head, err := h.store.Head(h.ended, name)
		if err != nil {
			continue
		}
		h.tell(summaryOf(head.Page(), now))
	}
}

// tell hands a container's state on, if it is another than the last one.
func (h *hub) tell(sum Summary) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, ok := h.last[sum.Container]
	if ok && last.Epoch == sum.Epoch && last.Rev == sum.Rev && last.Badge == sum.Badge {
		return
	}
	h.last[sum.Container] = sum
	for l := range h.listeners {
		if l.container == "" || l.container == sum.Container {
			l.put(sum)
		}
	}
}

func (l *listener) put(sum Summary) {
	l.mu.Lock()
	l.pending[sum.Container] = sum
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

func (l *listener) take() []Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Summary, 0, len(l.pending))
	for _, sum := range l.pending {
		list = append(list, sum)
	}
	clear(l.pending)
	return list
}

// beat is how often a stream on which nothing happens says that it lives.
const beat = 15 * time.Second

// getEvents is a stream of server-sent events: at first the state of each container, then each change.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("container")
	if name != "" {
		if _, err := s.head(r); err != nil {
			return err
		}
	} else if err := s.there(); err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	out := &steadyWriter{w, rc, s.o.stall}
	if _, err := fmt.Fprint(out, "retry: 2000\n\n"); err != nil {
		return nil // it has gone
	}
	_ = rc.Flush()
	l := s.hub.listen(name)
	defer s.hub.leave(l)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ended.Done():
			return nil
		case <-tick.C:
			_, err = fmt.Fprint(out, ": here\n\n")
		case <-l.ready:
			err = send(out, l.take())
		}
		if err == nil {
			err = rc.Flush()
		}
		if err != nil {
			return nil // it has gone, or reads too slowly: it comes again
		}
	}
}

func send(out *steadyWriter, list []Summary) error {
	for _, sum := range list {
		data, err := json.Marshal(sum)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "event: head\nid: %s\ndata: %s\n\n", granthttp.Place(sum.Epoch, sum.Rev), data); err != nil {
			return err
		}
	}
	return nil
}

// badgeWords are the badges as people read them.
var badgeWords = map[grant.Badge]string{
	grant.BadgeFree: "FREE", grant.BadgeHeld: "HELD", grant.BadgeHolderSilent: "HOLDER SILENT", grant.BadgeCaution: "CAUTION",
}
