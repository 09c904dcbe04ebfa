package display

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"plain, with spaces":       "plain, with spaces",
		"é 漢 🙂":                    "é 漢 🙂",
		`C:\Users\x`:               `C:\Users\x`,
		"a\nb\tc\rd":               `a\nb\tc\rd`,
		"\x1b[31mred\x1b[0m":       `\x1b[31mred\x1b[0m`,
		"bell\a nul\x00 del\x7f":   `bell\x07 nul\x00 del\x7f`,
		"bad\xff\xfebytes":         `bad\xff\xfebytes`,
		"\ufffd itself":            "\ufffd itself",
		"turned \u202e round":      `turned \u202e round`,
		"zero\u200bwidth":          `zero\u200bwidth`,
		"c1 \u009b31m":             `c1 \u009b31m`,
		"line\u2028separator":      `line\u2028separator`,
		"tag \U000e0041 character": `tag \U000e0041 character`,
		"no\u00a0break":            `no\u00a0break`,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b]0;title\x07b")
	f.Add("\xc3\x28")
	f.Fuzz(func(t *testing.T, s string) {
		out := Text(s)
		if !utf8.ValidString(out) {
			t.Errorf("%q is not UTF-8", out)
		}
		for _, r := range out {
			if !unicode.IsPrint(r) {
				t.Errorf("%q holds %U", out, r)
			}
		}
		if Text(out) != out {
			t.Errorf("%q is changed once more", out)
		}
	})
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string][2]string{
		"/a/b-1.json":  {"/a/b-1.json", "/a/b-1.json"},
		"":             {"''", `""`},
		"a b":          {"'a b'", `"a b"`},
		"it's":         {`'it'\''s'`, `"it's"`},
		`C:\d\f~1.txt`: {`$'C:\\d\\f~1.txt'`, `C:\d\f~1.txt`},
		"a\x1bb'c":     {`$'a\x1bb\'c'`, `"a?b'c"`},
		"a$b":          {"'a$b'", `"a$b"`},
	} {
		if got := [2]string{posixWord(in), windowsWord(in)}; got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
