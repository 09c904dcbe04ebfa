//go:build unix && !aix && !solaris && !(linux && (amd64 || arm64))

package kernlock

func queueable(int) bool { return false }

// endTurn would let the next one in the queue be its head.
func (f *lockFile) endTurn() { f.turn = false }
