package lockfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	displayMax  = 32
	displayHead = 29
)

// CapForDisplay makes a value from a lock file or a path fit for a message: what is not printable is
// escaped, and what is then longer than 32 characters is shown as its first 29 and "...".
func CapForDisplay(s string) string {
	s = escape(s)
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

// escape replaces what could move a cursor, colour a terminal or reorder a line, in the notation of
// Go and of $'…' in shells.
func escape(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) || r == '\\' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
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
