package proc

import (
	"os"
	"sync"
)

// ID is the optional "proc" member of a record: what tells one process from every other one that ever
// had its pid. What could not be learnt is zero and absent. An ID with nothing in it is not the same as
// no ID: it says that the writer looked and found nothing, and Judge then keeps away from the pid where
// pids can mean several things.
type ID struct {
	// BootID names one start of one kernel: Linux boot_id. Absent on systems that have no such name.
	BootID string `json:"boot_id,omitempty"`
	// PidNS and TimeNS are the inode numbers of the pid and time namespaces; Linux only.
	PidNS  uint64 `json:"pid_ns,omitempty"`
	TimeNS uint64 `json:"time_ns,omitempty"`
	// StartTime is when the process began. Linux: clock ticks since boot, field 22 of its stat file.
	// Windows: creation time in units of 100 ns since 1601. Darwin: microseconds since 1970, as noted
	// down at the start and never adjusted. Absent elsewhere: the other systems compute it from a boot
	// time that moves with the clock, so that a live process would seem to be another one.
	StartTime uint64 `json:"start_time,omitempty"`
}

// Holder is a process as a record names it. Every field may be wrong, or hostile.
type Holder struct {
	PID  int64
	Host string // empty: the record names no host, and is judged as this host's
	Proc *ID    // nil: the record has no proc member
}

// Verdict says what is known of a recorded process. Only Dead lets anyone past.
type Verdict uint8

// The verdicts.
const (
	Unknown Verdict = iota // nothing can be said from here
	Alive                  // something answers to the pid, and nothing proves that it is another process
	Dead                   // proven
)

func (v Verdict) String() string {
	switch v {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	}
	return "unknown"
}

// Reason is the evidence that decided a Judgement, as a stable code.
type Reason string

// The reasons.
const (
	// With Unknown. The pid was not probed.
	OtherHost           Reason = "other_host"
	ImpossiblePID       Reason = "impossible_pid"        // outside 1…2³¹−1
	OtherPIDNamespace   Reason = "other_pid_namespace"   // the number means another process here
	PIDNamespaceUnknown Reason = "pid_namespace_unknown" // the record or this process cannot name its own
	OtherBoot           Reason = "other_boot"            // and the restart rule does not apply
	BootUnknown         Reason = "boot_unknown"          // the record names a boot, this process cannot
	UnsupportedSystem   Reason = "unsupported_system"    // no way to probe a process here

	// With Dead.
	NoSuchProcess Reason = "no_such_process"
	Zombie        Reason = "zombie"
	PIDReused     Reason = "pid_reused"
	Restarted     Reason = "restarted"

	// With Alive.
	Running     Reason = "running"
	Permission  Reason = "permission"   // it exists; this user may not signal it
	ProbeFailed Reason = "probe_failed" // the probe failed without saying that the process is gone
)

// Judgement is a verdict and what it rests on.
type Judgement struct {
	Verdict Verdict
	Reason  Reason
}

// identity is an ID of this process together with what the ID alone does not say.
type identity struct {
	ID
	// initial: proven to be in the namespace whose pids are the machine's own.
	initial bool
	// onePIDSpace: this system has no pid namespaces, so a pid means one process to everybody on it.
	onePIDSpace bool
	// oneClock: this system has no time namespaces.
	oneClock bool
	// ticksFromBoot: start times count from boot, and mean nothing beside those of another one.
	ticksFromBoot bool
}

// own is looked up once, at the first use: a running process cannot leave its pid namespace, its boot
// or its start behind.
var own = sync.OnceValue(ownIdentity)

// Self returns this process as a record should name it. It costs a system call for the host name, which
// may change while the process runs; the rest is remembered. The ID is the caller's to keep.
func Self() Holder {
	id := own().ID
	return Holder{PID: ownPID, Host: hostName(), Proc: &id}
}

// ownPID is asked for once: a Go program cannot fork without becoming another.
var ownPID = int64(os.Getpid())

// InInitialPIDNamespace reports whether this process is proven to be in the namespace whose pids are the
// machine's own. On Linux that takes the kernel's fixed inode number for it and a /proc that shows our
// own namespace. Darwin and Windows have one namespace only. False when it cannot be known.
func InInitialPIDNamespace() bool { return own().initial }
