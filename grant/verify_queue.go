package grant

import "reflect"

// queues checks who went where in the queue, and the offer.
func queues(a, b *Page) *Broken {
	want, passed, bad := list(a.Queue), list[Passed](nil), (*Broken)(nil)
	switch b.Op {
	case OpPetition:
		want = want[:0]
		for _, w := range a.Queue {
			if silentFor(a, w, b.Stamp.T) {
				passed = append(passed, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyIdle})
			} else {
				want = append(want, w)
			}
		}
		want = append(want, Waiter{Agent: b.By.Name, Rev: b.Rev, Since: b.Stamp.T, Touched: b.Stamp.T})
	case OpTouch:
		for i := range want {
			if want[i].Agent == b.By.Name {
				want[i].Touched = max(want[i].Touched, b.Stamp.T)
			}
		}
	case OpWithdraw:
		want = want[:0]
		for _, w := range a.Queue {
			if w.Agent != b.By.Name {
				want = append(want, w)
			}
		}
		if len(want) == len(a.Queue) {
			bad = broken(b, "I11", "%s had no petition", b.By.Name)
		}
	case OpAcquire:
		want, passed, bad = overtaken(a, b)
	}
	if bad != nil {
		return bad
	}
	if !reflect.DeepEqual(want, list(b.Queue)) {
		return broken(b, "I11", "the queue is not what it must be")
	}
	if !reflect.DeepEqual(passed, list(b.Passed)) {
		return broken(b, "I11", "who was passed over is not recorded")
	}
	if o := b.Offer; o != nil {
		fresh := Offer{OpenedAt: b.Stamp.T, OpenedRev: b.Rev, Petition: b.Queue[0].Rev}
		if a.Offer != nil && a.Offer.Petition == o.Petition {
			fresh = *a.Offer
		}
		if *o != fresh {
			return broken(b, "I11", "the offer is not the head's")
		}
	}
	return nil
}

func silentFor(p *Page, w Waiter, now Time) bool {
	return now.Sub(w.Touched) >= p.Params.PetitionIdle.Duration()
}

// overtaken checks an acquire: everybody ahead had a window of their own, and is recorded.
func overtaken(a, b *Page) (want []Waiter, passed []Passed, bad *Broken) {
	now := b.Stamp.T
	want, passed = list[Waiter](nil), list[Passed](nil)
	var missed []Waiter
	found, windows := false, 0
	for _, w := range a.Queue {
		switch {
		case w.Agent == b.By.Name:
			found = true
		case found:
			want = append(want, w)
		case silentFor(a, w, now):
			passed = append(passed, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyIdle})
		case w.Misses > 0:
			windows++
			passed = append(passed, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyEnded})
		default:
			windows++
			passed = append(passed, Passed{Agent: w.Agent, Petition: w.Rev, Why: WhyMissed})
			w.Misses, w.Since = 1, now
			missed = append(missed, w)
		}
	}
	want = append(want, missed...)
	if windows == 0 {
		return want, passed, nil
	}
	if !found {
		return nil, nil, broken(b, "I11", "%s had no petition, and %d waited", b.By.Name, windows)
	}
	from := a.Expiry
	if a.Offer != nil {
		from = a.Offer.OpenedAt
	}
	for range windows {
		from = from.Add(a.Params.Window.Duration())
	}
	if now < from {
		return nil, nil, broken(b, "I11", "%s overtook %d, who had until %s", b.By.Name, windows, from)
	}
	return want, passed, nil
}

// blocks checks that blocks come and go as they must, and reproductions in their order.
func blocks(a, b *Page) *Broken {
	n := len(a.Blocks)
	switch b.Op {
	case OpBlock, OpCommission:
		if len(b.Blocks) != n+1 || !reflect.DeepEqual(b.Blocks[:n], a.Blocks) {
			return broken(b, "I13", "one block is added, and no other changes")
		}
		x := b.Blocks[n]
		if x.ID != b.Rev || x.Grant != b.Grant || (x.Repro != nil) != (b.Op == OpCommission) || x.Repro != nil && x.Repro.State != ReproCommissioned {
			return broken(b, "I13", "the block is not a new one")
		}
	case OpCloseBlock:
		i := 0
		for i < len(b.Blocks) && i < n && reflect.DeepEqual(a.Blocks[i], b.Blocks[i]) {
			i++
		}
		if len(b.Blocks) != n-1 || !reflect.DeepEqual(b.Blocks[i:], a.Blocks[i+1:]) {
			return broken(b, "I13", "one block goes, and no other changes")
		}
		if r := a.Blocks[i].Repro; r != nil && r.State != ReproJudged && b.Note == "" {
			return broken(b, "I13", "block %d was closed unjudged, without a reason", a.Blocks[i].ID)
		}
	case OpDerive, OpStage, OpJudge:
		return reproduced(a, b)
	}
	return nil
}

// reproduced checks one step of one reproduction.
func reproduced(a, b *Page) *Broken {
	if len(a.Blocks) != len(b.Blocks) {
		return broken(b, "I13", "a block came or went")
	}
	changed := 0
	for i := range a.Blocks {
		x, y := a.Blocks[i], b.Blocks[i]
		if reflect.DeepEqual(x, y) {
			continue
		}
		changed++
		if x.Repro == nil || y.Repro == nil {
			return broken(b, "I13", "block %d is no reproduction", x.ID)
		}
		want := *x.Repro
		by := x.Worker
		switch {
		case b.Op == OpDerive && want.State == ReproCommissioned:
			want.State = ReproDeriving
		case b.Op == OpStage && want.State == ReproDeriving:
			want.State, want.Result, want.StagedAt = ReproStaged, y.Repro.Result, b.Stamp
		case b.Op == OpJudge && want.State == ReproStaged:
			want.State, want.Verdict, want.Judge = ReproJudged, y.Repro.Verdict, b.By.Name
			by = b.By.Name
		default:
			return broken(b, "I13", "%s of block %d while it is %s", b.Op, x.ID, want.State)
		}
		x.Repro = &want
		if by != b.By.Name || !reflect.DeepEqual(x, y) {
			return broken(b, "I13", "block %d changed otherwise than by %s", x.ID, b.Op)
		}
	}
	if changed != 1 {
		return broken(b, "I13", "%d reproductions changed", changed)
	}
	return nil
}
