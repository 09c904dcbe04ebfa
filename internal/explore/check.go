package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
)

// Violation is a breach of what the lock promises, and the schedule that leads to it.
type Violation struct {
	Kind     string // one of the kinds below
	Detail   string
	Schedule []Step
}

func (v *Violation) Error() string { return v.Kind + ": " + v.Detail }

// The kinds of violation.
const (
	Overwritten = "lock overwritten"      // a rename replaced a lock
	LiveTaken   = "live lock taken"       // G2: a live holder's lock left its name, and not by a named residual
	Unlinked    = "lock unlinked"         // a live holder's lock was removed under its name
	NameTaken   = "live name taken"       // what a live process has beside the lock was touched by another
	Unfenced    = "commit without lock"   // a commit landed although its lock was gone before the fence
	RecordLost  = "record lost"           // G1: a record that was committed or acknowledged is not there
	RecordTwice = "record twice"          // G1: a record is there more than once
	Failed      = "unexpected error"      // an error other than one that says who is in the way
	Stuck       = "stuck"                 // everybody waits, for nothing that the specification says blocks
	SelfWait    = "waits for itself"      // a process waits for a lock of its own that it has done with
	NotAtOnce   = "next writer must wait" // the clean writer afterwards is not through at once
	LeftOver    = "left beside the log"   // something is left that the specification does not name
	tooLarge    = "too large"             // the search, for its limit
)

