//go:build unix && !aix && !solaris

package kernlock

// recordPath is the file in which the holder of n's lock writes its record.
func recordPath(n *names) string { return n.lock }

func onWine() bool { return false }
