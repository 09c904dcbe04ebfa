//go:build unix

package proc

import "golang.org/x/sys/unix"

// probe sends signal 0: everything that a signal needs, and no signal.
func probe(pid int) answer {
	switch unix.Kill(pid, 0) {
	case nil:
		return exists
	case unix.EPERM:
		return denied
	case unix.ESRCH:
		return gone
	}
	return noAnswer
}
