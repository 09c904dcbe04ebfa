package lockfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/display"
)

const (
	displayMax  = 32
	displayHead = 29
)

// CapForDisplay makes a value from a lock file or a path fit for a message: what is not printable is
// escaped, and what is then longer than 32 characters is shown as its first 29 and "...".
func CapForDisplay(s string) string {
	s = display.Text(s)
	if utf8.RuneCountInString(s) <= displayMax {
		return s
	}
	n := 0
	for i := range s {
		if n == displayHead {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

// displayPath caps each element of a path.
func displayPath(path string) string {
	sep := string(filepath.Separator)
	parts := strings.Split(path, sep)
	for i, p := range parts {
		parts[i] = CapForDisplay(p)
	}
	return strings.Join(parts, sep)
}

// showAge shows a duration in one unit, in at most 12 characters.
func showAge(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}
