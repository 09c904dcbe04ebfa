package grant

import (
	"fmt"
	"strings"
	"testing"
)

// TestSealRefuses pages that cannot be: each is one change away from a good one.
func TestSealRefuses(t *testing.T) {
	pages := goldenPages(t)
	big := int64(MaxNumber + 1)
	bad := map[string][]func(p *Page){
		"held": {
			func(p *Page) { p.V = 2 },
			func(p *Page) { p.Container = "" },
			func(p *Page) { p.Rev = 0 },
			func(p *Page) { p.Rev = big },
			func(p *Page) { p.Epoch = 0 },
			func(p *Page) { p.Grant = 0 },
			func(p *Page) { p.Grant = big },
			func(p *Page) { p.Nonce = "short" },
			func(p *Page) { p.Nonce = strings.Repeat("n", maxNonce+1) },
			func(p *Page) { p.Op = "guess" },
			func(p *Page) { p.By.Role = "" },
			func(p *Page) { p.By.Name = "a/b" },
			func(p *Page) { p.Stamp.Source = "" },
			func(p *Page) { p.Stamp.T = 0 },
			func(p *Page) { p.Digest = "" },
			func(p *Page) { p.Digest = p.Digest[1:] + "G" },
			func(p *Page) { p.PrevHash = p.PrevHash[1:] },
			func(p *Page) { p.Note = "two\nlines" },
			func(p *Page) { p.Note = strings.Repeat("n", MaxText+1) },
			func(p *Page) { p.Params.Cap = 24*3600 + 1 },
			func(p *Page) { p.Params.Extension = p.Params.Cap + 1 },
			func(p *Page) { p.Params.Window = 0 },
			func(p *Page) { p.Params.PetitionIdle = 59 },
			func(p *Page) { p.Holder = nil },
			func(p *Page) { p.Holder.Session = "" },
			func(p *Page) { p.Holder.Agent = "" },
			func(p *Page) { p.GrantTime = 0 },
			func(p *Page) { p.Expiry = 0 },
			func(p *Page) { p.Heartbeat = 0 },
			func(p *Page) { p.State = "" },
			func(p *Page) { p.Offer = &Offer{p.Stamp.T, 1, p.Queue[0].Rev} },
			func(p *Page) { p.Queue[0].Misses = 2 },
			func(p *Page) { p.Queue[0].Misses = -1 },
			func(p *Page) { p.Queue[0].Rev = p.Rev + 1 },
			func(p *Page) { p.Queue[0].Rev = 0 },
			func(p *Page) { p.Queue[0].Since = 0 },
			func(p *Page) { p.Queue[0].Touched = 0 },
			func(p *Page) { p.Queue[0].Agent = "" },
			func(p *Page) { p.Queue[0].Agent = p.Queue[1].Agent },
			func(p *Page) { p.Queue[0].Rev = p.Queue[1].Rev },
			func(p *Page) { p.Passed = []Passed{{"anna", 1, "bored"}} },
			func(p *Page) { p.Passed = []Passed{{"anna", 0, WhyIdle}} },
			func(p *Page) { p.Doubts = []Doubt{{"", 1, "nonce-xx", p.Stamp.T}} },
			func(p *Page) { p.Doubts = []Doubt{{"push", 0, "nonce-xx", p.Stamp.T}} },
			func(p *Page) { p.Doubts = []Doubt{{"push", 1, "x", p.Stamp.T}} },
			func(p *Page) { p.Doubts = []Doubt{{"push", 1, "nonce-xx", 0}} },
			func(p *Page) { p.IDs.Next = 0 },
			func(p *Page) { p.IDs.Next = big + 1 },
			func(p *Page) { p.IDs.Free[0].Hi = p.IDs.Free[0].Lo - 1 },
			func(p *Page) { p.IDs.Free[0].Lo = 0 },
			func(p *Page) { p.IDs.Free = append(p.IDs.Free, Range{Lo: 3, Hi: 3}) },
			func(p *Page) { p.IDs.Free = append([]Range{{Lo: 4, Hi: 4}}, p.IDs.Free...) },
			func(p *Page) { p.IDs.Leases[0].ID = 0 },
			func(p *Page) { p.IDs.Leases[0].ID = p.Rev + 1 },
			func(p *Page) { p.IDs.Leases[0].Hi = 0 },
			func(p *Page) { p.IDs.Leases[0].Block = -1 },
			func(p *Page) { p.IDs.Leases[0].Worker = "" },
			func(p *Page) { p.IDs.Leases[0].Used = []Range{{Lo: 2, Hi: 1}} },
			func(p *Page) { p.IDs.Leases[0].Used = []Range{{Lo: 2, Hi: 3}} },
			func(p *Page) {
				p.IDs.Leases = append(p.IDs.Leases, Lease{ID: p.IDs.Leases[0].ID, Lo: 3, Hi: 3, Worker: "ben"})
			},
			func(p *Page) { p.Blocks[0].ID = p.Rev + 1 },
			func(p *Page) { p.Blocks[0].ID = p.Blocks[1].ID },
			func(p *Page) { p.Blocks[0].Grant = 0 },
			func(p *Page) { p.Blocks[0].Worker = "" },
			func(p *Page) { p.Blocks[0].Note = "\x1b" },
			func(p *Page) { p.Blocks[1].Repro.Kernel = "" },
			func(p *Page) { p.Blocks[1].Repro.Assumptions = "" },
			func(p *Page) { p.Blocks[1].Repro.Record = "" },
			func(p *Page) { p.Blocks[1].Repro.Author = "" },
			func(p *Page) { p.Blocks[1].Repro.Author = p.Blocks[1].Worker },
			func(p *Page) { p.Blocks[1].Repro.State = "LOST" },
			func(p *Page) { p.Blocks[1].Repro.State = ReproStaged },
			func(p *Page) { p.Blocks[1].Repro.State = ReproDeriving },
			func(p *Page) { p.Blocks[1].Repro.Result = "" },
			func(p *Page) { p.Blocks[1].Repro.StagedAt = Stamp{} },
			func(p *Page) { p.Blocks[1].Repro.Verdict = "perhaps" },
			func(p *Page) { p.Blocks[1].Repro.Judge = "" },
			func(p *Page) { p.Blocks[1].Repro.Judge = p.Blocks[1].Worker },
			func(p *Page) { p.Register.Seq = 0 },
			func(p *Page) { p.Register.Head = "" },
			func(p *Page) { p.Landing.N = 0 },
			func(p *Page) { p.Landing.N = 2 },
			func(p *Page) { p.Landing.ID = "" },
			func(p *Page) { p.Landing.New = p.Digest },
			func(p *Page) { p.Landing.SHA256 = "" },
			func(p *Page) { p.Landing.Base = "x" },
			func(p *Page) { p.Landing.IDs = []Range{{Lo: 4, Hi: 3}} },
			func(p *Page) { p.Landing.Empty = "\n" },
			func(p *Page) { p.Silent = Silence{true, 0, HowCleared} },
			func(p *Page) { p.Silent = Silence{true, 1, ""} },
			func(p *Page) { p.Silent = Silence{false, 1, ""} },
			func(p *Page) { p.Silent = Silence{false, 0, HowLost} },
			func(p *Page) { p.Audit = &Audit{Operator: "olga", Reason: "x"} },
			func(p *Page) { p.Ended = &End{p.Stamp.T, p.By, 0, *p.Holder, HowLost, "", 1} },
			func(p *Page) { p.Ended = &End{p.Stamp.T, p.By, 1, *p.Holder, "", "", 1} },
			func(p *Page) { p.Ended = &End{p.Stamp.T, p.By, 1, Holder{}, HowLost, "", 1} },
			func(p *Page) { p.Ended = &End{0, p.By, 1, *p.Holder, HowLost, "", 1} },
			func(p *Page) { p.Expiry = p.GrantTime - 1 },
			func(p *Page) { p.Expiry = p.GrantTime.Add(p.Params.Cap.Duration()) + 1 },
			func(p *Page) { p.Note = "a\xff" },
		},
		"released": {
			func(p *Page) { p.Offer = nil },
			func(p *Page) { p.Queue = nil },
			func(p *Page) { p.Offer.Petition++ },
			func(p *Page) { p.Offer.OpenedAt = 0 },
			func(p *Page) { p.Offer.OpenedRev = p.Rev + 1 },
			func(p *Page) { p.State = StateCleared },
			func(p *Page) { p.State = StateHeld },
			func(p *Page) { p.Expiry = p.Stamp.T },
			func(p *Page) { p.GrantTime = p.Stamp.T },
			func(p *Page) { p.Heartbeat = p.Stamp.T },
			func(p *Page) { p.Holder = &p.Ended.Holder },
			func(p *Page) { p.Landing = &Landing{N: 1, New: p.Register.Head, SHA256: p.Digest, ID: "nonce-xx"} },
			func(p *Page) { p.Running = &Running{"push", "nonce-xx", p.Stamp.T} },
			func(p *Page) { p.IDs.Leases = []Lease{{ID: 1, Lo: 1, Hi: 1, Worker: "ben"}} },
		},
		"cleared": {
			func(p *Page) { p.Audit = nil },
			func(p *Page) { p.Audit.Reason = "" },
			func(p *Page) { p.Audit.Operator = "" },
			func(p *Page) { p.Audit.Grant = -1 },
			func(p *Page) { p.Audit.Seen = -1 },
			func(p *Page) { p.Audit.SeenEpoch = big },
			func(p *Page) { p.Audit.Holder.Session = "x" },
			func(p *Page) { p.Audit.Operator = "oscar" },
			func(p *Page) { p.By.Role = RoleAgent },
			func(p *Page) { p.Silent = Silence{} },
		},
		"running": {
			func(p *Page) { p.Running.ID = "" },
			func(p *Page) { p.Running.Command = "" },
			func(p *Page) { p.Running.Command = "a\tb" },
			func(p *Page) { p.Running.Started = 0 },
		},
	}
	for what, changes := range bad {
		if _, err := Seal(pages[what].page); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, change := range changes {
			p := pages[what].page.clone()
			change(p)
			if _, err := Seal(p); err == nil {
				t.Errorf("%s, change %d: sealed", what, i)
			}
			// And from bytes: a page that says such things is none.
			if r, err := seal(p); err == nil {
				if _, err := Open(r.bytes); err == nil {
					t.Errorf("%s, change %d: opened", what, i)
				}
			}
		}
	}
	edge := pages["held"].page.clone() // and at the edges there are good ones
	edge.IDs.Leases[0].Used = []Range{{Lo: 1, Hi: 2}}
	edge.Expiry = edge.GrantTime
	if _, err := Seal(edge); err != nil {
		t.Error(err)
	}
	full := pages["held"].page.clone()
	for i := range MaxQueue + 1 {
		full.Queue = append(full.Queue[:i:i], Waiter{fmt.Sprint("a", i), 0, 1, full.Stamp.T, full.Stamp.T})
		full.Queue[i].Rev = int64(i + 1)
	}
	full.Rev = 1000
	if _, err := Seal(full); err == nil {
		t.Errorf("a queue of %d was sealed", len(full.Queue))
	}
	full.Queue = full.Queue[:MaxQueue]
	if _, err := Seal(full); err != nil {
		t.Errorf("a queue of %d: %v", len(full.Queue), err)
	}
}