func violation(kind, format string, args ...any) *Violation {
	return &Violation{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// lock reads a lock's content; nil when it is unreadable.
func (x *Explorer) lock(data string) *format.Lock {
	l, ok := x.locks[data]
	if !ok {
		l, _ = format.ParseLock([]byte(data))
		x.locks[data] = l
	}
	return l
}

// holder returns the live actor whose hold the lock is of: one that is publishing it, or has it in
// hand. A lock of a hold that is over, or of a dead process, has none: -1.
func (x *Explorer) holder(s *state, data string, id int) int {
	if l := x.lock(data); l != nil {
		i := x.drawer(l.Token)
		if i < 0 || s.isDead(i) || strings.Contains(s.at[i].at.local.ended, l.Token) {
			return -1
		}
		return i
	}
	if maker := id / 1000; s.disk.inode(id).writing && !s.isDead(maker) {
		return maker
	}
	return -1
}

// check judges a step that has just been taken: o by the actor, with the worlds before and after. It
// may set marks in after.
func (x *Explorer) check(before, after *state, actor int, o op, r obs) *Violation {
	if r.errno == syscall.EEXIST && (o.name == lockName || o.to == lockName) {
		if step := before.at[actor].at.local.step; step == seam.BreakMismatch || step == seam.ReleaseMismatch {
			x.count("a moved lock dropped, its name taken, at " + x.place(step, actor))
		}
	}
	if r.errno != 0 {
		return nil //nolint:nilerr // what failed has changed nothing
	}
	switch o.kind {
	case opOpen, opCreate, opLink, opRename, opRemove:
		if m := x.maker(o.name); m >= 0 && x.drv.actors[m].pid != x.drv.actors[actor].pid && !before.isDead(m) {
			return violation(NameTaken, "%s: %v, which is %s's, and %s is alive", x.name(actor), o, x.name(m), x.name(m))
		}
	}
	if o.kind == opRename && o.to == lockName && before.disk.id(lockName) >= 0 {
		return violation(Overwritten, "%s: %v", x.name(actor), o)
	}
	if o.kind == opRename && o.to == logName {
		return x.checkCommit(before, after, actor)
	}
	if o.name == lockName && (o.kind == opRename || o.kind == opRemove) {
		return x.checkTaking(before, after, actor, o)
	}
	return nil
}

// checkTaking judges a lock's leaving its name.
func (x *Explorer) checkTaking(before, after *state, actor int, o op) *Violation {
	id := before.disk.id(lockName)
	data := before.disk.inode(id).data
	forced := x.drv.actors[actor].job == forces
	holder := x.holder(before, data, id)
	what := x.lockMark(data, id)
	n := before.at[actor]
	if holder < 0 || holder == actor {
		if forced {
			after.marks.taken = put(after.marks.taken, mark{what: what, cause: ForcedOut})
		}
		return nil
	}
	if o.kind == opRemove {
		return violation(Unlinked, "%s: %v, and %s holds it", x.name(actor), o, x.name(holder))
	}
	expected := data == n.seen.data && n.seen.there
	cause := none
	switch {
	case forced && expected:
		cause = ForcedOut
	case forced:
		cause = ByUnlock
	case n.at.local.step == seam.BreakConfirmed:
		if _, ok := get(before.marks.taken, x.lockMark(n.seen.data, n.seen.id)); ok && !expected {
			cause = ByBreak
		}
	default:
		_, own := x.takenFrom(before, actor)
		if _, ended := get(before.marks.taken, x.lockMark(n.seen.data, n.seen.id)); own || ended {
			cause = ByRelease
		}
	}
	if cause == none {
		return violation(LiveTaken, "%s: %v after %s, and %s holds it", x.name(actor), o, n.at.local.step, x.name(holder))
	}
	h := before.at[holder]
	fenced := h.looked == seam.CommitTempWritten &&
		(h.at.local.step == seam.CommitTempWritten || h.at.local.step == seam.CommitFenced)
	after.marks.taken = put(after.marks.taken, mark{what: what, cause: cause, fenced: fenced})
	x.count("a live holder's lock moved, " + cause.String())
	return nil
}

// checkCommit judges the log's being replaced.
func (x *Explorer) checkCommit(before, after *state, actor int) *Violation {
	old, _ := before.disk.content(logName)
	data, _ := after.disk.content(logName)
	had, has := records(old), records(data)
	for i, r := range has {
		if slices.Contains(has[:i], r) {
			return violation(RecordTwice, "%s commits %q twice", x.name(actor), r)
		}
	}
	lockData, there := before.disk.content(lockName)
	l := x.lock(lockData)
	isLate := !there || l == nil || l.Token != before.at[actor].at.local.token
	taken, wasTaken := x.takenFrom(before, actor)
	unfenced := isLate && (!wasTaken || !taken.fenced)
	if isLate && !unfenced {
		x.count("commit after the lock was lost inside fence to rename, " + taken.cause.String())
		mine := records(before.at[actor].read)
		for _, r := range has {
			if !slices.Contains(mine, r) {
				after.marks.late = put(after.marks.late, mark{what: r, cause: taken.cause})
			}
		}
	}
	for _, r := range had {
		if slices.Contains(has, r) {
			continue
		}
		cause := none
		how := "dropped by a commit whose lock was lost"
		if unfenced || before.at[actor].log == before.disk.id(logName) {
			// No residual: the look before the rename has shown, or would have shown, the record.
		} else if isLate {
			cause = taken.cause
		} else if m, ok := get(after.marks.late, r); ok {
			cause, how = m.cause, "committed after the lock was lost, and dropped by the next"
		} else if wasTaken && taken.fenced {
			cause, how = taken.cause, "dropped by a commit whose lock was lost and came back"
		}
		if cause == none {
			return violation(RecordLost, "%s drops %q", x.name(actor), r)
		}
		x.count("a record " + how + ", " + cause.String())
		after.marks.gone = put(after.marks.gone, mark{what: r, cause: cause})
	}
	if unfenced {
		return violation(Unfenced, "%s commits, and its lock was gone before its fence", x.name(actor))
	}
	return nil
}

// checkRecords judges the log when all is over: every acknowledged record is there.
func (x *Explorer) checkRecords(s *state) *Violation {
	data, _ := s.disk.content(logName)
	has := records(data)
	for i, r := range has {
		if slices.Contains(has[:i], r) {
			return violation(RecordTwice, "%q", r)
		}
	}
	for i, a := range x.drv.actors {
		n := s.at[i]
		if a.job != writes || n.at.op.kind != opEnd {
			continue
		}
		for k := 1; k <= n.at.op.n; k++ {
			// Only the last outcome is still known; work done again is checked when it is done.
			if r := strings.Repeat(a.name, k); k == n.at.op.n && n.at.local.outcome == done && !slices.Contains(has, r) {
				if _, ok := get(s.marks.gone, r); !ok {
					return violation(RecordLost, "%q was acknowledged", r)
				}
			}
		}
	}
	return nil
}

// drawer is the actor that drew a token, or -1: dice begin all that they give with it.
func (x *Explorer) drawer(token string) int {
	if len(token) < 8 {
		return -1
	}
	n, err := strconv.ParseUint(token[:8], 16, 32)
	if err != nil || n < 1 || int(n) > len(x.drv.actors) {
		return -1
	}
	return int(n) - 1
}

// place says at which step, and in whose break.
func (x *Explorer) place(step seam.Step, actor int) string {
	if strings.HasPrefix(string(step), "break:") {
		if x.drv.actors[actor].job == forces {
			return string(step) + " of the unlock"
		}
		return string(step) + " of a writer"
	}
	return string(step)
}

func records(data string) []string { return strings.Fields(data) }

func (x *Explorer) name(actor int) string { return x.drv.actors[actor].name }
