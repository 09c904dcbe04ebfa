//go:build openbsd || netbsd

package proc

func onePIDSpace() bool { return true }
