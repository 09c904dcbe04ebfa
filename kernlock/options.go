package kernlock

import (
	"fmt"
	"time"
)

// Policy says how long a waiter waits and what it is told to do when the
// wait runs out. The words are those of the holder record.
type Policy string

const (
	// Mutation is the policy of a change that a person or agent asked for:
	// 5 s, then stop and have the holder inspected before a retry by hand.
	Mutation Policy = "mutation"
	// Monitor is the policy of a scheduled poll: 1 s, then leave it to the
	// next scheduled poll.
	Monitor Policy = "monitor"
	// SingleFlight is the policy of work that need not be done twice: no
	// wait; a held lock is an ordinary result (a Duplicate) and never an
	// incident.
	SingleFlight Policy = "single_flight"
)

// MaxTimeout bounds every wait. There is no unbounded wait: a waiter that is
// never told who is in the way is what this package exists to prevent.
const MaxTimeout = 24 * time.Hour

// TryOnce as Options.Timeout makes one attempt and then times out, with an
// incident, as a wait that ran its whole time does. It differs from
// SingleFlight, which records nothing.
const TryOnce = time.Nanosecond

// ParsePolicy returns the policy named s.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case Mutation, Monitor, SingleFlight:
		return p, nil
	}
	return "", fmt.Errorf("%w: policy %q is not one of mutation, monitor, single_flight", ErrUsage, s)
}

// Timeout is how long an acquire under p waits unless Options.Timeout says
// otherwise.
func (p Policy) Timeout() time.Duration {
	switch p {
	case Monitor:
		return time.Second
	case SingleFlight:
		return 0
	default:
		return 5 * time.Second
	}
}

// RetryMode is the incident's word for what the waiter may do next.
func (p Policy) RetryMode() string {
	switch p {
	case Monitor:
		return "next_scheduled_poll_after_holder_inspection"
	case SingleFlight:
		return "skip_duplicate_attempt"
	default:
		return "manual_after_holder_inspection"
	}
}

// Options says how a target is locked. The zero value works: an exclusive
// lock under Mutation, beside the target, with a holder record.
type Options struct {
	// Policy is Mutation when empty.
	Policy Policy

	// Timeout replaces the policy's wait: more than 0, at most MaxTimeout.
	// 0 keeps the policy's own. It may not be set under SingleFlight, which
	// never waits.
	Timeout time.Duration

	// Shared takes a shared lock: any number of shared holders at once, and
	// no exclusive one. A shared holder writes no record, and needs only
	// read access to a lock file that exists.
	Shared bool

	// Exact makes the named file itself the lock file, as flock(1) has it,
	// instead of the sibling <target>.lock. A record is written into it only
	// when its name ends in ".lock".
	Exact bool

	// NoRecord writes no holder record. Waiters then learn no more than the
	// kernel tells.
	NoRecord bool

	// Agent names who holds: when empty, STILE_AGENT, else LOOPX_AGENT_ID,
	// else "unknown".
	Agent string

	// Operation says what the hold is for: when empty, the policy's name.
	// Agent and Operation are cleaned to at most 128 of A-Z a-z 0-9 . _ : @ -
	// (docs/format.md, Labels).
	Operation string
}

// check fills in the defaults and refuses what no lock can be taken with.
func (o Options) check() (Options, error) {
	if o.Policy == "" {
		o.Policy = Mutation
	}
	if _, err := ParsePolicy(string(o.Policy)); err != nil {
		return o, err
	}
	switch {
	case o.Timeout < 0:
		return o, fmt.Errorf("%w: timeout %v is negative", ErrUsage, o.Timeout)
	case o.Timeout > MaxTimeout:
		return o, fmt.Errorf("%w: timeout %v is over %v", ErrUsage, o.Timeout, MaxTimeout)
	case o.Timeout > 0 && o.Policy == SingleFlight:
		return o, fmt.Errorf("%w: single_flight never waits, so it takes no timeout", ErrUsage)
	case o.Timeout == 0:
		o.Timeout = o.Policy.Timeout()
	}
	return o, nil
}
