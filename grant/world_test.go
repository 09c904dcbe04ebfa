package grant

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The moment at which tests begin.
var start = TimeOf(time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC))

const name = "atlas"

// world is a container with its chain, for tests that tell a story.
type world struct {
	t       *testing.T
	chain   []Revision
	now     Time
	env     Env // but for Now
	n       int // nonces
	secrets int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: start}
	w.do(Create{Meta: w.operator("olga"), Params: DefaultParams()})
	return w
}

func (w *world) nonce() string {
	w.n++
	return fmt.Sprintf("nonce-%04d", w.n)
}

func (w *world) agent(who string) Meta {
	return Meta{Container: name, Nonce: w.nonce(), By: Agent(who)}
}

func (w *world) operator(who string) Meta {
	return Meta{Container: name, Nonce: w.nonce(), By: Operator(who)}
}

func (w *world) secret() Secret {
	w.secrets++
	var s Secret
	s[0], s[1] = byte(w.secrets>>8), byte(w.secrets)
	return s
}

func (w *world) head() Revision {
	if len(w.chain) == 0 {
		return Revision{}
	}
	return w.chain[len(w.chain)-1]
}

func (w *world) page() *Page { return w.head().Page() }

func (w *world) try(cmd Command) (Revision, error) {
	env := w.env
	env.Now = Stamp{Source: SourceStore, T: w.now}
	return Apply(w.head(), cmd, env)
}

// do carries a command out that must not be refused.
func (w *world) do(cmd Command) *Page {
	w.t.Helper()
	next, err := w.try(cmd)
	if err != nil {
		w.t.Fatalf("%s: %v", cmd.Op(), err)
	}
	w.chain = append(w.chain, next)
	if err := Verify(w.chain); err != nil {
		w.t.Fatal(err)
	}
	return next.Page()
}

// refused wants a refusal, and that it says what refusals say.
func (w *world) refused(code Code, cmd Command) {
	w.t.Helper()
	_ = w.refusal(code, cmd)
}

// refusal is refused for those who look closer.
func (w *world) refusal(code Code, cmd Command) *Refusal {
	w.t.Helper()
	before := string(w.head().Bytes())
	_, err := w.try(cmd)
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code || !errors.Is(err, code) || CodeOf(err) != code {
		w.t.Fatalf("%s: %v (%s), want %s", cmd.Op(), err, CodeOf(err), code)
	}
	if string(w.head().Bytes()) != before {
		w.t.Fatalf("%s: the refusal changed the head", cmd.Op())
	}
	if r.Cause == "" || r.Op != cmd.Op() || (r.Next == "" && w.head().Page() != nil) {
		w.t.Errorf("%s refused with %s: cause %q, next %q", r.Op, code, r.Cause, r.Next)
	}
	if p := w.page(); p != nil && (r.Rev != p.Rev || r.Grant != p.Grant || (r.Holder == nil) != (p.Holder == nil)) {
		w.t.Errorf("%s refused with %s: on revision %d, grant %d", r.Op, code, r.Rev, r.Grant)
	}
	return r
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// acquire gives the container to an agent whose turn it is.
func (w *world) acquire(who string) Session {
	w.t.Helper()
	s := w.secret()
	p := w.do(Acquire{Meta: w.agent(who), Session: s.Hash()})
	return Session{Grant: p.Grant, Secret: s}
}

func (w *world) manifest(text string) Digest { return digestOf([]byte(text)) }

func (w *world) landing(who string, s Session) Land {
	return Land{Meta: w.agent(who), Session: s, Base: w.page().Register.Head, Manifest: w.manifest(who)}
}

func (w *world) release(who string, s Session) Release {
	return Release{Meta: w.agent(who), Session: s, ReadBack: w.page().Register.Head}
}

// TestWorkedExample is the document's: the lead dies at hour 20, and lands nothing at hour 25.
func TestWorkedExample(t *testing.T) {
	w := newWorld(t)
	a := w.acquire("anna")
	w.do(Petition{w.agent("ben")})
	for range 5 {
		w.pass(4*time.Hour - time.Second)
		w.do(Heartbeat{w.agent("anna"), a})
	}
	if got := w.page().Expiry.Sub(w.page().GrantTime); got != 24*time.Hour-5*time.Second {
		t.Errorf("after five heartbeats the grant lasts %s", got)
	}
	w.pass(time.Hour)
	w.do(Heartbeat{w.agent("anna"), a})
	if got := w.page().Expiry.Sub(w.page().GrantTime); got != 24*time.Hour {
		t.Errorf("at the cap the grant lasts %s", got)
	}
	w.refused(CodePastCap, Heartbeat{w.agent("anna"), a})
	w.refused(CodeHeld, Acquire{w.agent("ben"), w.secret().Hash()})
	w.now = start.Add(24 * time.Hour)
	if b := BadgeOf(w.page(), w.now-1); b != BadgeHeld {
		t.Errorf("just before the expiry: %s", b)
	}
	if b := BadgeOf(w.page(), w.now); b != BadgeHolderSilent {
		t.Errorf("at the expiry: %s", b)
	}
	late := w.landing("anna", a)
	w.refused(CodeExpired, late)
	b := w.acquire("ben")
	if b.Grant != 2 || BadgeOf(w.page(), w.now) != BadgeCaution {
		t.Errorf("grant %d, %s", b.Grant, BadgeOf(w.page(), w.now))
	}
	w.pass(time.Hour)
	r := w.refusal(CodeFenced, late)
	if !r.Quarantined() || r.Yours != 1 || r.Ended == nil || r.Ended.How != HowTakenOver || r.Ended.Rev != w.page().Rev || !strings.Contains(r.Error(), "taken over by ben") {
		t.Errorf("the late landing is told %v, %+v", r, r.Ended)
	}
	w.refused(CodeNotPushed, w.release("ben", b))
	w.do(w.landing("ben", b))
	if BadgeOf(w.page(), w.now) != BadgeCaution {
		t.Error("a landing alone ends the caution")
	}
	w.do(w.release("ben", b))
	if BadgeOf(w.page(), w.now) != BadgeFree {
		t.Errorf("after the release: %s", BadgeOf(w.page(), w.now))
	}
}
