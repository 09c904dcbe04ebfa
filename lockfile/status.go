package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stile-lock/stile/internal/proc"
)

// HolderState is what is known of the process that a lock names.
type HolderState string

// The states. Only a dead holder's lock is ever broken without force.
const (
	Alive      HolderState = "alive"
	Dead       HolderState = "dead" // provably
	OtherHost  HolderState = "on another host"
	Unreadable HolderState = "unreadable" // the lock is empty, damaged or larger than 64 KiB
	Unknown    HolderState = "unknown"    // another pid namespace or boot, or no possible pid
)

// Holder is the process that a lock names. All but State, Reason and Age is as the lock file says it,
// whole and unchecked: use CapForDisplay before showing it.
type Holder struct {
	PID        int64
	Hostname   string // empty: an earlier build's lock, judged as this host's
	AcquiredAt string
	State      HolderState
	Reason     string // the evidence for State, a code of package internal/proc; empty when unreadable
	// Age is the time since the later of AcquiredAt and the lock file's own time, never below 0. It
	// is for people; nothing is decided by it.
	Age time.Duration
}

// String describes the holder in at most about 150 characters.
func (h Holder) String() string {
	if h.State == Unreadable {
		return fmt.Sprintf("nobody known: it is empty or unreadable, for %s", showAge(h.Age))
	}
	s := fmt.Sprintf("pid %d", h.PID)
	if h.Hostname != "" {
		s += " on " + CapForDisplay(h.Hostname)
	}
	s += fmt.Sprintf(" (%s), for %s", h.State, showAge(h.Age))
	if h.AcquiredAt != "" {
		s += ", acquired at " + CapForDisplay(h.AcquiredAt)
	}
	return s
}

// State is a lock as it was found.
type State struct {
	Path     string // the guarded file, with links resolved
	LockPath string
	Locked   bool   // a lock file is there
	Holder   Holder // zero when not Locked
}

// Stale reports whether the lock has been held longer than StaleAfter, which is worth telling somebody.
func (s State) Stale() bool { return s.Locked && s.Holder.Age > StaleAfter }

// Line is the one line about a held lock for reports that are cut off at some length. It leads with
// the command that clears the lock (words only, such as "stile dispatch unlock") and the holder's pid.
// With a command of up to 21 characters it has at most 362 characters, or 346 with a pid of seven
// digits: every other part is bounded.
func (s State) Line(command string) string {
	h := s.Holder
	who := fmt.Sprintf("pid %d", h.PID)
	if h.State == Unreadable {
		who = "pid unreadable"
	}
	line := fmt.Sprintf("%s: lock held by %s", command, who)
	if h.Hostname != "" {
		line += " on " + CapForDisplay(h.Hostname)
	}
	line += fmt.Sprintf(" (%s) for %s", h.State, showAge(h.Age))
	if h.AcquiredAt != "" {
		line += ", acquired at " + CapForDisplay(h.AcquiredAt)
	}
	if h.State != Dead {
		line += fmt.Sprintf("; add --force %s", whenToForce)
	}
	return line
}

// Status reads the lock of the guarded file at path. It changes nothing, and works on a read-only
// folder. Of the options it uses none but Seams.
//
// A kernel lock's file is the error ErrKernelLock; what is no regular file is ErrNotLockFile.
func Status(path string, o Options) (State, error) {
	l, err := find(path, o)
	if err != nil {
		return State{}, err
	}
	r, err := l.look()
	if errors.Is(err, fs.ErrNotExist) {
		return State{Path: l.path, LockPath: l.name}, nil
	}
	if err != nil {
		return State{}, err
	}
	if r.kernel {
		return State{}, l.kernelLock()
	}
	return l.state(r), nil
}

// state judges a lock that was read.
func (l *lock) state(r *reading) State {
	st := State{Path: l.path, LockPath: l.name, Locked: true}
	h := &st.Holder
	since := r.info.ModTime
	if r.lock == nil {
		h.State = Unreadable
	} else {
		h.PID, h.Hostname, h.AcquiredAt = r.lock.PID, r.lock.Host, r.lock.AcquiredAt
		if t, ok := r.lock.Time(); ok && t.After(since) {
			since = t
		}
		j := l.judge(r)
		h.Reason = string(j.Reason)
		switch {
		case j.Verdict == proc.Dead:
			h.State = Dead
		case j.Verdict == proc.Alive:
			h.State = Alive
		case j.Reason == proc.OtherHost:
			h.State = OtherHost
		default:
			h.State = Unknown
		}
	}
	h.Age = max(0, l.s.Clock.Now().Round(0).Sub(since))
	return st
}

// judge says whether the holder that a readable lock names is dead.
func (l *lock) judge(r *reading) proc.Judgement {
	return l.s.Judge(proc.Holder{PID: r.lock.PID, Host: r.lock.Host, Proc: r.lock.Proc}, l.dir)
}

// dead reports whether the lock may be broken: it parses and its holder is provably dead.
func (l *lock) dead(r *reading) bool {
	if r.lock == nil {
		return false
	}
	v := l.judge(r).Verdict
	r.alive = v == proc.Alive
	return v == proc.Dead
}

// held makes the error for a lock that stands in the way.
func (l *lock) held(r *reading, waited time.Duration, cause error) *HeldError {
	st := l.state(r)
	return &HeldError{
		State: st, Waited: waited, Hint: l.unlockCommand(st.Holder.State != Dead), cause: cause,
	}
}
