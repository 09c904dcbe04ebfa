package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
)

// metric reads one of the service's own.
func (e *place) metric(url, name string) int {
	e.t.Helper()
	_, text := e.ask(url, "", "GET", "/metrics", "")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				e.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// worker lands in a container of its own, through the service or beside it.
type worker struct {
	store  session.Store
	name   string
	proof  grant.Session
	base   grant.Digest
	since  grant.Ref
	landed int
}

func newWorker(ctx context.Context, store session.Store, container, agent string) (*worker, error) {
	w := &worker{store: store, name: container}
	if _, err := (&session.Client{Store: store, Agent: agent}).Create(ctx, container, "", grant.DefaultParams()); err != nil {
		return nil, err
	}
	x, r, err := (&session.Client{Store: store, Agent: agent}).Acquire(ctx, container, "")
	if err != nil {
		return nil, err
	}
	w.proof, w.since = x.Proof(), r.Revision.Ref()
	return w, nil
}

// land lands 1 KiB and says how long that took.
func (w *worker) land(ctx context.Context, agent string) (time.Duration, error) {
	w.landed++
	text := fmt.Sprintf("%-1024d", w.landed)
	began := time.Now()
	sum, _, err := w.store.Put(ctx, w.name, grant.KindArtifact, strings.NewReader(text))
	if err != nil {
		return 0, err
	}
	cmd := grant.Land{
		Meta:    grant.Meta{Container: w.name, Nonce: fmt.Sprintf("landing-%d", w.landed), By: grant.Agent(agent)},
		Session: w.proof, Base: w.base, Manifest: sum,
	}
	rev, _, err := w.store.Do(ctx, grant.Request{Command: cmd, Since: w.since})
	if err != nil {
		return 0, err
	}
	w.base, w.since = rev.Page().Register.Head, rev.Ref()
	return time.Since(began), nil
}

// Watchers and landings together: no error, and when they have gone nothing of them is left in the service.
func TestLoad(t *testing.T) {
	watchers, landings := 40, 60
	if os.Getenv("STILE_NIGHTLY") == "1" {
		watchers, landings = 200, 1500 // 30 s
	}
	if testing.Short() {
		watchers, landings = 10, 20
	}
	e := newPlace(t)
	agents := []string{"ada", "bob", "carl", "dora"}
	for _, a := range agents {
		e.tokens[a] = e.token("--agent", a)
	}
	s := e.serve("--listen", "127.0.0.1:0")
	var workers []*worker
	state := t.TempDir()
	for i, a := range agents {
		w, err := newWorker(t.Context(), e.client(s.url, a, state).Store, fmt.Sprintf("c%d", i), a)
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
	}
	e.ask(s.url, "", "GET", "/healthz", "")
	goroutines, files := e.metric(s.url, "stile_goroutines"), e.metric(s.url, "stile_open_fds")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var said atomic.Int64
	var watching, ready sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{}}
	for range watchers {
		ready.Add(1)
		watching.Go(func() {
			req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/events", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req)
			ready.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data: ") {
					said.Add(1)
				}
			}
		})
	}
	ready.Wait()
	began := time.Now()
	took := e.landAll(workers, agents, landings)
	rate := float64(landings) / time.Since(began).Seconds()
	if n := e.metric(s.url, "stile_watchers"); n != watchers {
		t.Errorf("%d watchers of %d are left", n, watchers)
	}
	cancel()
	watching.Wait()
	client.CloseIdleConnections()
	if said.Load() < int64(watchers*len(agents)) {
		t.Errorf("the watchers were told %d times", said.Load())
	}
	// They end as the service notices; what is asked here has a connection of its own.
	most := 8
	for i := 0; e.metric(s.url, "stile_goroutines") > goroutines+most || e.metric(s.url, "stile_open_fds") > files+most; i++ {
		if i > 5000 {
			t.Fatalf("goroutines %d, were %d; descriptors %d, were %d", e.metric(s.url, "stile_goroutines"), goroutines, e.metric(s.url, "stile_open_fds"), files)
		}
	}
	alone := e.alone(agents, landings)
	t.Logf("%d watchers, %d landings of 1 KiB at %.1f/s of 50, told %d times: p50 %v, p99 %v; the store alone: p50 %v, p99 %v",
		watchers, landings, rate, said.Load(), at(took, 50), at(took, 99), at(alone, 50), at(alone, 99))
}

// landAll lands at 50 a second.
func (e *place) landAll(workers []*worker, agents []string, landings int) []time.Duration {
	e.t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	next := make(chan int)
	for i, w := range workers {
		all.Go(func() {
			for range next {
				d, err := w.land(context.Background(), agents[i])
				if err != nil {
					e.t.Error(err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range landings {
		<-tick.C
		next <- i
	}
	close(next)
	all.Wait()
	return took
}

// alone is the same on the store on disk, without service and watchers.
func (e *place) alone(agents []string, landings int) []time.Duration {
	e.t.Helper()
	var workers []*worker
	for i, a := range agents {
		store, err := local.Open(e.t.TempDir(), local.Options{State: e.t.TempDir()})
		if err != nil {
			e.t.Fatal(err)
		}
		w, err := newWorker(e.t.Context(), store, fmt.Sprintf("c%d", i), a)
		if err != nil {
			e.t.Fatal(err)
		}
		workers = append(workers, w)
	}
	return e.landAll(workers, agents, landings)
}

func at(took []time.Duration, percent int) time.Duration {
	slices.Sort(took)
	return took[min(len(took)-1, len(took)*percent/100)].Round(10 * time.Microsecond)
}
