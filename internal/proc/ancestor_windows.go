package proc

import "os"

// IsAncestor reports whether pid is an ancestor of this process. Only the parent is known here, and only
// by a number that goes to another process once the parent has ended; that one is younger than we are.
func IsAncestor(pid int) bool {
	if pid < 1 || pid != os.Getppid() {
		return false
	}
	parent, ok := StartTime(pid)
	return ok && parent <= own().StartTime
}
