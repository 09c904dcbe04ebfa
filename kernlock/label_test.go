package kernlock

import (
	"strings"
	"testing"
)

var labelTable = []struct{ in, want string }{
	{"", "fallback"},
	{"agent-7", "agent-7"},
	{"  agent-7\t\n", "agent-7"},
	{"A-Za-z0-9._:@-x", "A-Za-z0-9._:@-x"},
	{"two words", "two_words"},
	{"a \t\n b", "a_b"},          // a run is one underscore
	{"a__b", "a__b"},             // underscores given are no run
	{"a _b", "a__b"},             // nor joined to one
	{"grüße", "gr_e"},            // "üß" is one run of bytes
	{"日本語", "fallback"},          // nothing is left
	{"日本x語", "x"},                // the ends are trimmed
	{"..--__name__--..", "name"}, // of all three
	{":name@", ":name@"},         // and of nothing else
	{"a/../../etc/passwd", "a_.._.._etc_passwd"},
	{"\x1b[31mred\x1b[0m", "31mred_0m"}, // no terminal is reached
	{"a\x00b", "a_b"},
	{"\xff\xfe", "fallback"},
	{"a\xffb", "a_b"},
	{"-", "fallback"},
	{"...", "fallback"},
	{"!!!", "fallback"},
	{strings.Repeat("x", 127), strings.Repeat("x", 127)},
	{strings.Repeat("x", 128), strings.Repeat("x", 128)},
	{strings.Repeat("x", 129), strings.Repeat("x", 128)},
	{"." + strings.Repeat("x", 128), strings.Repeat("x", 128)}, // trimmed, then cut
	{strings.Repeat("x", 127) + "..y", strings.Repeat("x", 127) + "."}, // cut, and not trimmed again
	{strings.Repeat("ü", 200), "fallback"},
	{strings.Repeat("aü", 200), strings.Repeat("a_", 64)},
}

func TestLabel(t *testing.T) {
	for _, c := range labelTable {
		if got := label(c.in, "fallback"); got != c.want {
			t.Errorf("label(%q) is %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzLabel(f *testing.F) {
	for _, c := range labelTable {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := label(s, "fallback")
		if got == "" || len(got) > 128 {
			t.Errorf("label(%q) has %d bytes", s, len(got))
		}
		for i := 0; i < len(got); i++ {
			if !labelByte(got[i]) {
				t.Errorf("label(%q) is %q", s, got)
			}
		}
		if first := got[0]; first == '.' || first == '_' || first == '-' {
			t.Errorf("label(%q) begins with %q", s, first)
		}
	})
}

func TestAgentLabel(t *testing.T) {
	for _, c := range []struct{ given, stile, loopx, want string }{
		{"", "", "", "unknown"},
		{"", "", "l", "l"},
		{"", "s", "l", "s"},
		{"g", "s", "l", "g"},
		{"g/h", "s", "l", "g_h"},
		{"!!", "s", "l", "s"}, // what names nobody is passed over
	} {
		t.Setenv("STILE_AGENT", c.stile)
		t.Setenv("LOOPX_AGENT_ID", c.loopx)
		if got := agentLabel(c.given); got != c.want {
			t.Errorf("given %q, STILE_AGENT %q, LOOPX_AGENT_ID %q: %q, want %q", c.given, c.stile, c.loopx, got, c.want)
		}
	}
}
