package grant

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func queueOf(p *Page) string {
	var names []string
	for _, w := range p.Queue {
		names = append(names, fmt.Sprintf("%s%d", w.Agent, w.Misses))
	}
	return strings.Join(names, " ")
}

func (w *world) wantQueue(want string) {
	w.t.Helper()
	if got := queueOf(w.page()); got != want {
		w.t.Errorf("the queue is %q, want %q", got, want)
	}
}

// TestOffers: the head has a window, then the next; one missed offer costs the place, a second the petition.
func TestOffers(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("lead")
	for _, a := range []string{"anna", "ben", "cara"} {
		w.do(Petition{w.agent(a)})
	}
	end := func(who string, s Session) {
		t.Helper()
		w.do(w.landing(who, s))
		w.do(w.release(who, s))
	}
	end("lead", s)
	if o := w.page().Offer; o == nil || o.Petition != w.page().Queue[0].Rev || o.OpenedRev != w.page().Rev || o.OpenedAt != w.now {
		t.Fatalf("the offer is %+v", o)
	}
	r := w.refusal(CodeNotYourTurn, Acquire{w.agent("cara"), w.secret().Hash()})
	if r.Turn == nil || r.Turn.Place != 3 || r.Turn.From != w.now.Add(time.Hour) || len(r.Turn.Passes) != 2 {
		t.Errorf("cara's turn is %+v", r.Turn)
	}
	w.pass(30 * time.Minute)
	w.refused(CodeNotYourTurn, Acquire{w.agent("cara"), w.secret().Hash()})
	s = w.acquire("ben")
	w.wantQueue("cara0 anna1")
	if got := w.page().Passed; len(got) != 1 || got[0].Agent != "anna" || got[0].Why != WhyMissed {
		t.Errorf("passed: %+v", got)
	}
	end("ben", s)
	s = w.acquire("cara") // at once: she is the head
	w.wantQueue("anna1")
	w.do(Petition{w.agent("ben")})
	end("cara", s)
	w.pass(30 * time.Minute)
	s = w.acquire("ben")
	w.wantQueue("")
	if got := w.page().Passed; len(got) != 1 || got[0].Why != WhyEnded {
		t.Errorf("passed: %+v", got)
	}
	end("ben", s)
	w.do(Petition{w.agent("anna")}) // anyone may petition anew
	w.acquire("anna")
}

// TestWithdrawIsNoMiss: who withdraws is skipped at once, and the next has a whole window.
func TestWithdrawIsNoMiss(t *testing.T) {
	w := newWorld(t)
	for _, a := range []string{"anna", "ben", "cara"} {
		w.do(Petition{w.agent(a)})
	}
	w.pass(29 * time.Minute)
	w.do(Withdraw{w.agent("anna")})
	w.wantQueue("ben0 cara0")
	w.pass(29 * time.Minute)
	w.refused(CodeNotYourTurn, Acquire{w.agent("cara"), w.secret().Hash()})
	w.acquire("ben")
	w.wantQueue("cara0")
}

// TestTakeoverInTurn: at the expiry the head may at once, those behind by their windows from the expiry on,
// and a newcomer after them, however long ago the expiry was.
func TestTakeoverInTurn(t *testing.T) {
	w := newWorld(t)
	w.acquire("lead")
	w.do(Petition{w.agent("anna")})
	w.do(Petition{w.agent("ben")})
	expiry := w.page().Expiry
	w.now = expiry.Add(30*time.Minute - time.Microsecond)
	w.refused(CodeNotYourTurn, Acquire{w.agent("ben"), w.secret().Hash()})
	w.do(Petition{w.agent("cara")})
	w.refused(CodeNotYourTurn, Acquire{w.agent("cara"), w.secret().Hash()})
	w.now = expiry.Add(30 * time.Minute)
	w.acquire("ben")
	w.wantQueue("cara0 anna1")

	// A queue that forms after the expiry: each still has a window before the next.
	w = newWorld(t)
	w.acquire("lead")
	w.now = w.page().Expiry.Add(10 * time.Hour)
	w.do(Petition{w.agent("anna")})
	w.do(Petition{w.agent("ben")})
	r := w.refusal(CodeNotYourTurn, Acquire{w.agent("ben"), w.secret().Hash()})
	if r.Turn.From != w.now.Add(30*time.Minute) {
		t.Errorf("ben may from %s on", r.Turn.From)
	}
	w.acquire("anna")
}

// TestOwnClock: on a store without a clock, the wait counts from what the waiter saw itself.
func TestOwnClock(t *testing.T) {
	w := newWorld(t)
	w.do(Petition{w.agent("anna")})
	w.do(Petition{w.agent("ben")})
	w.env.OfferSeen = w.now.Add(time.Hour)
	w.pass(time.Hour + 29*time.Minute)
	w.refused(CodeNotYourTurn, Acquire{w.agent("ben"), w.secret().Hash()})
	w.pass(time.Minute)
	w.acquire("ben")
}

