package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownIdentity has a start time only. It is a date, so it tells boots apart as well.
func ownIdentity() identity {
	me := identity{initial: true, onePIDSpace: true, oneClock: true}
	me.StartTime, _ = StartTime(os.Getpid())
	return me
}

// StartTime returns when the process pid began, in the unit of ID.StartTime; false when that cannot be
// seen, which never means that there is no such process.
func StartTime(pid int) (ticks uint64, ok bool) {
	if pid < 1 {
		return 0, false
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return 0, false
	}
	t := info.Proc.P_starttime
	if t.Sec <= 0 {
		return 0, false
	}
	return uint64(t.Sec)*1_000_000 + uint64(t.Usec), true
}
