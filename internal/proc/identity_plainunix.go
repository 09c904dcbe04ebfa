//go:build unix && !linux && !darwin

package proc

// ownIdentity has no member that would hold still, see ID.StartTime.
func ownIdentity() identity {
	one := onePIDSpace()
	return identity{initial: one, onePIDSpace: one}
}

// StartTime is not known here.
func StartTime(int) (ticks uint64, ok bool) { return 0, false }
