package main

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TCGETS
	ioctlSetTermios = unix.TCSETS
)

// kernelHelper plays the commands that need Linux.
func kernelHelper(args []string) bool {
	if args[0] != "filtered" {
		return false
	}
	filtered(args[1:])
	return true
}
