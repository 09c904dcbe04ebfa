// Package display makes text of unknown origin (paths, host names, records,
// messages of other programs) safe to show on a terminal or in a log.
//
// It guarantees that what it returns holds no control character, no
// invisible or direction-changing character and no invalid UTF-8. It does not
// shorten except where asked, and it is no encoder for JSON or HTML.
package display

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with everything unprintable written as an escape: \n, \t and
// \r by their letters, other bytes as \x1b, other characters as \u202e. A
// backslash stays as it is, so that Windows paths stay readable: the result
// is for people and not for parsing back.
func Text(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			hex(&b, `\x`, uint32(s[i]), 2)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			hex(&b, `\x`, uint32(r), 2)
		case r < 0x10000:
			hex(&b, `\u`, uint32(r), 4)
		default:
			hex(&b, `\U`, uint32(r), 8)
		}
		i += n
	}
	return b.String()
}

func clean(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n <= 1 {
				return false
			}
		}
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func hex(b *strings.Builder, prefix string, v uint32, digits int) {
	b.WriteString(prefix)
	for i := digits - 1; i >= 0; i-- {
		b.WriteByte("0123456789abcdef"[v>>(4*i)&0xf])
	}
}
