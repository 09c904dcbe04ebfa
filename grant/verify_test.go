package grant

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// longChain is a valid chain in which every command but a second restore occurs.
func longChain(t *testing.T) []Revision {
	w := newWorld(t)
	w.do(Petition{w.agent("anna")})
	w.do(Petition{w.agent("ben")})
	w.do(Petition{w.agent("dan")})
	w.do(Touch{w.agent("ben")})
	s := w.acquire("anna")
	w.pass(time.Hour)
	w.do(Heartbeat{w.agent("anna"), s})
	w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 10})
	l := w.landing("anna", s)
	l.IDs = []Range{{Lo: 3, Hi: 4}}
	w.do(l)
	w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 2})
	w.do(AssignBlock{w.agent("anna"), s, "ben", "chapter 3"})
	block := w.page().Rev
	id := w.do(commission(w, s)).Rev
	w.do(Derive{w.agent("ben"), id})
	w.do(Stage{w.agent("ben"), id, w.manifest("result")})
	w.do(Judge{w.agent("cara"), id, VerdictMatch, ""})
	w.do(CloseBlock{w.agent("anna"), s, block, ""})
	run := w.begin("anna", s)
	w.do(Finish{Meta: w.agent("anna"), Session: s, ID: run, Done: true, Manifest: w.manifest("receipt")})
	w.do(w.release("anna", s))
	w.pass(31 * time.Minute)
	s = w.acquire("dan") // past ben, who missed
	w.do(LeaseIDs{Meta: w.agent("dan"), Session: s, Count: 2})
	lost := w.begin("dan", s)
	w.env.FenceHeld = true
	w.clear()
	w.env.FenceHeld = false
	s = w.acquire("ben")
	w.do(Resolve{w.agent("ben"), s, lost, false, "nothing arrived"})
	w.do(Petition{w.agent("cara")})
	w.do(Withdraw{w.agent("cara")})
	w.do(w.landing("ben", s))
	w.do(w.release("ben", s))
	s = w.acquire("anna")
	w.do(w.landing("anna", s))
	w.now = w.page().Expiry
	w.acquire("dan")
	return w.chain
}

// forge changes one page of a chain, and gives all that follow their new hashes: what is left to find is the
// change. The change is of the first page that was made by op.
func forge(t *testing.T, chain []Revision, op Op, nth int, change func(p *Page)) []Revision {
	t.Helper()
	out := append([]Revision(nil), chain...)
	for i, r := range chain {
		p := r.page.clone()
		if p.Op == op {
			if nth--; nth == 0 {
				change(p)
			}
		}
		if i > 0 && nth <= 0 && p.PrevHash == chain[i-1].hash {
			p.PrevHash = out[i-1].hash
		}
		s, err := seal(p)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = s
	}
	if nth > 0 {
		t.Fatalf("the chain has no such %s", op)
	}
	return out
}