// TestRefusalsOfARestoredPage: there is a state, and nobody known who had it before.
func TestRefusalsOfARestoredPage(t *testing.T) {
	w := &world{t: t, now: start}
	w.do(Restore{Meta: w.operator("olga"), Reason: "it was deleted", Witness: Witness{Epoch: 3, Rev: 40, Grant: 7, Next: 12}})
	w.refused(CodeAlreadyCleared, Clear{Meta: w.operator("olga"), Reason: "gone", Seen: 41})
	r := w.refusal(CodeFenced, Heartbeat{w.agent("anna"), Session{7, Secret{1}}})
	if r.Ended != nil {
		t.Errorf("%+v", r.Ended)
	}
	if s := w.acquire("anna"); s.Grant != 9 {
		t.Errorf("grant %d", s.Grant)
	}
	for i, bad := range []Witness{{Rev: -1}, {Rev: MaxNumber + 1}, {Rev: 99, Grant: -1}, {Rev: 99, Epoch: -1}, {Rev: 99, Next: -1}, {Rev: 99, Hash: "x"},
		{Rev: 99, Register: Register{"", 3}}, {Rev: 99, Register: Register{"x", 3}}, {Rev: 99, Register: Register{w.head().hash, 0}}} {
		if _, err := w.try(Restore{Meta: w.operator("olga"), Reason: "x", Witness: bad}); CodeOf(err) != CodeBadInput {
			t.Errorf("%d: %v", i, err)
		}
	}
	for i, last := range []Witness{{Rev: MaxNumber, Epoch: 4}, {Rev: 99, Epoch: MaxNumber}, {Rev: 99, Epoch: 4, Grant: MaxNumber}} {
		if _, err := w.try(Restore{Meta: w.operator("olga"), Reason: "x", Witness: last}); CodeOf(err) != CodeExhausted {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestRestoreDuringACommand: what was running when the page was lost is in doubt, and the lost grant has an end.
func TestRestoreDuringACommand(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	id := w.begin("anna", s)
	p := w.do(Restore{Meta: w.operator("olga"), Reason: "set back", Witness: Witness{Epoch: 1, Rev: 9, Grant: 1}})
	if len(p.Doubts) != 1 || p.Doubts[0].ID != id || p.Doubts[0].Grant != 1 {
		t.Errorf("in doubt: %+v", p.Doubts)
	}
	if p.Ended == nil || p.Ended.How != HowLost || p.Ended.Grant != 1 || p.Ended.Rev != 10 || p.Audit.Holder == nil || p.Silent != (Silence{true, 1, HowLost}) {
		t.Errorf("ended %+v, audit %+v, silent %+v", p.Ended, p.Audit, p.Silent)
	}
}

// TestWitness: what shows that a page was set back, and what does not.
func TestWitness(t *testing.T) {
	chain := longChain(t)
	head, before := chain[12], chain[7]
	w := WitnessOf(head, Witness{})
	if w.Rev != 13 || w.Grant != 1 || w.Next != head.page.IDs.Next || w.Hash != head.hash || w.Register != head.page.Register {
		t.Errorf("%+v", w)
	}
	if got := WitnessOf(before, w); got != w {
		t.Errorf("an older page changed it: %+v", got)
	}
	if WitnessOf(Revision{}, w) != w {
		t.Error("no page changed it")
	}
	for _, ok := range []Revision{head, chain[13], {}} {
		if err := CheckWitness(ok, w); err != nil {
			t.Error(err)
		}
	}
	other := w
	other.Hash = before.hash
	newer := w
	newer.Epoch = 2
	grant := w
	grant.Rev, grant.Grant = 3, 2
	landings := w
	landings.Rev, landings.Register.Seq = 3, 9
	for i, c := range []struct {
		head Revision
		w    Witness
	}{{before, w}, {head, other}, {head, newer}, {head, grant}, {head, landings}} {
		if err := CheckWitness(c.head, c.w); CodeOf(err) != CodeRollback {
			t.Errorf("%d: %v", i, err)
		}
	}
}
