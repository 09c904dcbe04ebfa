package proc

import (
	"os"

	"golang.org/x/sys/windows"
)

// ownIdentity has a start time only. Windows has no name for a boot that is sure to differ from the
// last one's, and needs none: a creation time is a date, so it tells boots apart as well.
func ownIdentity() identity {
	me := identity{initial: true, onePIDSpace: true, oneClock: true}
	me.StartTime, _ = creationTime(windows.CurrentProcess())
	return me
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// StartTime returns when the process pid began, in the unit of ID.StartTime; false when that cannot be
// seen, which never means that there is no such process.
func StartTime(pid int) (ticks uint64, ok bool) {
	s, ok := look(pid)
	return s.start, ok
}

// ProcShowsUs is about /proc, which this system does not have.
func ProcShowsUs() bool { return false }