// TestVerifyFindsWhatIsBroken: for each invariant, chains that break it and nothing that comes before.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	chain := longChain(t)
	if err := Verify(chain); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d revisions", len(chain))
	other := digestOf([]byte("other"))
	for _, c := range []struct {
		invariant, what string
		op              Op
		nth             int
		change          func(p *Page)
	}{
		{"I1", "a hash that names another page", OpTouch, 1, func(p *Page) { p.PrevHash = other }},
		{"I1", "a revision left out", OpTouch, 1, func(p *Page) { p.Rev++ }},
		{"I1", "another epoch", OpTouch, 1, func(p *Page) { p.Epoch++ }},
		{"I1", "a beginning in the middle", OpCreate, 1, func(p *Page) { p.Rev = 2 }},
		{"I1", "created twice", OpPetition, 1, func(p *Page) { p.Op = OpCreate }},
		{"I2", "a number twice", OpAcquire, 2, func(p *Page) { p.Grant-- }},
		{"I2", "a number left out", OpAcquire, 2, func(p *Page) { p.Grant++ }},
		{"I2", "a clear that burns none", OpClear, 1, func(p *Page) { p.Grant-- }},
		{"I2", "a heartbeat that changes the number", OpHeartbeat, 1, func(p *Page) { p.Grant++ }},
		{"I2", "a heartbeat that changes the session", OpHeartbeat, 1, func(p *Page) { p.Holder.Session = other }},
		{"I2", "a takeover by the same session", OpAcquire, 5, func(p *Page) { p.Holder.Session = chain[len(chain)-2].page.Holder.Session }},
		{"I2", "acquired for another", OpAcquire, 1, func(p *Page) { p.Holder.Agent = "cara" }},
		{"I2", "a container that begins with a grant", OpCreate, 1, func(p *Page) { p.Grant = 5 }},
		{"I2", "an acquire that holds nothing", OpAcquire, 2, func(p *Page) { p.State = StateFree }},
		{"I2", "a clear that frees", OpClear, 1, func(p *Page) { p.State = StateFree }},
		{"I2", "a release that clears", OpRelease, 1, func(p *Page) { p.State, p.Silent = StateCleared, Silence{true, 1, HowCleared} }},
		{"I12", "a fenced command of another attempt", OpBegin, 1, func(p *Page) { p.Running.ID = "another-one" }},
		{"I12", "a fenced command that still runs", OpFinish, 1, func(p *Page) { p.Running = &Running{"push", "nonce-xx", p.Stamp.T} }},
		{"I12", "a fenced command out of nowhere", OpIDs, 1, func(p *Page) { p.Running = &Running{"push", "nonce-xx", p.Stamp.T} }},
		{"I7", "a grant dated back", OpAcquire, 1, func(p *Page) { p.GrantTime-- }},
		{"I9", "a release that ends no silence", OpRelease, 2, func(p *Page) { p.Silent = Silence{true, 2, HowCleared} }},
		{"I3", "a landing by another agent", OpLand, 1, func(p *Page) { p.By = Agent("ben") }},
		{"I3", "a landing after the expiry", OpLand, 1, func(p *Page) { p.Stamp.T = p.Expiry }},
		{"I4", "a landing on another base", OpLand, 2, func(p *Page) { p.Landing.Base = other }},
		{"I4", "a head that is not the landing's", OpLand, 1, func(p *Page) { p.Landing.New, p.Register.Head = other, other }},
		{"I4", "a landing and another head", OpLand, 1, func(p *Page) { p.Register.Head = other }},
		{"I4", "a landing of another attempt", OpLand, 1, func(p *Page) { p.Nonce = "another-one" }},
		{"I4", "a landing counted twice", OpFinish, 1, func(p *Page) { p.Landing.N++ }},
		{"I5", "a lease of what is leased", OpIDs, 2, func(p *Page) { p.IDs.Leases[0].Lo, p.IDs.Leases[0].Hi = 3, 4 }},
		{"I5", "a lease that is free as well", OpIDs, 2, func(p *Page) { p.IDs.Free[0].Lo = 1 }},
		{"I5", "next that falls", OpIDs, 2, func(p *Page) { p.IDs.Next-- }},
		{"I5", "a heartbeat that leases", OpTouch, 1, func(p *Page) { p.IDs.Next++ }},
		{"I5", "landed ids that are free again", OpLand, 1, func(p *Page) { p.IDs.Free = []Range{{Lo: 1, Hi: 10}} }},
		{"I5", "unused ids that are gone", OpLand, 1, func(p *Page) { p.IDs.Free = []Range{{Lo: 1, Hi: 2}} }},
		{"I5", "a cleared grant's ids that are free", OpClear, 1, func(p *Page) { p.IDs.Free = append([]Range{{Lo: 1, Hi: 2}}, p.IDs.Free...) }},
		{"I5", "a landing of ids that were not leased", OpLand, 2, func(p *Page) { p.Landing.IDs = []Range{{Lo: 5, Hi: 5}} }},
		{"I7", "an expiry that falls", OpHeartbeat, 1, func(p *Page) { p.Expiry -= Time(2 * time.Hour / time.Microsecond) }},
		{"I7", "an expiry past the cap", OpHeartbeat, 1, func(p *Page) { p.Expiry = p.GrantTime.Add(25 * time.Hour) }},
		{"I7", "an expiry past the extension", OpHeartbeat, 1, func(p *Page) { p.Expiry = p.GrantTime.Add(20 * time.Hour) }},
		{"I7", "an expiry before the grant", OpAcquire, 1, func(p *Page) { p.Expiry = p.GrantTime - 1 }},
		{"I7", "an expiry that a lease moves", OpIDs, 1, func(p *Page) { p.Expiry++ }},
		{"I7", "a takeover before the expiry", OpAcquire, 5, func(p *Page) { p.Stamp.T--; p.GrantTime--; p.Heartbeat-- }},
		{"I7", "a clear before the expiry", OpClear, 1, func(p *Page) { p.Stamp.T-- }},
		{"I8", "a landing that is gone", OpHeartbeat, 1, func(p *Page) { p.Register = Register{Head: other, Seq: 3} }},
		{"I8", "a register that an acquire moves", OpAcquire, 2, func(p *Page) { p.Register.Seq++ }},
		{"I9", "a silence that an acquire ends", OpAcquire, 3, func(p *Page) { p.Silent = Silence{} }},
		{"I9", "a silence that a landing ends", OpLand, 2, func(p *Page) { p.Silent = Silence{} }},
		{"I9", "a takeover that begins none", OpAcquire, 5, func(p *Page) { p.Silent = Silence{} }},
		{"I9", "a cleared page that is not silent", OpClear, 1, func(p *Page) { p.Silent = Silence{} }},
		{"I9", "a silence that changes its grant", OpAcquire, 3, func(p *Page) { p.Silent.SinceGrant++ }},
		{"I10", "a clear without an audit line", OpClear, 1, func(p *Page) { p.Audit = nil }},
		{"I10", "a landing with one", OpLand, 1, func(p *Page) { p.Audit = &Audit{Operator: "olga", Reason: "x"} }},
		{"I10", "an audit line of another grant", OpClear, 1, func(p *Page) { p.Audit.Grant-- }},
		{"I10", "an audit line of another operator", OpClear, 1, func(p *Page) { p.Audit.Operator = "oscar" }},
		{"I10", "a clear by an agent", OpClear, 1, func(p *Page) { p.By.Role = RoleAgent }},
		{"I10", "an audit line of what nobody saw", OpClear, 1, func(p *Page) { p.Audit.Seen-- }},
		{"I11", "a miss that is not recorded", OpAcquire, 2, func(p *Page) { p.Passed = []Passed{} }},
		{"I11", "a miss that costs nothing", OpAcquire, 2, func(p *Page) { p.Queue[0].Misses = 0 }},
		{"I11", "a petition that is gone", OpAcquire, 2, func(p *Page) { p.Queue = []Waiter{} }},
		{"I11", "overtaken within the window", OpAcquire, 2, func(p *Page) {
			d := Time(2 * time.Minute / time.Microsecond)
			p.Stamp.T, p.GrantTime, p.Heartbeat, p.Queue[0].Since = p.Stamp.T-d, p.GrantTime-d, p.Heartbeat-d, p.Queue[0].Since-d
		}},
		{"I11", "a queue that a heartbeat changes", OpHeartbeat, 1, func(p *Page) { p.Queue = p.Queue[1:] }},
		{"I11", "a petition that goes to the front", OpPetition, 2, func(p *Page) { p.Queue[0], p.Queue[1] = p.Queue[1], p.Queue[0] }},
		{"I11", "an offer that is opened again", OpPetition, 2, func(p *Page) { p.Offer.OpenedAt++ }},
		{"I12", "params that change", OpTouch, 1, func(p *Page) { p.Params.Window++ }},
		{"I12", "an attempt that counts twice", OpTouch, 1, func(p *Page) { p.Nonce = chain[0].page.Nonce }},
		{"I12", "an end that is not recorded", OpRelease, 1, func(p *Page) { p.Ended = nil }},
		{"I12", "an end of another grant", OpRelease, 1, func(p *Page) { p.Ended.Grant++ }},
		{"I12", "an end at another revision", OpRelease, 1, func(p *Page) { p.Ended.Rev-- }},
		{"I12", "an end of another holder", OpRelease, 1, func(p *Page) { p.Ended.Holder.Agent = "cara" }},
		{"I12", "an end by another", OpAcquire, 5, func(p *Page) { p.Ended.By.Name = "cara" }},
		{"I12", "an end of another kind", OpRelease, 1, func(p *Page) { p.Ended.How = HowCleared }},
		{"I13", "a block of another number", OpBlock, 1, func(p *Page) { p.Blocks[0].ID-- }},
		{"I13", "a block of another grant", OpBlock, 1, func(p *Page) { p.Blocks[0].Grant++ }},
		{"I13", "a commission that has begun", OpCommission, 1, func(p *Page) { p.Blocks[1].Repro.State = ReproDeriving }},
		{"I12", "an end that changes", OpResolve, 1, func(p *Page) { p.Ended.Reason = "another" }},
		{"I12", "a doubt that is gone", OpClear, 1, func(p *Page) { p.Doubts = []Doubt{} }},
		{"I12", "a doubt that is settled without a reason", OpResolve, 1, func(p *Page) { p.Note = "" }},
		{"I12", "a lease by another agent", OpIDs, 1, func(p *Page) { p.By = Agent("ben") }},
		{"I13", "a result that was judged before its stamp", OpStage, 1, func(p *Page) {
			r := p.Blocks[1].Repro
			r.State, r.Verdict, r.Judge = ReproJudged, VerdictMatch, "cara"
		}},
		{"I13", "a result that the judge changes", OpJudge, 1, func(p *Page) { p.Blocks[1].Repro.Result = other }},
		{"I13", "a stamp of another time", OpStage, 1, func(p *Page) { p.Blocks[1].Repro.StagedAt.T-- }},
		{"I13", "a deriver who judges", OpJudge, 1, func(p *Page) { p.By, p.Blocks[1].Repro.Judge = Agent("ben"), "ben" }},
		{"I13", "an author who derives", OpCommission, 1, func(p *Page) { p.Blocks[1].Worker = "anna" }},
		{"I13", "a block that a heartbeat closes", OpBegin, 1, func(p *Page) { p.Blocks = []Block{} }},
		{"I14", "a page of another container", OpTouch, 1, func(p *Page) { p.Container = "other" }},
	} {
		t.Run(c.invariant+"_"+strings.ReplaceAll(c.what, " ", "_"), func(t *testing.T) {
			bad := forge(t, chain, c.op, c.nth, c.change)
			err := Verify(bad)
			var b *Broken
			if !errors.As(err, &b) || b.Invariant != c.invariant {
				t.Errorf("Verify says: %v; want %s", err, c.invariant)
			}
		})
	}
}