// TestContendersClockAhead: on a store without a clock, a contender a day ahead takes nothing from a holder that
// lives, and does from one that is silent, when it has watched for as long as a heartbeat lasts.
func TestContendersClockAhead(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	ahead := func(seen Time) (Revision, error) {
		return Apply(w.head(), Acquire{w.agent("ben"), w.secret().Hash()}, Env{Now: Stamp{SourceClient, w.now.Add(25 * time.Hour)}, OfferSeen: seen})
	}
	if _, err := ahead(0); CodeOf(err) != CodeHeld {
		t.Errorf("at first sight: %v", err)
	}
	for range 5 {
		seen := w.now.Add(25 * time.Hour)
		w.pass(4*time.Hour - time.Second)
		if _, err := ahead(seen); CodeOf(err) != CodeHeld || !strings.Contains(err.Error(), "not the store's") {
			t.Errorf("from a living holder: %v", err)
		}
		w.do(Heartbeat{w.agent("anna"), s})
	}
	seen := w.now.Add(25 * time.Hour)
	w.pass(4*time.Hour - time.Microsecond)
	if _, err := ahead(seen); CodeOf(err) != CodeHeld {
		t.Errorf("just before: %v", err)
	}
	w.pass(time.Microsecond)
	next, err := ahead(seen)
	if err != nil || next.page.Grant != 2 || Verify(append(w.chain, next)) != nil {
		t.Errorf("from a silent one: %v", err)
	}
}

// TestIdlePetitions: who is not heard of for a week is passed over without a window, and touching helps.
func TestIdlePetitions(t *testing.T) {
	w := newWorld(t)
	w.do(Petition{w.agent("anna")})
	w.do(Petition{w.agent("ben")})
	w.pass(6 * 24 * time.Hour)
	w.do(Touch{w.agent("ben")})
	w.pass(24 * time.Hour)
	w.do(Petition{w.agent("cara")})
	w.wantQueue("ben0 cara0")
	if got := w.page().Passed; len(got) != 1 || got[0] != (Passed{"anna", 2, WhyIdle}) {
		t.Errorf("passed: %+v", got)
	}
	w.pass(6 * 24 * time.Hour)
	w.acquire("cara") // ben is idle
	w.wantQueue("")
}

// TestClockSetBack: the cap compares two fields of the page, and an expiry never falls.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	w.pass(3 * time.Hour)
	w.do(Heartbeat{w.agent("anna"), s})
	before := w.page().Expiry
	w.pass(-2 * time.Hour)
	w.do(Heartbeat{w.agent("anna"), s})
	if p := w.page(); p.Expiry != before || p.Heartbeat != start.Add(3*time.Hour) {
		t.Errorf("expiry %s, before %s, heartbeat %s", p.Expiry, before, p.Heartbeat)
	}
	w.now = before - 1
	w.do(Heartbeat{w.agent("anna"), s})
	for range 10 {
		w.pass(3 * time.Hour)
		if _, err := w.try(Heartbeat{w.agent("anna"), s}); err == nil {
			w.do(Heartbeat{w.agent("anna"), s})
		}
		w.pass(-time.Hour)
	}
	if got := w.page().Expiry; got > start.Add(24*time.Hour) {
		t.Errorf("it lasts until %s", got)
	}
}

// TestSilence: it begins with a grant that was not released, keeps its first grant, and ends by a release.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	w.acquire("anna")
	w.clear()
	if s := w.page().Silent; s != (Silence{true, 1, HowCleared}) || w.page().Grant != 2 || BadgeOf(w.page(), w.now) != BadgeHolderSilent {
		t.Fatalf("%+v, grant %d", s, w.page().Grant)
	}
	w.acquire("ben")
	if w.page().Grant != 3 {
		t.Errorf("the burned number was granted: %d", w.page().Grant)
	}
	w.now = w.page().Expiry
	s := w.acquire("cara")
	if got := w.page().Silent; got.SinceGrant != 1 {
		t.Errorf("%+v", got)
	}
	w.do(w.landing("cara", s))
	w.do(w.release("cara", s))
	if w.page().Silent.On {
		t.Error("still silent")
	}
}

// TestReleaseAfterExpiry: who has landed may release until another grant begins, and that is no silence.
func TestReleaseAfterExpiry(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	w.do(w.landing("anna", s))
	w.now = w.page().Expiry.Add(100 * time.Hour)
	w.refused(CodeExpired, w.landing("anna", s))
	w.do(w.release("anna", s))
	if w.page().State != StateFree || w.page().Silent.On {
		t.Errorf("%s, silent %t", w.page().State, w.page().Silent.On)
	}
}

