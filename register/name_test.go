package register

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", maxElement)
	for _, name := range []string{
		"a", "a/b", ".hidden", "..a", "a..b", "...x", " a", "-a", "~a", "a b", "é", "e\u0301", "漢字/かな", "🙂", "a'b", "a$b", "a;b", "a%b", "a#",
		"com", "com10", "lpt", "console", "nul1", "xnul", "a.nul", "con-x", "a.lock", "[a]", "{a}", "COM⁴", long, long + "/" + long + "/" + long + "/" + strings.Repeat("b", 200),
	} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "/a", "a/", "a//b", "./a", "a/.", "..", "../a", "a/../b", "a/..", `a\b`, `..\a`, `C:\a`, "C:a", "a:b", "a*", "a?", `a"`, "a<", "a>", "a|b",
		"a\x00b", "a\n", "a\tb", "\x1b[31m", "a\x7f", "a\u202eb", "a\u200bb", "a\u00a0b", "\ufeffa", "a\xff", "\xc3\x28", "a.", "a ", "a./b", "a /b", ". ",
		"con", "CON", "Con.txt", "nul", "nul.tar.gz", "a/aux/b", "prn ", "nul .txt", "com1", "COM9.log", "lpt0", "COM¹", "LPT³.x", "conin$", "CONOUT$", "clock$",
		long + "a", strings.Repeat("a/", 500) + "b",
	} {
		if err := CheckName(name); !errors.Is(err, ErrName) {
			t.Errorf("%q is taken: %v", name, err)
		}
	}
}

func TestNamesSideBySide(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		ok    bool
	}{
		{"others", []string{"a", "b/c", "b/d"}, true},
		{"twice", []string{"a", "a"}, false},
		{"case", []string{"readme", "README"}, false},
		{"case of a folder", []string{"src/a", "Src/b"}, false},
		{"case deep", []string{"a/b/c", "a/B/d"}, false},
		{"normal form", []string{"\u00e9", "e\u0301"}, false},
		{"both", []string{"\u00c9t\u00e9", "e\u0301te\u0301"}, false},
		{"order of marks", []string{"q\u0307\u0323", "q\u0323\u0307"}, false},
		{"Greek", []string{"ΟΔΟΣ", "οδος", "x"}, false},
		{"final sigma", []string{"οδος", "οδοσ"}, false},
		{"sharp s", []string{"straße", "STRASSE"}, false},
		{"capital sharp s", []string{"stra\u1e9ee", "strasse"}, false},
		{"ligature", []string{"\ufb01le", "file"}, false},
		{"Kelvin", []string{"\u212a", "k"}, false},
		{"long s", []string{"\u017f", "S"}, false},
		{"Angstrom", []string{"\u212b", "\u00e5"}, false},
		{"iota subscript", []string{"\u1f80", "\u1f00\u03b9"}, false},
		{"variation selector", []string{"\u2764\ufe0f", "\u2764"}, false},
		{"dotless i", []string{"\u0131", "i"}, true},
		{"file and folder", []string{"a", "a/b"}, false},
		{"folder and file", []string{"a/b", "a"}, false},
		{"file and folder by case", []string{"A", "a/b"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := names{}
			var err error
			for _, name := range c.names {
				if fault := CheckName(name); fault != nil {
					t.Fatalf("not a name at all: %v", fault)
				}
				if err == nil {
					err = n.add(name, false)
				}
			}
			if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrName) {
				t.Errorf("%q: %v", c.names, err)
			}
		})
	}
	n := names{}
	if err := errors.Join(n.add("a/b", false), n.add("c", true)); err != nil {
		t.Fatal(err)
	}
	if n.add("c", false) == nil || n.add("C/x", false) == nil || n.add("a", false) == nil {
		t.Error("a file takes a folder's name")
	}
}

// FuzzName: what is taken is harmless, and a name's key does not depend on how it is spelt.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a/b", "../x", "nul.txt", "\u00e9", "\u1f80ß", "a\x00", "COM¹"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := CheckName(name); err != nil {
			if !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x00\x1b\n") || len(err.Error()) > 1000 {
				t.Errorf("%q: message %q", name, err)
			}
			return
		}
		if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") || strings.ContainsAny(name, "\\:\x00") {
			t.Errorf("%q is taken", name)
		}
		k := key(name)
		if key(k) != k {
			t.Errorf("key of %q is %q, whose key is %q", name, k, key(k))
		}
		other := strings.Map(unicode.SimpleFold, name)
		if key(other) != k {
			t.Errorf("%q has the key %q, %q has %q", name, k, other, key(other))
		}
	})
}