// TestVerifyBeginnings: a chain begins with a create, or with the restore of a page that was lost.
func TestVerifyBeginnings(t *testing.T) {
	chain := longChain(t)
	wantBroken(t, "I1", Verify(chain[1:]))
	first := chain[1].page.clone()
	first.PrevHash = ""
	r, err := seal(first)
	if err != nil {
		t.Fatal(err)
	}
	wantBroken(t, "I1", Verify([]Revision{r}))
	w := newWorld(t)
	w.do(Restore{Meta: w.operator("olga"), Reason: "set back", Witness: Witness{Epoch: 1, Rev: 9, Grant: 4}})
	wantBroken(t, "I1", Verify(w.chain[1:]))
	wantBroken(t, "I1", Verify([]Revision{{}}))
	if err := Verify(nil); err != nil {
		t.Error(err)
	}
	// A command that ended without having begun.
	s := w.acquire("anna")
	done := w.landing("anna", s)
	next := w.must(done)
	p := next.page.clone()
	p.Op = OpFinish
	if r, err = seal(p); err != nil {
		t.Fatal(err)
	}
	wantBroken(t, "I4", Verify(append(w.chain, r)))
	p = w.page().clone()
	p.Op, p.Rev, p.PrevHash, p.Nonce = OpFinish, p.Rev+1, w.head().hash, "another-one"
	if r, err = seal(p); err != nil {
		t.Fatal(err)
	}
	wantBroken(t, "I12", Verify(append(w.chain, r)))
}

