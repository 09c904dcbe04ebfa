package grant

import "reflect"

// parts are the pieces of a page that a command may change or must leave alone, with the invariant that a
// change by another command breaks.
var parts = []struct {
	name, invariant string
	get             func(*Page) any
	by              []Op // who may change it; a restore may change all
}{
	{"params", "I12", func(p *Page) any { return p.Params }, nil},
	{"grant", "I2", func(p *Page) any { return p.Grant }, []Op{OpAcquire, OpClear}},
	{"holder", "I2", func(p *Page) any { return p.Holder }, []Op{OpAcquire, OpClear, OpRelease}},
	{"grant_time", "I7", func(p *Page) any { return p.GrantTime }, []Op{OpAcquire, OpClear, OpRelease}},
	{"expiry", "I7", func(p *Page) any { return p.Expiry }, []Op{OpAcquire, OpClear, OpRelease, OpHeartbeat}},
	{"state", "I2", func(p *Page) any { return p.State }, []Op{OpAcquire, OpClear, OpRelease}},
	{"register", "I8", func(p *Page) any { return p.Register }, []Op{OpLand, OpFinish}},
	{"landing", "I8", func(p *Page) any { return p.Landing }, []Op{OpLand, OpFinish, OpAcquire, OpClear, OpRelease}},
	{"silent", "I9", func(p *Page) any { return p.Silent }, []Op{OpAcquire, OpClear, OpRelease}},
	{"ids", "I5", func(p *Page) any { return p.IDs }, []Op{OpIDs, OpLand, OpFinish, OpAcquire, OpClear, OpRelease}},
	{"queue", "I11", func(p *Page) any { return p.Queue }, []Op{OpPetition, OpTouch, OpWithdraw, OpAcquire}},
	{"offer", "I11", func(p *Page) any { return p.Offer }, []Op{OpPetition, OpWithdraw, OpAcquire, OpClear, OpRelease}},
	{"heartbeat", "I12", func(p *Page) any { return p.Heartbeat }, []Op{OpHeartbeat, OpAcquire, OpClear, OpRelease}},
	{"running", "I12", func(p *Page) any { return p.Running }, []Op{OpBegin, OpFinish, OpResolve, OpLand, OpAcquire, OpClear, OpRelease}},
	{"doubts", "I12", func(p *Page) any { return p.Doubts }, []Op{OpBegin, OpResolve, OpLand, OpAcquire, OpClear, OpRelease}},
	{"ended", "I12", func(p *Page) any { return p.Ended }, []Op{OpAcquire, OpClear, OpRelease}},
	{"blocks", "I13", func(p *Page) any { return p.Blocks }, []Op{OpBlock, OpCloseBlock, OpCommission, OpDerive, OpStage, OpJudge}},
}

// transition checks one revision against the one before.
func transition(before, after Revision) *Broken {
	a, b := before.page, after.page
	if a.Container != b.Container {
		return broken(b, "I14", "the page before is of %s", clip(a.Container, MaxName))
	}
	if b.Op == OpRestore {
		return restored(before, b)
	}
	if b.Rev != a.Rev+1 || b.Epoch != a.Epoch || b.PrevHash != before.hash {
		return broken(b, "I1", "it does not follow revision %d", a.Rev)
	}
	if b.Op == OpCreate {
		return broken(b, "I1", "created twice")
	}
	for _, part := range parts {
		if !reflect.DeepEqual(part.get(a), part.get(b)) && !has(part.by, b.Op) {
			return broken(b, part.invariant, "%s changed by %s", part.name, b.Op)
		}
	}
	for _, check := range []func(a, b *Page) *Broken{grants, times, landings, ends, fenced, identifiers, queues, blocks} {
		if broken := check(a, b); broken != nil {
			return broken
		}
	}
	return nil
}

func has[T comparable](all []T, one T) bool {
	for _, x := range all {
		if x == one {
			return true
		}
	}
	return false
}

