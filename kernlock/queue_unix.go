//go:build unix && !aix && !solaris && !(linux && (amd64 || arm64))

package kernlock

func queueable(int) bool { return false }
