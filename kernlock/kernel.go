package kernlock

import "github.com/stile-lock/stile/internal/proc"

// kernelFacts is what the kernel shows of one lock file, without the lock
// being taken.
type kernelFacts struct {
	state   KernelState
	shared  bool
	pids    []int // who took it, as this pid namespace numbers them
	waiters int   // -1: not known
	// whole says that every holder would be among pids: only then does the
	// absence of a pid mean anything.
	whole bool
}

var noFacts = kernelFacts{state: KernelUnknown, waiters: -1}

// attribute says whether the record r, found while the lock was held, is the
// present holder's.
func (k *kernelFacts) attribute(r *Record, near string) HolderState {
	switch {
	case r == nil:
		return HolderUnproven
	case !r.ReleasedAt.IsZero():
		return Previous
	case len(k.pids) == 0:
		return HolderUnproven
	case r.liveness(near) == ForeignHost:
		// A pid of another host that happens to be among ours proves nothing.
		return HolderUnproven
	case !ownNamespace(r):
		return HolderUnproven
	}
	for _, pid := range k.pids {
		if int64(pid) != r.PID {
			continue
		}
		// The number is the same; is it the same process? A dead writer can
		// be: what inherited the lock from it holds on under its number.
		switch j := proc.Judge(r.identity(), near); {
		case j.Reason == proc.Restarted:
			return Previous
		case j.Reason == proc.PIDReused, j.Verdict == proc.Unknown:
			return HolderUnproven
		}
		return Current
	}
	if k.whole {
		return Previous
	}
	return HolderUnproven
}