// TestVerifyReleases: a release of a grant that landed nothing, or that leaves leases, is I6.
func TestVerifyReleases(t *testing.T) {
	for _, leases := range []bool{false, true} {
		w := newWorld(t)
		s := w.acquire("anna")
		if leases {
			w.do(w.landing("anna", s))
			w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1})
		}
		r, err := apply(w.head(), w.release("anna", s), Env{Now: Stamp{SourceStore, w.now}}, planted{releaseUnlanded: true})
		if err != nil {
			t.Fatal(err)
		}
		wantBroken(t, "I6", Verify(append(w.chain, r)))
	}
}

func TestVerifyEstate(t *testing.T) {
	a := longChain(t)
	if err := VerifyEstate(a); err != nil {
		t.Fatal(err)
	}
	wantBroken(t, "I14", VerifyEstate(a, a))
	b := []Revision{}
	for _, r := range a { // the same sessions in another container
		p := r.page.clone()
		p.Container = "other"
		if len(b) > 0 {
			p.PrevHash = b[len(b)-1].hash
		}
		s, err := seal(p)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, s)
		if p.Holder != nil {
			break
		}
	}
	wantBroken(t, "I14", VerifyEstate(a, b))
}

// TestPersisted: a landing that was acknowledged and is not in the chain is I8.
func TestPersisted(t *testing.T) {
	chain := longChain(t)
	if err := Persisted(chain, chain[3].Ref(), chain[9].Ref()); err != nil {
		t.Error(err)
	}
	wantBroken(t, "I8", Persisted(chain[:9], chain[9].Ref()))
}