// restored checks the first revision of a new epoch against what was left of the one before.
func restored(before Revision, b *Page) *Broken {
	a := before.page
	switch {
	case b.Rev <= a.Rev || b.Epoch <= a.Epoch || b.PrevHash != before.hash:
		return broken(b, "I1", "the new epoch does not follow revision %d", a.Rev)
	case b.Grant <= a.Grant || b.State != StateCleared:
		return broken(b, "I2", "a restore burns every number that was seen")
	case b.IDs.Next < a.IDs.Next || len(b.IDs.Free) > 0:
		return broken(b, "I5", "a restore gives identifiers out again")
	case b.Register.Seq < a.Register.Seq || b.Register.Seq == a.Register.Seq && b.Register.Head != a.Register.Head:
		return broken(b, "I8", "landings are gone")
	case !b.Silent.On:
		return broken(b, "I9", "a restore ends no silence")
	case b.Audit.Seen != a.Rev || b.Audit.SeenEpoch != a.Epoch:
		return broken(b, "I10", "the audit line is of another revision")
	}
	return nil
}

// grants checks numbers, sessions and states.
func grants(a, b *Page) *Broken {
	switch b.Op {
	case OpAcquire:
		switch {
		case b.State != StateHeld || b.Grant != a.Grant+1:
			return broken(b, "I2", "after grant %d it is %s under grant %d", a.Grant, b.State, b.Grant)
		case b.Holder.Agent != b.By.Name:
			return broken(b, "I2", "%s acquired for another", b.By.Name)
		case a.Holder != nil && a.Holder.Session == b.Holder.Session:
			return broken(b, "I2", "the session has grant %d", a.Grant)
		}
	case OpClear:
		if b.State != StateCleared || b.Grant != a.Grant+1 {
			return broken(b, "I2", "a clear of grant %d burns one number, not %d", a.Grant, b.Grant-a.Grant)
		}
	case OpRelease:
		if b.State != StateFree || b.Grant != a.Grant {
			return broken(b, "I2", "a release of grant %d leaves it %s under %d", a.Grant, b.State, b.Grant)
		}
	}
	return nil
}

// ofHolder are the commands of whoever holds the grant.
var ofHolder = []Op{OpHeartbeat, OpIDs, OpBlock, OpCloseBlock, OpLand, OpRelease, OpBegin, OpFinish, OpResolve, OpCommission}

// late are those of them that may come after the expiry.
var late = []Op{OpRelease, OpFinish}

// times checks what clocks may do: refuse, and make somebody eligible.
func times(a, b *Page) *Broken {
	now := b.Stamp.T
	if has(ofHolder, b.Op) {
		invariant := "I12"
		if b.Op == OpLand || b.Op == OpFinish {
			invariant = "I3"
		}
		switch {
		case a.State != StateHeld || a.Holder.Agent != b.By.Name:
			return broken(b, invariant, "%s does not hold grant %d", b.By.Name, a.Grant)
		case !has(late, b.Op) && now >= a.Expiry:
			return broken(b, invariant, "grant %d had expired at %s", a.Grant, a.Expiry)
		}
	}
	switch b.Op {
	case OpAcquire:
		if a.State == StateHeld && now < a.Expiry {
			return broken(b, "I7", "taken over before its expiry at %s", a.Expiry)
		}
		if b.GrantTime != now || b.Heartbeat != now {
			return broken(b, "I7", "granted at %s, stamped %s", b.GrantTime, now)
		}
	case OpClear:
		if a.State != StateHeld || now < a.Expiry {
			return broken(b, "I7", "cleared before its expiry")
		}
	case OpHeartbeat:
		if b.Expiry < a.Expiry || b.Heartbeat < a.Heartbeat {
			return broken(b, "I7", "the expiry falls from %s to %s", a.Expiry, b.Expiry)
		}
		if b.Expiry > a.Expiry && b.Expiry > now.Add(a.Params.Extension.Duration()) {
			return broken(b, "I7", "extended by more than %s", a.Params.Extension.Duration())
		}
	}
	return nil
}

// moved tells whether a revision landed.
func moved(a, b *Page) bool { return a.Register != b.Register }

