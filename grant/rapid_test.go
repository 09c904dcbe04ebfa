package grant

import (
	"errors"
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var checksGiven bool // on the command line: then that many

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { checksGiven = checksGiven || f.Name == "rapid.checks" })
	os.Exit(m.Run())
}

// checks has the rapid test that follows make n runs, a hundred times as many in a nightly.
func checks(t *testing.T, n int) {
	t.Helper()
	switch {
	case checksGiven:
		return
	case os.Getenv("STILE_NIGHTLY") != "":
		n *= 100
	case testing.Short():
		n /= 20
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
}

// estate is a container that rapid plays with, and what its clients remember.
type estate struct {
	chain    []Revision
	now      Time
	agents   []string
	sessions []Session // every one that ever was granted
	whose    []string
	commands []Command // that succeeded, for retries
	nonces   int
	secrets  int
	bug      planted
	refused  map[Code]int
	history  *history
}

var smallParams = Params{Cap: 24 * 3600, Extension: 4 * 3600, PetitionIdle: 2 * 24 * 3600, Window: 30 * 60}

func newEstate(bug planted) *estate {
	e := &estate{now: start, agents: []string{"anna", "ben", "cara", "dan"}, bug: bug, refused: map[Code]int{}, history: newHistory()}
	if err := e.apply(Create{Meta: e.meta(Operator("olga")), Params: smallParams}, Env{}); err != nil {
		panic(err)
	}
	return e
}

func (e *estate) meta(by Actor) Meta {
	e.nonces++
	return Meta{Container: name, Nonce: "n-" + string(HeadAfter("", "", int64(e.nonces), 0, "", ""))[:20], By: by}
}

func (e *estate) head() Revision {
	if len(e.chain) == 0 {
		return Revision{}
	}
	return e.chain[len(e.chain)-1]
}

func (e *estate) page() *Page { return e.head().Page() }

// apply evaluates on the head, and checks the whole that came of it.
func (e *estate) apply(cmd Command, env Env) error {
	if env.Now.T = e.now; env.Now.Source == "" {
		env.Now.Source = SourceStore
	}
	head := e.head()
	for _, r := range e.chain { // as Do does for a retry
		if r.page.Nonce == cmd.meta().Nonce {
			if r := SameCommand(r, cmd); r != nil {
				return r
			}
			return nil
		}
	}
	next, err := apply(head, cmd, env, e.bug)
	var r *Refusal
	switch {
	case errors.As(err, &r):
		e.refused[r.Code]++
		if r.Cause == "" || r.Next == "" && head.page != nil {
			return errors.New("a refusal without cause or next: " + r.Error())
		}
		return nil
	case err != nil:
		return err
	case next.hash == head.hash:
		return nil
	}
	if b := pageInvariant(next.page); b != nil {
		return b
	}
	if head.page != nil {
		if b := transition(head, next); b != nil {
			return b
		}
	}
	if b := e.history.add(next.page); b != nil {
		return b
	}
	e.chain = append(e.chain, next)
	e.commands = append(e.commands, cmd)
	return nil
}

func (e *estate) step(t *rapid.T) error {
	pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	agent := e.agents[pick(len(e.agents), "agent")]
	by := e.meta(Agent(agent))
	p := e.page()
	// A session: mostly the present one, sometimes one of the past, or with another's secret.
	var s Session
	if len(e.sessions) > 0 {
		i := len(e.sessions) - 1
		if pick(8, "old") == 0 {
			i = pick(len(e.sessions), "session")
		}
		s = e.sessions[i]
		by.By = Agent(e.whose[i])
		if pick(30, "wrong") == 0 {
			s.Grant = p.Grant
		}
	}
	base := p.Register.Head
	if pick(20, "base") == 0 && len(e.chain) > 1 {
		base = e.chain[pick(len(e.chain), "rev")].page.Register.Head
	}
	env := Env{FenceHeld: pick(3, "fence") > 0}
	// What it is about, more often what can be done at all.
	menu := []int{0, 0, 5, 5, 8, 9, 10, 10, 10, 23}
	if p.State == StateHeld {
		menu = []int{0, 0, 4, 5, 9, 10, 13, 13, 14, 14, 14, 15, 15, 15, 18, 18, 20, 20, 21, 21, 22, 22, 22, 23}
	}
	switch menu[pick(len(menu), "what")] {
	case 0: // time goes on, or the clock is set
		e.now = e.now.Add([]time.Duration{time.Second, time.Minute, 31 * time.Minute, time.Hour, -time.Hour, 4 * time.Hour, 25 * time.Hour, time.Microsecond}[pick(8, "time")])
		return nil
	case 4:
		if p.Holder != nil { // to the very expiry
			e.now = p.Expiry
		}
		return nil
	case 5:
		return e.apply(Petition{Meta{name, by.Nonce, Agent(agent)}}, env)
	case 8:
		return e.apply(Touch{Meta{name, by.Nonce, Agent(agent)}}, env)
	case 9:
		return e.apply(Withdraw{Meta{name, by.Nonce, Agent(agent)}}, env)
	case 10:
		if pick(5, "clock") == 0 { // the contender's own
			env.Now.Source = SourceClient
			if pick(3, "sees") > 0 {
				env.OfferSeen = e.now.Add(-[]time.Duration{time.Minute, 5 * time.Hour, 30 * time.Hour}[pick(3, "seen")])
			}
		}
		return e.acquire(agent, by.Nonce, env, pick(10, "nested") == 0)
	case 13:
		return e.apply(Heartbeat{by, s}, env)
	case 14:
		count := int64([]int{1, 2, 5, 10, 0, -1}[pick(6, "count")])
		return e.apply(LeaseIDs{Meta: by, Session: s, Count: count}, env)
	case 15:
		return e.apply(Land{Meta: by, Session: s, Base: base, Manifest: p.Digest, IDs: e.choose(t, p), Keep: keep(t, p)}, env)
	case 18:
		return e.apply(Release{by, s, base}, env)
	case 20:
		seen := p.Rev
		if pick(5, "seen") == 0 {
			seen--
		}
		return e.apply(Clear{Meta: Meta{name, by.Nonce, Operator("olga")}, Reason: []string{"gone", "", "its machine burnt"}[pick(3, "why")], Seen: seen}, env)
	case 21:
		if p.Running != nil {
			if pick(2, "lost") == 0 {
				return e.apply(Resolve{by, s, p.Running.ID, true, "seen"}, env)
			}
			return e.apply(Finish{Meta: by, Session: s, ID: p.Running.ID, Done: true, Manifest: p.Digest, IDs: e.choose(t, p)}, env)
		}
		if len(p.Doubts) > 0 {
			return e.apply(Resolve{by, s, p.Doubts[0].ID, false, "it was not"}, env)
		}
		return e.apply(Begin{by, s, base, "deploy"}, env)
	case 22:
		return e.reproduce(t, by, agent, s, env)
	default:
		if len(e.commands) > 0 { // a retry, delivered late
			return e.apply(e.commands[pick(len(e.commands), "again")], env)
		}
	}
	return nil
}

func (e *estate) acquire(agent, nonce string, env Env, nested bool) error {
	var secret Secret
	e.secrets++
	secret[0], secret[1], secret[2] = byte(e.secrets), byte(e.secrets>>8), 1
	if nested {
		env.Elsewhere = []string{"another"}
	}
	before := e.page().Grant
	if err := e.apply(Acquire{Meta{name, nonce, Agent(agent)}, secret.Hash()}, env); err != nil {
		return err
	}
	if p := e.page(); p.Grant > before && p.State == StateHeld && p.Op == OpAcquire && p.Nonce == nonce {
		e.sessions, e.whose = append(e.sessions, Session{p.Grant, secret}), append(e.whose, agent)
	}
	return nil
}

func (e *estate) reproduce(t *rapid.T, by Meta, agent string, s Session, env Env) error {
	p := e.page()
	if len(p.Blocks) == 0 || rapid.IntRange(0, 3).Draw(t, "new") == 0 {
		if rapid.Bool().Draw(t, "plain") {
			return e.apply(AssignBlock{by, s, agent, "chapter"}, env)
		}
		return e.apply(Commission{Meta: by, Session: s, Record: "lemma", Author: e.agents[rapid.IntRange(0, 3).Draw(t, "author")], Kernel: p.Digest, Assumptions: p.Digest, Deriver: agent}, env)
	}
	b := p.Blocks[rapid.IntRange(0, len(p.Blocks)-1).Draw(t, "block")]
	own := Meta{name, by.Nonce, Agent(b.Worker)}
	if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
		own.By = Agent(agent)
	}
	what := rapid.IntRange(0, 4).Draw(t, "repro")
	if r := b.Repro; r != nil && rapid.IntRange(0, 3).Draw(t, "in turn") > 0 {
		what = map[ReproState]int{ReproCommissioned: 0, ReproDeriving: 1, ReproStaged: 2, ReproJudged: 3}[r.State]
	}
	switch what {
	case 0:
		return e.apply(Derive{own, b.ID}, env)
	case 1:
		return e.apply(Stage{own, b.ID, p.Digest}, env)
	case 2:
		own.By = Agent(agent)
		return e.apply(Judge{own, b.ID, VerdictMatch, ""}, env)
	}
	return e.apply(CloseBlock{by, s, b.ID, []string{"", "no time"}[rapid.IntRange(0, 1).Draw(t, "why")]}, env)
}