// TestFencedCommand: begun, finished after the expiry, and what nobody saw the end of.
func TestFencedCommand(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	id := w.begin("anna", s)
	w.now = w.page().Expiry.Add(time.Hour)
	w.do(Finish{Meta: w.agent("anna"), Session: s, ID: id, Done: true, Manifest: w.manifest("receipt"), Note: "deployed"})
	if p := w.page(); p.Running != nil || p.Landing == nil || p.Landing.ID != id || p.Landing.N != 1 || p.Note != "deployed" {
		t.Errorf("%+v, landing %+v", p.Running, p.Landing)
	}
	w.do(w.release("anna", s))

	s = w.acquire("anna")
	failed := w.begin("anna", s)
	w.do(Finish{Meta: w.agent("anna"), Session: s, ID: failed, Note: "exit 3"})
	if p := w.page(); p.Running != nil || p.Landing != nil || p.Register.Seq != 1 {
		t.Errorf("a failed command: %+v", p)
	}
	lost := w.begin("anna", s)
	w.now = w.page().Expiry
	w.env.FenceHeld = true
	s = w.acquire("ben")
	if d := w.page().Doubts; len(d) != 1 || d[0].ID != lost || d[0].Grant != 2 {
		t.Fatalf("in doubt: %+v", d)
	}
	w.refused(CodeInDoubt, Begin{w.agent("ben"), s, w.page().Register.Head, "push"})
	w.do(Resolve{w.agent("ben"), s, lost, true, "the site is new"})
	if p := w.page(); len(p.Doubts) != 0 || p.Note != "the site is new" {
		t.Errorf("resolved: %+v, %q", p.Doubts, p.Note)
	}
}

// TestReproduction: the order of its states, who may do what, and that a result stays.
func TestReproduction(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	own := commission(w, s)
	own.Deriver = "anna"
	w.refused(CodeSameAgent, own)
	id := w.do(commission(w, s)).Rev
	result := w.manifest("result")
	w.refused(CodeNotDeriving, Stage{w.agent("ben"), id, result})
	w.refused(CodeNotStaged, Judge{w.agent("cara"), id, VerdictMatch, ""})
	w.refused(CodeSameAgent, Derive{w.agent("cara"), id})
	w.refused(CodeNoBlock, Derive{w.agent("ben"), 77})
	w.do(Derive{w.agent("ben"), id})
	w.refused(CodeConflict, Derive{w.agent("ben"), id})
	w.refused(CodeNotStaged, Judge{w.agent("cara"), id, VerdictMatch, ""})
	w.refused(CodeSameAgent, Stage{w.agent("cara"), id, result})
	w.refused(CodeBadInput, Stage{w.agent("ben"), id, "x"})
	w.do(Stage{w.agent("ben"), id, result})
	w.refused(CodeAlreadyStaged, Stage{w.agent("ben"), id, w.manifest("better")})
	w.refused(CodeSameAgent, Judge{w.agent("ben"), id, VerdictMatch, ""})
	w.refused(CodeBadInput, Judge{w.agent("cara"), id, "perhaps", ""})
	w.refused(CodeReasonRequired, CloseBlock{w.agent("anna"), s, id, ""})
	w.pass(time.Minute)
	w.do(Judge{w.agent("cara"), id, VerdictMismatch, "the third digit"})
	w.refused(CodeConflict, Judge{w.agent("cara"), id, VerdictMatch, ""})
	w.refused(CodeAlreadyStaged, Stage{w.agent("ben"), id, result})
	if w.page().Note != "the third digit" {
		t.Errorf("the judgement says %q", w.page().Note)
	}
	if r := w.page().Blocks[0].Repro; r.Verdict != VerdictMismatch || r.Judge != "cara" || r.Result != result || r.StagedAt.T >= w.now {
		t.Errorf("%+v", r)
	}
	w.do(CloseBlock{w.agent("anna"), s, id, ""})
	w.do(AssignBlock{w.agent("anna"), s, "dan", "chapter 3"})
	w.refused(CodeNoBlock, Derive{w.agent("dan"), w.page().Blocks[0].ID}) // no reproduction
	if p := w.do(CloseBlock{w.agent("anna"), s, w.page().Blocks[0].ID, "written"}); len(p.Blocks) > 0 || p.Note != "written" {
		t.Errorf("%+v, note %q", p.Blocks, p.Note)
	}
}

