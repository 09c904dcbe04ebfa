//go:build !linux

package proc

import "os"

// IsAncestor reports whether pid is an ancestor of this process. Only the parent is known here.
func IsAncestor(pid int) bool { return pid > 1 && pid == os.Getppid() }
