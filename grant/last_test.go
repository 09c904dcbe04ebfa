package grant

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// at is the world with its head changed: for what no test could wait for.
func (w *world) at(change func(p *Page)) {
	w.t.Helper()
	p := w.page().clone()
	change(p)
	r, err := Seal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.chain = []Revision{r}
}

// TestLastNumbers: at the last revision, grant and landing there is a refusal, and one before there is not.
func TestLastNumbers(t *testing.T) {
	w := newWorld(t)
	w.at(func(p *Page) { p.Rev = MaxNumber })
	w.refused(CodeExhausted, Petition{w.agent("anna")})
	w.at(func(p *Page) { p.Rev = MaxNumber - 1 })
	if p := w.must(Petition{w.agent("anna")}).page; p.Rev != MaxNumber {
		t.Errorf("revision %d", p.Rev)
	}

	w = newWorld(t)
	w.at(func(p *Page) { p.Grant = MaxNumber })
	w.refused(CodeExhausted, Acquire{w.agent("anna"), w.secret().Hash()})
	w.at(func(p *Page) { p.Grant = MaxNumber - 1 })
	secret := w.secret()
	w.chain = append(w.chain, w.must(Acquire{w.agent("anna"), secret.Hash()}))
	if w.page().Grant != MaxNumber {
		t.Errorf("grant %d", w.page().Grant)
	}
	w.must(Heartbeat{w.agent("anna"), Session{MaxNumber, secret}})
	w.now = w.page().Expiry
	w.refused(CodeExhausted, Clear{Meta: w.operator("olga"), Reason: "gone", Seen: w.page().Rev})

	w = newWorld(t)
	s := w.acquire("anna")
	w.at(func(p *Page) { p.Register = Register{p.Digest, MaxNumber} })
	w.refused(CodeExhausted, w.landing("anna", s))
}

// TestWhatRefusalsAdvise: the command that helps is the one for this caller.
func TestWhatRefusalsAdvise(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	r := w.refusal(CodeHeld, Acquire{w.agent("ben"), w.secret().Hash()})
	if r.Next != "grant petition atlas" || r.Turn != nil || !strings.Contains(r.Error(), "anna holds grant 1, for another 4h0m0s") {
		t.Errorf("without a petition: %v, %+v", r, r.Turn)
	}
	w.do(Petition{w.agent("ben")})
	r = w.refusal(CodeHeld, Acquire{w.agent("ben"), w.secret().Hash()})
	if r.Next != "grant acquire atlas" || r.Turn == nil || r.Turn.Place != 1 || r.Turn.From != w.page().Expiry || r.Turn.Open {
		t.Errorf("with one: %v, %+v", r, r.Turn)
	}
	r = w.refusal(CodeHeld, Acquire{w.agent("cara"), w.secret().Hash()})
	if r.Next != "grant petition atlas" || r.Turn != nil {
		t.Errorf("behind others: %v", r)
	}
	l := w.landing("anna", s)
	l.Base = w.manifest("x")
	if r = w.refusal(CodeRegisterMoved, l); !strings.Contains(r.Cause, "head is empty, the work began from "+string(l.Base)[:12]) {
		t.Errorf("%v", r)
	}
	if r = w.refusal(CodeNotPushed, w.release("anna", s)); !strings.Contains(r.Error(), "anna holds grant 1 until 2026") {
		t.Errorf("the holder is missing: %v", r)
	}
	w.now = w.page().Expiry
	if r = w.refusal(CodeExpired, w.landing("anna", s)); r.Next != "grant petition atlas" {
		t.Errorf("expired with nothing landed: %v", r)
	}
	w.pass(-1000)
	w.do(w.landing("anna", s))
	w.pass(1000 * 1000)
	w.now = w.page().Expiry
	if r = w.refusal(CodeExpired, w.landing("anna", s)); r.Next != "grant release atlas" {
		t.Errorf("expired after a landing: %v", r)
	}

	_, err := Apply(Revision{}, Petition{w.agent("anna")}, Env{Now: Stamp{SourceStore, w.now}})
	if !errors.As(err, &r) || r.Next != "grant create atlas" {
		t.Errorf("no page: %v", err)
	}
	m := w.agent("anna")
	m.Container = "my 'notes'"
	_, err = Apply(Revision{}, Petition{m}, Env{Now: Stamp{SourceStore, w.now}})
	if !errors.As(err, &r) || r.Next != `grant create 'my '\''notes'\'''` {
		t.Errorf("a name for the shell: %v", err)
	}
}