// landings checks the register.
func landings(a, b *Page) *Broken {
	if b.Op != OpLand && b.Op != OpFinish {
		return nil
	}
	if !moved(a, b) {
		if b.Op == OpLand || !reflect.DeepEqual(a.Landing, b.Landing) {
			return broken(b, "I4", "a landing that moves no head")
		}
		return nil
	}
	l, n := b.Landing, int64(1)
	if a.Landing != nil {
		n = a.Landing.N + 1
	}
	switch {
	case b.Register.Seq < a.Register.Seq:
		return broken(b, "I8", "of %d landings %d are left", a.Register.Seq, b.Register.Seq)
	case l == nil || l.Base != a.Register.Head || b.Register.Seq != a.Register.Seq+1 || l.N != n:
		return broken(b, "I4", "it does not land on the register's head")
	case l.New != HeadAfter(b.Container, l.Base, b.Register.Seq, b.Grant, l.ID, l.SHA256):
		return broken(b, "I4", "the new head is not that of the landing")
	case b.Op == OpLand && l.ID != b.Nonce || b.Op == OpFinish && (a.Running == nil || l.ID != a.Running.ID):
		return broken(b, "I4", "the landing is not this command's")
	}
	return nil
}

// ends checks how a grant ended, and silences.
func ends(a, b *Page) *Broken {
	how := How("")
	switch {
	case b.Op == OpRelease:
		how = HowReleased
		switch {
		case a.Landing == nil || a.Landing.New != a.Register.Head:
			return broken(b, "I6", "grant %d has landed nothing", a.Grant)
		case len(a.IDs.Leases) > 0:
			return broken(b, "I6", "%d leases are open", len(a.IDs.Leases))
		}
	case b.Op == OpClear:
		how = HowCleared
		if x := b.Audit; x.Grant != a.Grant || x.Seen != a.Rev || x.SeenEpoch != a.Epoch || x.Holder == nil || *x.Holder != *a.Holder {
			return broken(b, "I10", "the audit line is of another grant")
		}
	case b.Op == OpAcquire && a.State == StateHeld:
		how = HowTakenOver
	}
	want := a.Silent
	switch {
	case how == HowReleased:
		want = Silence{}
	case how != "" && !a.Silent.On:
		want = Silence{On: true, SinceGrant: a.Grant, Why: how}
	}
	if b.Silent != want {
		return broken(b, "I9", "silent: %t since grant %d, wanted: %t since grant %d", b.Silent.On, b.Silent.SinceGrant, want.On, want.SinceGrant)
	}
	switch e := b.Ended; {
	case how == "":
		if !reflect.DeepEqual(a.Ended, b.Ended) {
			return broken(b, "I12", "ended changed, and no grant ended")
		}
	case e == nil || e.How != how || e.Grant != a.Grant || e.Rev != b.Rev || e.Holder != *a.Holder || e.By != b.By:
		return broken(b, "I12", "the end of grant %d is not recorded", a.Grant)
	case b.Landing != nil || b.Running != nil:
		return broken(b, "I3", "what belonged to grant %d is still there", a.Grant)
	}
	return nil
}

// fenced checks fenced commands: whatever was running ends, or is in doubt; nothing goes without a word.
func fenced(a, b *Page) *Broken {
	doubts := list(a.Doubts)
	if r := a.Running; r != nil && b.Running != a.Running && b.Op != OpFinish && !reflect.DeepEqual(a.Running, b.Running) {
		doubts = append(doubts, Doubt{Command: r.Command, Grant: a.Grant, ID: r.ID, Started: r.Started})
	}
	if b.Op == OpResolve {
		if len(b.Doubts) != len(doubts)-1 || b.Note == "" {
			return broken(b, "I12", "a doubt is settled by name, with a reason")
		}
		i := 0
		for i < len(b.Doubts) && b.Doubts[i] == doubts[i] {
			i++
		}
		doubts = append(doubts[:i], doubts[i+1:]...)
	}
	if !reflect.DeepEqual(list(b.Doubts), doubts) {
		return broken(b, "I12", "doubts changed without a word")
	}
	switch r := b.Running; {
	case b.Op == OpBegin:
		if r == nil || r.ID != b.Nonce || len(b.Doubts) > 0 {
			return broken(b, "I12", "the fenced command is not this one")
		}
	case b.Op == OpFinish:
		if a.Running == nil || r != nil {
			return broken(b, "I12", "no fenced command has ended")
		}
	case r != nil && !reflect.DeepEqual(a.Running, r):
		return broken(b, "I12", "running changed by %s", b.Op)
	}
	return nil
}
