//go:build aix || dragonfly || solaris

package proc

// onePIDSpace is false where jails, zones or partitions may hide processes from a probe.
func onePIDSpace() bool { return false }