// TestWitnessOverEpochs: the later epoch counts, whatever its revisions.
func TestWitnessOverEpochs(t *testing.T) {
	w := newWorld(t)
	w.do(Restore{Meta: w.operator("olga"), Reason: "set back", Witness: Witness{Epoch: 1, Rev: 3, Grant: 1}})
	head := w.head()
	old := Witness{Epoch: 1, Rev: 50, Grant: 1, Hash: "x"}
	if got := WitnessOf(head, old); got.Epoch != 2 || got.Rev != 4 || got.Hash != head.hash {
		t.Errorf("%+v", got)
	}
	later := Witness{Epoch: 3, Rev: 2, Grant: 1, Hash: "x"}
	if got := WitnessOf(head, later); got.Epoch != 3 || got.Rev != 2 || got.Hash != "x" {
		t.Errorf("%+v", got)
	}
	same := Witness{Epoch: 2, Rev: 4}
	if got := WitnessOf(head, same); got.Hash != head.hash {
		t.Errorf("%+v", got)
	}
	if err := CheckWitness(head, old); err != nil {
		t.Error(err)
	}
}

// TestChainOverEpochs goes on with what a restore had found, and ends where it had found nothing.
func TestChainOverEpochs(t *testing.T) {
	w := newWorld(t)
	w.acquire("anna")
	w.do(Restore{Meta: w.operator("olga"), Reason: "set back", Witness: Witness{Epoch: 1, Rev: 9, Grant: 4, Next: 7}})
	w.acquire("ben")
	s := &shelf{chain: w.chain}
	chain, err := Chain(context.Background(), s, name)
	if err != nil || len(chain) != 4 || Verify(chain) != nil {
		t.Errorf("%d revisions, %v", len(chain), err)
	}
	lost := &world{t: t, now: start}
	lost.do(Restore{Meta: lost.operator("olga"), Reason: "it was deleted", Witness: Witness{Epoch: 1, Rev: 9, Grant: 4, Next: 7}})
	lost.acquire("ben")
	chain, err = Chain(context.Background(), &shelf{chain: lost.chain}, name)
	if err != nil || len(chain) != 2 || Verify(chain) != nil {
		t.Errorf("%d revisions, %v", len(chain), err)
	}
}

// TestFullFreeList: a landing is not refused because the list of free identifiers is full; the shortest are burned.
func TestFullFreeList(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	w.at(func(p *Page) {
		for i := range int64(MaxRanges) {
			p.IDs.Free = append(p.IDs.Free, Range{Lo: 1 + 4*i, Hi: 2 + 4*i})
		}
		p.IDs.Next = 1 + 4*MaxRanges
	})
	first := w.head()
	lease := w.must(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 9})
	w.chain = append(w.chain, lease)
	l := w.landing("anna", s)
	lo := lease.page.IDs.Leases[0].Lo
	l.IDs = []Range{{Lo: lo + 1, Hi: lo + 1}} // leaves one alone, and seven
	done := w.must(l)
	free := done.page.IDs.Free
	if len(free) != MaxRanges || free[len(free)-1] != (Range{Lo: lo + 2, Hi: lo + 8}) || free[0] != first.page.IDs.Free[0] {
		t.Errorf("%d ranges, the last %v", len(free), free[len(free)-1])
	}
	if b := transition(lease, done); b != nil {
		t.Error(b)
	}
}
