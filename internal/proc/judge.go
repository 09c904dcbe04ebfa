package proc

import "math"

// Judge says whether the process that a record names is dead, alive or unknown. near is a path on the
// filesystem where the record lies; it is looked at for the restart rule only. Judge never changes
// anything, never waits, and may be called from any goroutine.
//
// In this order:
//
//	host name given and not ours          Unknown   pid not probed
//	pid outside 1…2³¹−1                   Unknown   pid not probed
//	proc of another pid namespace         Unknown   pid not probed
//	proc of another boot                  Unknown   pid not probed; Dead under the restart rule
//	the probe says no such process        Dead
//	a zombie with no other task           Dead      with proc only
//	start time differs                    Dead      with proc only
//	anything else                         Alive     permission denied included
//
// Restart rule: the record names our host, both sides are in the initial pid namespace, both boot ids
// are whole and differ, and near is on a filesystem known to be local. Then the machine that wrote the
// record is this one, and it has been started again since.
//
// Without proc, only the host name and the probe count, as the specification of the lock file has it: a
// zombie or a reused pid answers the probe and is alive.
//
// With a partial proc the rule is: what the record carries must be checked, and what it lacks is not
// compared. Member by member:
//
//   - pid_ns in the record, ours unknown (no /proc): Unknown. It cannot be checked.
//   - pid_ns not in the record: nothing else can tell whether the pid is a number of this namespace, so
//     Unknown, whether this process is in the initial namespace or not: neither sees the writer under
//     the writer's number. A record that a Windows or Darwin program left on a folder shared with a
//     Linux guest of the same host name looks like this. Only a system without pid namespaces goes on.
//   - boot_id in the record, ours unknown: Unknown. It cannot be checked.
//   - boot_id not in the record (a service whose /proc hides everything but processes): the host name
//     stands for it, as for a record without proc, and the probe and the zombie row decide. Start times
//     then count only where they do not count from boot.
//   - time_ns on one side only, or on neither although the kernel has time namespaces: start times do
//     not count.
//   - start_time not in the record, or not to be had from here (hidepid, a /proc of another namespace):
//     not compared. A reused pid is then alive.
//   - an empty proc has no pid_ns, and is judged so.
func Judge(h Holder, near string) Judgement { return system.judge(h, near) }

// facts is everything that Judge asks the system, so that the whole table can be tested with evidence
// from machines that are not there.
type facts struct {
	hostName func() string                  // "" when it cannot be had
	own      func() identity                // this process
	probe    func(pid int) answer           // does the process exist
	look     func(pid int) (sighting, bool) // what can be seen of it; false when it cannot be seen
	alone    func(pid int) bool             // proven to have no task but its first
	local    func(path string) bool         // is path on a filesystem known to be local
}

// system is the machine we run on.
var system = facts{
	hostName: hostName,
	own:      func() identity { return own() },
	probe:    probe,
	look:     look,
	alone:    alone,
	local: func(path string) bool {
		local, _, err := FilesystemLocal(path)
		return err == nil && local
	},
}

// answer is what a probe says of a pid.
type answer uint8

const (
	noAnswer    answer = iota // the probe failed and proves nothing
	exists                    // some process has this pid
	denied                    // some process has it, and is not ours to signal
	gone                      // no process has it
	unsupported               // this system has no probe
)

// sighting is what the system shows of a process.
type sighting struct {
	start  uint64 // as in ID.StartTime; 0 when not shown
	zombie bool   // its first task has exited; others may run
}

func (f *facts) judge(h Holder, near string) Judgement {
	here := f.hostName()
	if h.Host != "" && h.Host != here {
		return Judgement{Unknown, OtherHost}
	}
	// Before any rule that can say Dead: no process ever had such a pid, so the record proves nothing.
	if h.PID < 1 || h.PID > math.MaxInt32 {
		return Judgement{Unknown, ImpossiblePID}
	}
	pid := int(h.PID)
	if h.Proc == nil {
		return f.answerFor(f.probe(pid))
	}

	rec, me := *h.Proc, f.own()
	switch {
	case rec.PidNS != 0 && me.PidNS != 0:
		if rec.PidNS != me.PidNS {
			return Judgement{Unknown, OtherPIDNamespace}
		}
	case rec.PidNS != 0 || !me.onePIDSpace:
		return Judgement{Unknown, PIDNamespaceUnknown}
	}
	switch {
	case rec.BootID == "" || rec.BootID == me.BootID:
	case me.BootID == "":
		return Judgement{Unknown, BootUnknown}
	default:
		// An inode number of another boot's namespace can equal ours by chance, unless it is the initial
		// one, whose number the kernel fixes. A damaged boot id differs too, and proves no restart.
		if h.Host != "" && me.initial && rec.PidNS != 0 && wholeBootID(rec.BootID) && f.local(near) {
			return Judgement{Dead, Restarted}
		}
		return Judgement{Unknown, OtherBoot}
	}

	first := f.probe(pid)
	if first == gone || first == unsupported {
		return f.answerFor(first)
	}
	seen, ok := f.look(pid)
	if !ok {
		// Hidden from us, or ended since the probe. Only the probe can tell which.
		return f.answerFor(f.probe(pid))
	}
	if seen.zombie && f.alone(pid) {
		return Judgement{Dead, Zombie}
	}
	if startsComparable(rec, me) && seen.start != 0 && seen.start != rec.StartTime {
		return Judgement{Dead, PIDReused}
	}
	if seen.zombie {
		// Or its parent has reaped it since, and there was no list of tasks to look at.
		return f.answerFor(f.probe(pid))
	}
	return f.answerFor(first)
}

func (f *facts) answerFor(a answer) Judgement {
	switch a {
	case gone:
		return Judgement{Dead, NoSuchProcess}
	case exists:
		return Judgement{Alive, Running}
	case denied:
		return Judgement{Alive, Permission}
	case unsupported:
		return Judgement{Unknown, UnsupportedSystem}
	}
	return Judgement{Alive, ProbeFailed}
}

// startsComparable reports whether the recorded start time and one read here are on one scale.
func startsComparable(rec ID, me identity) bool {
	if rec.StartTime == 0 {
		return false
	}
	if rec.TimeNS != me.TimeNS || rec.TimeNS == 0 && !me.oneClock {
		return false
	}
	if me.ticksFromBoot {
		return rec.BootID != "" && rec.BootID == me.BootID
	}
	return true
}

// wholeBootID reports whether s has the shape the kernel gives a boot id: a lower-case UUID.
func wholeBootID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
