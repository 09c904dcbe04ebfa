package kernlock

import "strings"

const (
	extended    = `\\?\`
	extendedUNC = `\\?\UNC\`
)

// hashable is the path as lock_id counts it: without the prefixes that only
// say how it was spelt.
func hashable(path string) string {
	if rest, ok := strings.CutPrefix(path, extendedUNC); ok {
		return `\\` + rest
	}
	return strings.TrimPrefix(path, extended)
}

// longPath is path in the form for which no length limit of 260 holds.
func longPath(path string) string {
	switch {
	case len(path) < 240 || strings.HasPrefix(path, extended):
		return path
	case strings.HasPrefix(path, `\\`):
		return extendedUNC + path[2:]
	}
	return extended + path
}
