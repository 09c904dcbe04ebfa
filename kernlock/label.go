package kernlock

import (
	"os"
	"strings"
)

const maxLabel = 128

// label cleans a name for a record: runs of anything but A-Z a-z 0-9 . _ : @
// - become one underscore, the ends are trimmed of . _ -, and 128 bytes are
// kept. An empty result is the fallback.
func label(s, fallback string) string {
	if s == "" {
		return fallback
	}
	s = strings.TrimSpace(s)
	var b strings.Builder
	run := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if labelByte(c) {
			b.WriteByte(c)
			run = false
			continue
		}
		if !run {
			b.WriteByte('_')
			run = true
		}
	}
	out := strings.Trim(b.String(), "._-")
	if len(out) > maxLabel {
		out = out[:maxLabel]
	}
	if out == "" {
		return fallback
	}
	return out
}

func labelByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
}

// agentLabel is who holds, as given or else from the environment.
func agentLabel(given string) string {
	for _, s := range []string{given, os.Getenv("STILE_AGENT"), os.Getenv("LOOPX_AGENT_ID")} {
		if l := label(s, ""); l != "" {
			return l
		}
	}
	return "unknown"
}
