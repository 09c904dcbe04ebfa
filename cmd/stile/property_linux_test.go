package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDispatchInterleavings lets four processes at a time open, close, unlock and be killed, at random, and
// looks at log and board whenever all have ended. STILE_SEED repeats a run; its processes are not in step,
// so that what it found may take more than one.
func TestDispatchInterleavings(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("STILE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STILE_SEED=%d", seed)
	rounds := 30
	switch {
	case os.Getenv("STILE_NIGHTLY") != "":
		rounds = 300
	case testing.Short():
		rounds = 8
	}
	for _, class := range cellClasses {
		t.Run(class, func(t *testing.T) {
			m := &model{world: newWorld(t, class), rnd: rand.New(rand.NewPCG(seed, uint64(len(class)))), said: map[string]string{}}
			m.said[m.first] = "open"
			for first := 0; first < rounds && !t.Failed(); first += 10 {
				t.Run(fmt.Sprint("from ", first), func(t *testing.T) { // what the processes had open ends with each
					m.T = t
					for round := first; round < first+10 && round < rounds; round++ {
						// A forced unlock of a holder that runs may cost a record, as the guarantees say: where
						// one is in a round its writers stand outside their windows, see begin.
						m.forced = round%3 == 2
						m.round()
						if m.check(); t.Failed() {
							t.Fatalf("seed %d, round %d: %s", seed, round, strings.Join(m.did, "; "))
						}
					}
				})
			}
			t.Logf("%d operations, %d killed, %d acknowledged; %d boards behind; %d forced", m.ops, m.kills, len(m.said), m.behind, m.forces)
		})
	}
}

// model is what the processes were told.
type model struct {
	*world
	rnd  *rand.Rand
	said map[string]string // the status of each dispatch that was acknowledged
	// maybe are the statuses that a killed close may have given to a dispatch.
	maybe  map[string]string
	forced bool
	did    []string

	ops, kills, behind, forces int
}

// op is one process.
type op struct {
	*gated
	verb, id, status string
	stopped          *call
	killed           bool
}

// round starts four processes, each of which may be held at some call and be killed there; then all go on.
func (m *model) round() {
	m.did, m.maybe = nil, map[string]string{}
	var all []*op
	busy := map[string]bool{} // one close of each dispatch
	for range 4 {
		all = append(all, m.begin(busy))
	}
	empty := false
	for _, o := range all {
		switch odds := m.rnd.IntN(4); {
		case odds < 2 && o.stopped != nil, odds == 0 && m.links: // one that waits, too, or has ended
			o.killed = true
			empty = empty || o.stopped != nil && o.stopped.String() == "write spawn-log.json.lock"
			_ = o.cmd.Process.Kill()
		case o.stopped != nil:
			o.let(*o.stopped)
		}
	}
	if empty { // killed before it wrote its lock: a block, as the specification says
		m.run(0, "dispatch", "unlock", "--force", "--agent", "ada")
	}
	for _, o := range all {
		go func() { // who waited may come to its call only now
			for {
				select {
				case k := <-o.held:
					o.let(k)
				case <-o.done:
					return
				}
			}
		}()
	}
	for _, o := range all {
		m.end(o)
	}
}