// TestSameNonce: a command that the head has already is its own result; with other content it is refused.
func TestSameNonce(t *testing.T) {
	w := newWorld(t)
	c := Petition{w.agent("anna")}
	w.do(c)
	next, err := w.try(c)
	if err != nil || next.Ref() != w.head().Ref() {
		t.Errorf("the retry gives revision %d, %v", next.Ref().Rev, err)
	}
	for _, other := range []Command{Petition{Meta{name, c.Nonce, Agent("ben")}}, Touch(c)} {
		w.refused(CodeOpIDReused, other)
	}
}

// TestCommandDigest: equal commands in whatever spelling, and no others, have one digest; a secret is not in it.
func TestCommandDigest(t *testing.T) {
	m, s := Meta{name, "nonce-xx", Agent("anna")}, Session{3, Secret{7}}
	same := [][2]Command{
		{Create{Meta: m}, Create{Meta: m, Params: DefaultParams()}},
		{Land{Meta: m, Session: s}, Land{Meta: m, Session: s, IDs: []Range{}, Keep: []int64{}}},
		{Land{Meta: m, Session: s, Keep: []int64{2, 1}}, Land{Meta: m, Session: s, Keep: []int64{1, 2}}},
		{Petition{m}, Petition{Meta{name, "nonce-yy", Agent("anna")}}},
		{Clear{Meta: m, Own: []Digest{"x"}}, Clear{Meta: m}},
	}
	for _, c := range same {
		if CommandDigest(c[0]) != CommandDigest(c[1]) {
			t.Errorf("%+v and %+v", c[0], c[1])
		}
	}
	other := [][2]Command{
		{Petition{m}, Touch{m}},
		{Petition{m}, Petition{Meta{"other", "nonce-xx", Agent("anna")}}},
		{Heartbeat{m, s}, Heartbeat{m, Session{3, Secret{8}}}},
		{Land{Meta: m, Session: s, IDs: []Range{{Lo: 1, Hi: 2}}}, Land{Meta: m, Session: s}},
	}
	for _, c := range other {
		if CommandDigest(c[0]) == CommandDigest(c[1]) {
			t.Errorf("%+v and %+v", c[0], c[1])
		}
	}
}

// TestSecretIsNeverShown whatever prints or encodes it.
func TestSecretIsNeverShown(t *testing.T) {
	s := Secret([]byte("0123456789abcdef0123456789ABCDEF"))
	c := Heartbeat{Meta{name, "nonce-xx", Agent("anna")}, Session{1, s}}
	text, err := canonical(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		text = fmt.Appendf(text, format+"|", c)
		text = fmt.Appendf(text, format+"|", s)
		text = fmt.Appendf(text, format+"|", &c)
	}
	for _, leak := range []string{"0123456789abcdef", "30313233", "48 49 50", "0x30", "[48"} {
		if bytes.Contains(text, []byte(leak)) {
			t.Errorf("%q is in %s", leak, text)
		}
	}
}

// TestRestore: above every witness, with a number burned, nothing free, and silent.
func TestRestore(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	w.do(Petition{w.agent("ben")})
	w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 5})
	old := len(w.chain)
	w.do(w.landing("anna", s))
	w.do(w.release("anna", s))
	s = w.acquire("ben")
	seen := WitnessOf(w.head(), Witness{})
	w.chain = w.chain[:old] // an old backup
	w.env.Witness = seen
	w.refused(CodeRollback, Petition{w.agent("cara")})
	p := w.do(Restore{Meta: w.operator("olga"), Reason: "the disk was set back", Witness: seen})
	if p.Epoch != 2 || p.Rev != seen.Rev+1 || p.Grant != 3 || p.State != StateCleared || p.Register.Seq != 1 || p.IDs.Next != 6 || len(p.IDs.Free) > 0 || !p.Silent.On || p.Audit == nil {
		t.Errorf("%+v", p)
	}
	if err := CheckWitness(w.head(), seen); err != nil {
		t.Error(err)
	}
	w.refused(CodeFenced, w.landing("ben", s))
	w.do(Acquire{w.agent("ben"), w.secret().Hash()})
	if w.page().Grant != 4 {
		t.Errorf("grant %d", w.page().Grant)
	}

	lost := &world{t: t, now: start, n: 1000}
	p = lost.do(Restore{Meta: lost.operator("olga"), Reason: "it was deleted", Witness: seen})
	if p.Epoch != 2 || p.Grant != 3 || p.Register.Seq != 1 || p.IDs.Next != 6 || p.PrevHash != "" {
		t.Errorf("%+v", p)
	}
	if err := Verify(lost.chain); err != nil {
		t.Error(err)
	}
	w2 := &world{t: t, now: start, n: 2000}
	_, err := w2.try(Restore{Meta: w2.operator("olga"), Reason: "it was deleted"})
	if !errors.Is(err, CodeRollback) {
		t.Errorf("without a witness: %v", err)
	}
}
