package service

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/stile-lock/stile/grant"
)

// metrics counts what the service did. No label has an agent's, operator's or container's name in it: who reads the
// metrics need not know them, and there may be many.
type metrics struct {
	mu       sync.Mutex
	requests map[[2]string]int64 // route, status
	refusals map[string]int64    // code
	landings int64
}

func newMetrics() *metrics {
	return &metrics{requests: map[[2]string]int64{}, refusals: map[string]int64{}}
}

func (m *metrics) request(route string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[[2]string{route, strconv.Itoa(status)}]++
}

func (m *metrics) refused(code string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[code]++
}

func (m *metrics) landed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.landings++
}

// getMetrics answers in the text format of Prometheus, version 0.0.4.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	list, err := s.summaries(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	out := bufio.NewWriter(w)
	s.writeMetrics(out, list)
	_ = out.Flush() // who has gone is not told
	return nil
}

func (s *Server) writeMetrics(w io.Writer, list []Summary) {
	badges := map[grant.Badge]int{grant.BadgeFree: 0, grant.BadgeHeld: 0, grant.BadgeHolderSilent: 0, grant.BadgeCaution: 0}
	var waiting, unreadable int
	for _, c := range list {
		if c.Error != "" {
			unreadable++
			continue
		}
		badges[c.Badge]++
		waiting += c.Queue
	}
	family := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	one := func(name, kind, help string, v any) {
		family(name, kind, help)
		fmt.Fprintf(w, "%s %v\n", name, v)
	}
	family("stile_containers", "gauge", "Containers of the estate by badge.")
	for _, b := range slices.Sorted(maps.Keys(badges)) {
		fmt.Fprintf(w, "stile_containers{badge=%q} %d\n", b, badges[b])
	}
	one("stile_containers_unreadable", "gauge", "Containers whose page cannot be read.", unreadable)
	one("stile_waiting", "gauge", "Petitions in all queues.", waiting)
	one("stile_watchers", "gauge", "Streams of events that are open.", s.hub.count())
	s.metrics.mu.Lock()
	one("stile_landings_total", "counter", "Landings through this server since it began.", s.metrics.landings)
	family("stile_refusals_total", "counter", "Commands refused by this server since it began.")
	for _, code := range slices.Sorted(maps.Keys(s.metrics.refusals)) {
		fmt.Fprintf(w, "stile_refusals_total{code=%q} %d\n", code, s.metrics.refusals[code])
	}
	family("stile_http_requests_total", "counter", "Requests by route and status.")
	keys := slices.SortedFunc(maps.Keys(s.metrics.requests), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		fmt.Fprintf(w, "stile_http_requests_total{route=%q,status=%q} %d\n", k[0], k[1], s.metrics.requests[k])
	}
	s.metrics.mu.Unlock()
	one("stile_goroutines", "gauge", "Goroutines of the service.", runtime.NumGoroutine())
	if n, ok := descriptors(); ok {
		one("stile_open_fds", "gauge", "Open descriptors of the service.", n)
	}
	family("stile_build_info", "gauge", "The program that serves.")
	fmt.Fprintf(w, "stile_build_info{version=%q} 1\n", s.o.Version)
}

// descriptors counts this process's, where the system tells.
func descriptors() (int, bool) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries), err == nil
}

// getHealth says whether the service can do its work: the estate is there, and its containers can be listed.
func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) error {
	if err := s.there(); err != nil {
		return err
	}
	if _, err := s.store.Containers(r.Context()); err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]bool{"ok": true})
}
