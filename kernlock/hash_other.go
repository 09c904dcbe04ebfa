//go:build !windows

package kernlock

// hashable is the path as lock_id counts it.
func hashable(path string) string { return path }