func (m *model) begin(busy map[string]bool) *op {
	o := &op{verb: "open"}
	var args []string
	var open []string
	for id, status := range m.said {
		if status == "open" && !busy[id] {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	switch n := m.rnd.IntN(10); {
	case n < 5 || n < 8 && len(open) == 0:
		args = []string{"dispatch", "open", "--agent", "ada", "--task", fmt.Sprint("job ", m.ops), "-w", "30"}
	case n < 8:
		o.verb, o.id = "close", open[m.rnd.IntN(len(open))]
		o.status = []string{"done", "failed", "cancelled"}[m.rnd.IntN(3)]
		busy[o.id] = true
		args = []string{"dispatch", "close", o.id, "--status", o.status, "-w", "30"}
	default:
		o.verb, args = "unlock", []string{"dispatch", "unlock", "--agent", "ada"}
		if m.forced {
			o.verb, args = "force", append(args, "--force")
			m.forces++
		}
	}
	m.ops++
	// It is held at one call, or never.
	at, made := m.rnd.IntN(40), 0
	settled := make(chan struct{}, 1)
	o.gated = m.gated(func(_ *gated, k call) answer {
		made++
		// In a round with a forced unlock nobody is held between its fence and its rename: there the
		// specification gives up its guarantee.
		if made-1 == at && !(m.forced && k.nr == unix.SYS_RENAMEAT) {
			settled <- struct{}{}
			return hold
		}
		return pass
	}, args...)
	// The others begin when it is held, has ended, or waits for somebody who is held.
	held := false
	until(m.T, "it settles", func() bool {
		select {
		case <-settled:
			held = true
		case <-o.done:
		default:
			return o.watches()
		}
		return true
	})
	if held {
		k := <-o.held
		o.stopped = &k
	}
	m.did = append(m.did, fmt.Sprintf("%s %s", o.verb, o.id))
	if o.stopped != nil {
		m.did[len(m.did)-1] += " held at " + o.stopped.String()
	}
	return o
}

// end waits for a process, and remembers what it acknowledged.
func (m *model) end(o *op) {
	m.Helper()
	out, err := io.ReadAll(o.out)
	if err != nil {
		m.Fatal(err)
	}
	code := o.wait()
	said := strings.TrimSpace(string(out))
	switch {
	case code == -1 && o.killed && (o.verb != "open" || said == ""):
		m.kills++
		if o.verb == "close" {
			m.maybe[o.id] = o.status
		}
	case (code == 0 || o.killed) && o.verb == "open":
		if m.said[said] != "" {
			m.Errorf("the id %s came twice", said)
		}
		m.said[said] = "open"
	case code == 0 && o.verb == "close":
		m.said[o.id] = o.status
	case code == 0:
	case code == 2 && (o.verb == "unlock" || o.verb == "force"): // held by somebody who lives, or changed
	case code == 2 && m.forced && strings.Contains(o.stderr(), "is recorded: do not repeat it"): // lost before the board
		if o.verb == "close" {
			m.said[o.id] = o.status
			break
		}
		for _, word := range strings.Fields(o.stderr()) {
			if len(word) == 26 {
				m.said[word] = "open"
				break
			}
		}
	default:
		m.Errorf("%s %s: exit code %d: %s%s", o.verb, o.id, code, out, o.stderr())
	}
}

// check compares log and board with what was acknowledged. What a killed process did may be there or not.
func (m *model) check() {
	m.Helper()
	if !m.links && exists(m.lock()) && m.read(m.lock()) == "" {
		m.run(0, "dispatch", "unlock", "--force", "--agent", "ada") // killed before it wrote its lock
	}
	id := m.open("next") // it sweeps
	m.said[id] = "open"
	m.clean()
	var records []struct{ ID, Status string }
	if err := json.Unmarshal([]byte(m.read(m.path("spawn-log.json"))), &records); err != nil {
		m.Fatal(err)
	}
	there := map[string]string{}
	for _, r := range records {
		if there[r.ID] != "" {
			m.Errorf("%s is in the log twice", r.ID)
		}
		there[r.ID] = r.Status
		if m.said[r.ID] == "" {
			m.said[r.ID] = r.Status // of a killed open
		}
	}
	for id, status := range m.said {
		switch is := there[id]; {
		case is == status:
		case status == "open" && is != "" && is == m.maybe[id]:
			m.said[id] = is
		default:
			m.Errorf("%s was acknowledged as %s, and is %q", id, status, is)
		}
	}
	// Board and log agree, or check names just those that differ.
	r := m.start("board", "check", "--json")
	var found struct {
		Problems []struct{ Kind, Dispatch string }
	}
	text, err := io.ReadAll(r.out)
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if code := r.wait(); err != nil || code != 0 && code != 2 || (code == 2) != (len(found.Problems) > 0) {
		m.Fatalf("check: %v, exit code %d: %s", err, code, text)
	}
	named := map[string]string{}
	for _, p := range found.Problems {
		named[p.Dispatch] = p.Kind
	}
	if len(named) > 0 {
		m.behind++
	}
	column := m.columns()
	for id, status := range there {
		want := ""
		switch col, on := column[id]; {
		case !on:
			want = "dispatch-not-on-board"
		case status != "open" && col != "done":
			want = "item-behind"
		}
		if named[id] != want {
			m.Errorf("%s is %s and under %q: check says %q", id, status, column[id], named[id])
		}
	}
	m.run(0, "board", "repair", "--agent", "ada")
	m.run(0, "board", "check")
	for id, col := range m.columns() {
		if there[id] == "" || there[id] != "open" && col != "done" {
			m.Errorf("after repair %s, %q in the log, is under %s", id, there[id], col)
		}
	}
}

func (m *model) columns() map[string]string {
	m.Helper()
	var board struct {
		Items []struct{ Dispatch, Column string }
	}
	if err := json.Unmarshal([]byte(m.read(m.path("board", "board.json"))), &board); err != nil {
		m.Fatal(err)
	}
	column := map[string]string{}
	for _, it := range board.Items {
		if _, twice := column[it.Dispatch]; twice {
			m.Errorf("%s is on the board twice", it.Dispatch)
		}
		column[it.Dispatch] = it.Column
	}
	return column
}
