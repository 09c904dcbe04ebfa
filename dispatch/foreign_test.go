package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// piece is a part of a JSON text, as encoding/json finds it: not with the code that is tested.
type piece struct {
	key        string // of a member
	start, end int
}

// pieces lists the elements of an array or the members' values of an object.
func pieces(t *testing.T, text []byte) (list []piece) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	object := bytes.TrimLeft(text, " \t\r\n")[0] == '{'
	for d.More() {
		var p piece
		if object {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			p.key = key.(string)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		p.end = int(d.InputOffset())
		p.start = p.end - len(raw)
		list = append(list, p)
	}
	return list
}

// member is the string that an object has under just this key, the last of several.
func member(object []byte, key string) (text string) {
	var all map[string]json.RawMessage // unlike a struct it goes by the key's case
	if json.Unmarshal(object, &all) != nil || json.Unmarshal(all[key], &text) != nil {
		return ""
	}
	return text
}

// A close of a dispatch in a log that any tool has written changes three members of its record, in their
// places or at its end, and not one byte else; or it is refused, and changes nothing.
func FuzzCloseForeignLog(f *testing.F) {
	for _, seed := range []string{
		`[{"id":"x","status":"open"}]`,
		"[\n  {\"v\":1,\"id\":\"y\",\"task\":\"t\"},\n  {\"v\":1,\"id\":\"x\",\"task\":\"t\",\"status\":\"open\"}\n]\n",
		"\r\n[\r\n\t{ \"status\" : \"open\" ,\r\n\t\t\"id\" : \"x\" , \"more\" : { \"id\" : \"y\", \"n\" : [ 1e400, -0.0, 12345678901234567890 ] } }\r\n]",
		`[ { } , 1, "s", null, [ {"id":"x"} ], {"id":"\u0078","task":"\ud83d\ude00 \/"} ]`,
		`[{"id":"x","status":"done"}]`,
		`[{"id":"x"},{"id":"x"}]`,
		`[{"status":"done","id":"y","status":"open","id":"x"}]`,
		`[{"id":"x","status":null,"closed_at":{"a":[]},"result":7}]`,
		"[{\"id\":\"x\",\"task\":\"\xff\"}]",
		`[{"id":"x"} {"id":"y"}]`, `[{"id":"x"},]`, `{"id":"x"}`, "", "[", "\xef\xbb\xbf[]", `[{"id":"x"}] trailing`, `[{"":0,"id":"x","":1}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		e := newEstate(t)
		open(t, e, "ada", "first")
		log := e.LogPath("ada")
		write(t, log, string(old))
		board := filepath.Join(filepath.Dir(log), boardFolder, boardName)
		wasBoard := read(t, board)
		r, err := e.CloseDispatch(t.Context(), "ada", "x", Outcome{Status: Done, Result: "said \"so\"\n"})
		now, rerr := os.ReadFile(log)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if err != nil {
			if errors.Is(err, ErrLanded) || !bytes.Equal(now, old) || read(t, board) != wasBoard {
				t.Fatalf("refused with %v, and %q became %q", err, old, now)
			}
			return
		}
		if !json.Valid(old) || !json.Valid(now) {
			t.Fatalf("%q became %q", old, now)
		}
		was, is := pieces(t, old), pieces(t, now)
		at := slices.IndexFunc(was, func(p piece) bool {
			return member(old[p.start:p.end], "id") == "x"
		})
		if at < 0 || len(is) != len(was) || !bytes.Equal(old[:was[at].start], now[:is[at].start]) || !bytes.Equal(old[was[at].end:], now[is[at].end:]) {
			t.Fatalf("beside the record %d %q became %q", at, old, now)
		}
		before, after := old[was[at].start:was[at].end], now[is[at].start:is[at].end]
		others := func(record []byte) (kept []string) {
			seen := map[string]bool{}
			for _, m := range pieces(t, record) {
				switch m.key {
				case "status", "closed_at", "result":
					if seen[m.key] {
						kept = append(kept, m.key) // twice before, twice after
					}
					seen[m.key] = true
				default:
					kept = append(kept, m.key, string(record[m.start:m.end]))
				}
			}
			return kept
		}
		if member(after, "status") != "done" || member(after, "result") != "said \"so\"\n" || r.Status != Done ||
			!slices.Equal(others(before), others(after)) {
			t.Fatalf("%q became %q, and is reported as %+v", before, after, r)
		}
	})
}
