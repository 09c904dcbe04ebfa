package display

import (
	"runtime"
	"strings"
	"unicode"
)

// ShellWord quotes s for the system's shell where it needs quoting, so that a command that is shown can be
// copied: for a POSIX shell, or on Windows any.
func ShellWord(s string) string {
	if runtime.GOOS == "windows" {
		return windowsWord(s)
	}
	return posixWord(s)
}

const plainInShells = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"

// posixWord gives control characters, which have no place on a terminal, in $'…' form.
func posixWord(s string) string {
	if escaped := Text(strings.ReplaceAll(s, `\`, `\\`)); escaped != s {
		return "$'" + strings.ReplaceAll(escaped, "'", `\'`) + "'"
	}
	if s != "" && strings.Trim(s, plainInShells) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// windowsWord has nothing to escape: no name there has a quotation mark or a control character in it. What a
// terminal might take for more than a letter is shown as a question mark, which no name has either.
func windowsWord(s string) string {
	if s != "" && strings.Trim(s, plainInShells+`\~`) == "" {
		return s
	}
	shown := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '"' {
			return '?'
		}
		return r
	}, s)
	return `"` + shown + `"`
}