func wantBroken(t *testing.T, invariant string, err error) {
	t.Helper()
	var b *Broken
	if !errors.As(err, &b) || b.Invariant != invariant {
		t.Errorf("%v, want %s", err, invariant)
	}
}

// TestVerifyRestored: an epoch must lie above what was left of the one before.
func TestVerifyRestored(t *testing.T) {
	w := newWorld(t)
	w.acquire("anna")
	w.do(Restore{Meta: w.operator("olga"), Reason: "set back", Witness: Witness{Epoch: 1, Rev: 9, Grant: 4, Next: 7}})
	if w.page().Rev != 10 || w.page().Grant != 5 {
		t.Fatalf("revision %d, grant %d", w.page().Rev, w.page().Grant)
	}
	for i, c := range []struct {
		invariant string
		change    func(p *Page)
	}{
		{"I1", func(p *Page) { p.Epoch = 1 }},
		{"I1", func(p *Page) { p.Rev = 2 }},
		{"I2", func(p *Page) { p.Grant = 1 }},
		{"I5", func(p *Page) { p.IDs.Next = 3; p.IDs.Free = []Range{{Lo: 1, Hi: 2}} }},
		{"I9", func(p *Page) { p.Silent = Silence{} }},
		{"I10", func(p *Page) { p.Audit.Seen = 1 }},
	} {
		t.Run(fmt.Sprint(i, c.invariant), func(t *testing.T) {
			bad := forge(t, w.chain, OpRestore, 1, c.change)
			wantBroken(t, c.invariant, Verify(bad))
		})
	}
}
