package granthttp

import (
	"net/url"
	"strings"
	"testing"
)

// TestEscape: whatever a name holds, it stays one element of a path, and comes out as it went in.
func TestEscape(t *testing.T) {
	var all strings.Builder
	for c := range 256 {
		all.WriteByte(byte(c))
	}
	for _, name := range []string{"", "a", "a b", "a/b", "..", "%2e%2E", "ä?#&=+;,~-_.", all.String()} {
		e := escape(name)
		if got, err := url.PathUnescape(e); err != nil || got != name {
			t.Errorf("%q is written as %q and read as %q, %v", name, e, got, err)
		}
		if strings.ContainsAny(e, "/?# ") {
			t.Errorf("%q is written as %q, which is more than one element", name, e)
		}
	}
}
