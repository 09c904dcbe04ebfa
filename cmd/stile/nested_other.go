//go:build !linux

package main

import "github.com/stile-lock/stile/kernlock"

// heldAbove believes the variable unless the kernel shows the lock free: the
// system does not tell who holds it.
func heldAbove(h *kernlock.Handle) bool {
	report, err := statusOf(h)
	return err == nil && report.Kernel != kernlock.KernelFree
}