// choose takes identifiers, mostly from the leases, sometimes from anywhere.
func (e *estate) choose(t *rapid.T, p *Page) []Range {
	var ids []Range
	for _, l := range p.IDs.Leases {
		if rapid.Bool().Draw(t, "use") {
			lo := l.Lo + int64(rapid.IntRange(0, 2).Draw(t, "lo"))
			hi := lo + int64(rapid.IntRange(0, 2).Draw(t, "n"))
			ids = append(ids, Range{Lo: min(lo, l.Hi), Hi: min(hi, l.Hi)})
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "stray") == 0 {
		lo := int64(rapid.IntRange(-1, 30).Draw(t, "id"))
		ids = append(ids, Range{Lo: lo, Hi: lo + int64(rapid.IntRange(-1, 3).Draw(t, "n"))})
	}
	return ids
}

func keep(t *rapid.T, p *Page) []int64 {
	var kept []int64
	for _, l := range p.IDs.Leases {
		if rapid.IntRange(0, 2).Draw(t, "keep") == 0 {
			kept = append(kept, l.ID)
		}
	}
	return kept
}

// TestInvariants plays containers at random, with a clock that is set back and forth, and checks every
// revision as it comes, as Verify does for a whole chain.
func TestInvariants(t *testing.T) {
	checks(t, 10_000)
	ops, codes := map[Op]int{}, map[Code]int{}
	rapid.Check(t, func(rt *rapid.T) {
		e := newEstate(planted{})
		for range 40 {
			if err := e.step(rt); err != nil {
				rt.Fatal(err)
			}
		}
		if again, err := Open(e.head().bytes); err != nil || again.hash != e.head().hash {
			rt.Fatalf("what Apply made does not open: %v", err)
		}
		for _, r := range e.chain {
			ops[r.page.Op]++
		}
		for c, n := range e.refused {
			codes[c] += n
		}
	})
	t.Logf("revisions: %v", ops)
	t.Logf("refusals: %v", codes)
	for _, op := range knownOps {
		if op != OpRestore && ops[op] == 0 && !testing.Short() && !checksGiven {
			t.Errorf("no %s was done", op)
		}
	}
}
