package register

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

var sumA = grant.Digest(strings.Repeat("a", 64))

// golden is the format on disk.
const golden = `{"content":"","empty":"","entries":[` +
	`{"kind":"file","mode":"0755","name":"bin/run","sha256":"` + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + `","size":12,"target":""},` +
	`{"kind":"folder","mode":"0000","name":"empty","sha256":"","size":0,"target":""},` +
	`{"kind":"link","mode":"0000","name":"lib/x","sha256":"","size":0,"target":"../bin/run"}` +
	`],"ran":null,"v":1}` + "\n"

func TestManifestBytes(t *testing.T) {
	m := &Manifest{V: 1, Entries: []Entry{
		{Kind: KindFile, Name: "bin/run", Mode: 0o755, SHA256: sumA, Size: 12},
		{Kind: KindFolder, Name: "empty"},
		{Kind: KindLink, Name: "lib/x", Target: "../bin/run"},
	}}
	data, err := m.Encode()
	if err != nil || string(data) != golden {
		t.Fatalf("%v\n%s", err, data)
	}
	again, err := ParseManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := again.Find("lib/x"); !ok || e.Target != "../bin/run" {
		t.Errorf("%+v", again)
	}
	if again.Size() != 12 {
		t.Error(again.Size())
	}
}

func TestManifestRefuses(t *testing.T) {
	file := func(name string) Entry { return Entry{Kind: KindFile, Name: name, SHA256: sumA} }
	link := func(name, target string) Entry { return Entry{Kind: KindLink, Name: name, Target: target} }
	ran := &Ran{Args: []string{"x"}, ID: "12345678", Started: 1, Ended: 2}
	for name, c := range map[string]struct {
		m    Manifest
		want error
	}{
		"nothing":            {Manifest{V: 1}, ErrManifest},
		"another format":     {Manifest{V: 2, Entries: []Entry{file("a")}}, ErrManifest},
		"order":              {Manifest{V: 1, Entries: []Entry{file("b"), file("a")}}, ErrManifest},
		"twice":              {Manifest{V: 1, Entries: []Entry{file("a"), file("a")}}, ErrManifest},
		"case":               {Manifest{V: 1, Entries: []Entry{file("A"), file("a")}}, ErrName},
		"up":                 {Manifest{V: 1, Entries: []Entry{file("../a")}}, ErrName},
		"below a file":       {Manifest{V: 1, Entries: []Entry{file("a"), file("a/b")}}, ErrName},
		"below a link":       {Manifest{V: 1, Entries: []Entry{link("a", "b"), file("a/b")}}, ErrName},
		"mode":               {Manifest{V: 1, Entries: []Entry{{Kind: KindFile, Name: "a", SHA256: sumA, Mode: 0o4755}}}, ErrManifest},
		"size":               {Manifest{V: 1, Entries: []Entry{{Kind: KindFile, Name: "a", SHA256: sumA, Size: -1}}}, ErrManifest},
		"no digest":          {Manifest{V: 1, Entries: []Entry{{Kind: KindFile, Name: "a"}}}, ErrManifest},
		"file with a target": {Manifest{V: 1, Entries: []Entry{{Kind: KindFile, Name: "a", SHA256: sumA, Target: "b"}}}, ErrManifest},
		"folder with bytes":  {Manifest{V: 1, Entries: []Entry{{Kind: KindFolder, Name: "a", SHA256: sumA}}}, ErrManifest},
		"kind":               {Manifest{V: 1, Entries: []Entry{{Kind: "socket", Name: "a"}}}, ErrManifest},
		"two kinds":          {Manifest{V: 1, Entries: []Entry{file("a")}, Empty: "none"}, ErrManifest},
		"two others":         {Manifest{V: 1, Empty: "none", Ran: ran}, ErrManifest},
		"words":              {Manifest{V: 1, Empty: "a\x1b[31m"}, ErrManifest},
		"content of a tree":  {Manifest{V: 1, Entries: []Entry{file("a")}, Content: sumA}, ErrManifest},
		"ran nothing":        {Manifest{V: 1, Ran: &Ran{ID: "12345678", Started: 1, Ended: 2}}, ErrManifest},
		"absolute link":      {Manifest{V: 1, Entries: []Entry{link("a", "/etc/passwd")}}, ErrTarget},
		"link out":           {Manifest{V: 1, Entries: []Entry{link("a/b", "../../x")}}, ErrTarget},
		"link up behind":     {Manifest{V: 1, Entries: []Entry{link("a", "b/../../x")}}, ErrTarget},
		"link to nothing":    {Manifest{V: 1, Entries: []Entry{link("a", "")}}, ErrTarget},
		"link with dots":     {Manifest{V: 1, Entries: []Entry{link("a", "./b")}}, ErrTarget},
	} {
		if _, err := c.m.Encode(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
	for _, ok := range []string{"b", "../b", "..", ".", "c/d", "../c/d"} {
		m := Manifest{V: 1, Entries: []Entry{link("a/x", ok)}}
		if _, err := m.Encode(); err != nil {
			t.Errorf("link to %s: %v", ok, err)
		}
	}
	for name, text := range map[string]string{
		"blank":       strings.Replace(golden, `"v":1`, `"v": 1`, 1),
		"cut":         golden[:len(golden)/2],
		"no newline":  strings.TrimSuffix(golden, "\n"),
		"more":        golden + "{}",
		"a key more":  strings.Replace(golden, `"ran":`, `"run":`, 1),
		"null":        "null\n",
		"number":      "1\n",
		"mode":        strings.Replace(golden, "0755", "755", 1),
		"key left":    strings.Replace(golden, `,"target":""`, "", 1),
		"upper digit": strings.Replace(golden, strings.Repeat("a", 64), strings.Repeat("A", 64), 1),
	} {
		if _, err := ParseManifest([]byte(text)); !errors.Is(err, ErrManifest) {
			t.Errorf("%s is taken: %v", name, err)
		}
	}
	if _, err := ParseManifest([]byte(strings.Replace(golden, `"v":1`, `"v":2`, 1))); !errors.Is(err, grant.ErrNewer) {
		t.Errorf("a later format: %v", err)
	}
}

// FuzzManifest: whatever is taken is canonical, and no name or link in it leaves the tree.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte(`{"content":"","empty":"none","entries":[],"ran":null,"v":1}` + "\n"))
	f.Add([]byte(`{"content":"","empty":"","entries":[],"ran":{"args":["a"],"ended":"2026-01-01T00:00:00.000000Z","id":"12345678","started":"2026-01-01T00:00:00.000000Z"},"v":1}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if len(err.Error()) > 4000 || strings.ContainsAny(err.Error(), "\x00\x1b\n") {
				t.Errorf("message %q", err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%v: %q became %q", err, data, again)
		}
		for _, e := range m.Entries {
			if strings.HasPrefix(e.Name, "/") || strings.Contains("/"+e.Name+"/", "/../") {
				t.Errorf("name %q", e.Name)
			}
			if strings.HasPrefix(e.Target, "/") || strings.Count(e.Target, "..") > 0 && strings.Count("/"+e.Target+"/", "/../") > strings.Count(e.Name, "/") {
				t.Errorf("%q leads to %q", e.Name, e.Target)
			}
		}
	})
}
