package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/kernlock"
)

// heldAbove says whether the lock is really held above this process: by one
// of its ancestors, or by a descriptor that it inherited itself (then the
// wrapper may be dead already, and the lock is held all the same).
func heldAbove(h *kernlock.Handle) bool {
	if inheritedLock(h.LockPath()) {
		return true
	}
	report, err := statusOf(h)
	if err != nil {
		return false
	}
	for _, p := range report.Holders {
		if proc.IsAncestor(p.PID) {
			return true
		}
	}
	return false
}

// inheritedLock says whether one of our own descriptors holds a lock on the
// file.
func inheritedLock(lockPath string) bool {
	var lock syscall.Stat_t
	if syscall.Stat(lockPath, &lock) != nil {
		return false
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false
	}
	for _, e := range entries {
		var st syscall.Stat_t
		if syscall.Stat(filepath.Join("/proc/self/fd", e.Name()), &st) != nil || st.Ino != lock.Ino || st.Dev != lock.Dev {
			continue
		}
		info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", e.Name()))
		if err == nil && bytes.Contains(info, []byte("\nlock:")) {
			return true
		}
	}
	return false
}
