package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newEstate(t *testing.T) *Estate {
	t.Helper()
	dir := t.TempDir()
	_, _, err := estate.Init(estate.Options{Flag: dir})
	must(t, err)
	e, err := OpenEstate(Options{Flag: dir})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

func (e *Estate) boardPath(agent string) string {
	return filepath.Join(e.in.AgentPath(agent), boardFolder, boardName)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

func open(t *testing.T, e *Estate, agent, task string) string {
	t.Helper()
	r, err := e.OpenDispatch(t.Context(), agent, Task{Text: task})
	must(t, err)
	return r.ID
}

func kinds(t *testing.T, e *Estate) (got []string) {
	t.Helper()
	f, err := e.Check()
	must(t, err)
	for _, p := range f.Problems {
		got = append(got, string(p.Kind)+" "+p.Dispatch)
	}
	return got
}

// only checks that nothing but log and board is left in an agent's folder.
func only(t *testing.T, e *Estate, agent string) {
	t.Helper()
	for dir, want := range map[string][]string{
		e.in.AgentPath(agent): {boardFolder, logName}, filepath.Join(e.in.AgentPath(agent), boardFolder): {boardName},
	} {
		list, err := os.ReadDir(dir)
		must(t, err)
		var names []string
		for _, d := range list {
			names = append(names, d.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s holds %q", dir, names)
		}
	}
}

func TestOpenAndClose(t *testing.T) {
	e := newEstate(t)
	a, err := e.OpenDispatch(t.Context(), "ada", Task{Text: "water <the> plants\nand more", Worker: "bob", Labels: map[string]string{"k": "v"}})
	must(t, err)
	b := open(t, e, "ada", "second")
	closed, err := e.CloseDispatch(t.Context(), "", a.ID, Outcome{Status: Done, Result: "wet"})
	must(t, err)
	if closed.Status != Done || closed.Result != "wet" || closed.ClosedAt == "" || closed.ID != a.ID {
		t.Errorf("closed as %+v", closed)
	}
	var got []Record
	must(t, e.Records("ada", func(r Record) error { got = append(got, r); return nil }))
	if len(got) != 2 || got[0].ID != a.ID || got[1].ID != b || got[0].Task != a.Task || got[0].Labels["k"] != "v" || got[0].Status != Done || got[1].Status != Open {
		t.Errorf("the log holds %+v", got)
	}
	if o := got[0].OpenedBy; o == nil || o.PID != int64(os.Getpid()) {
		t.Errorf("opened by %+v", o)
	}
	items, err := e.Board("ada")
	must(t, err)
	if len(items) != 2 || items[0].Dispatch != a.ID || items[0].Column != Closed || items[0].Title != "water <the> plants" || items[1].Column != Todo {
		t.Errorf("the board holds %+v", items)
	}
	if k := kinds(t, e); k != nil {
		t.Errorf("check says %q", k)
	}
	only(t, e, "ada")
	for _, id := range []string{a.ID, "none"} {
		if _, err := e.CloseDispatch(t.Context(), "ada", id, Outcome{Status: Failed}); !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNoDispatch) {
			t.Errorf("closing %s: %v", id, err)
		}
	}
}

// The bytes of a log and a board: docs/format.md.
func TestBytes(t *testing.T) {
	e := newEstate(t)
	r, err := e.OpenDispatch(t.Context(), "ada", Task{Text: "a & b"})
	must(t, err)
	host, err := json.Marshal(r.OpenedBy.Host)
	must(t, err)
	record := fmt.Sprintf(`{"v":1,"id":"%s","agent":"ada","task":"a & b","opened_at":"%s","opened_by":{"pid":%d,"host":%s},"status":"open"}`,
		r.ID, r.OpenedAt, r.OpenedBy.PID, host)
	if got, want := read(t, e.LogPath("ada")), "[\n  "+record+"\n]\n"; got != want {
		t.Errorf("the log is\n%swant\n%s", got, want)
	}
	items, err := e.Board("ada")
	must(t, err)
	item := fmt.Sprintf(`{"dispatch":"%s","title":"a & b","column":"todo","updated_at":"%s"}`, r.ID, items[0].UpdatedAt)
	if got, want := read(t, e.boardPath("ada")), "{\n  \"v\": 1,\n  \"items\": [\n    "+item+"\n  ]\n}\n"; got != want {
		t.Errorf("the board is\n%swant\n%s", got, want)
	}
	second := open(t, e, "ada", "x")
	if got := read(t, e.boardPath("ada")); !strings.Contains(got, item+",\n    {\"dispatch\":\""+second) {
		t.Errorf("the board is\n%s", got)
	}
}

// What other tools and hands wrote stays, byte for byte, but for what the change is about.
func TestForeignBytesStay(t *testing.T) {
	e := newEstate(t)
	log := "\n[\r\n\t{ \"result\" : null, \"x\": {\"status\": \"keep\"}, \"id\" : \"d-1\",\"n\":1e400 },\r\n\t{\"status\":\"open\",\n\"id\":\"d-2\"} , {\"ID\":\"d-1\"}]  "
	write(t, e.LogPath("ada"), log)
	board := "{ \"by\": \"hand\", \"items\": [{\"title\": \"mine\"}, {\"dispatch\": \"d-1\", \"column\": \"doing\", \"star\": true}, 7], \"archive\": [\n  {}\n  ]\n}\n"
	write(t, e.boardPath("ada"), board)
	r, err := e.CloseDispatch(t.Context(), "", "d-1", Outcome{Status: Failed, Result: "no <luck>"})
	must(t, err)
	want := strings.Replace(log, `"result" : null`, `"result" : "no <luck>"`, 1)
	want = strings.Replace(want, `"n":1e400`, `"n":1e400,"status":"failed","closed_at":"`+r.ClosedAt+`"`, 1)
	if got := read(t, e.LogPath("ada")); got != want {
		t.Errorf("the log is\n%q\nwant\n%q", got, want)
	}
	items, err := e.Board("ada")
	must(t, err)
	wantBoard := strings.Replace(board, `"column": "doing", "star": true`, `"column": "done", "star": true, "updated_at": "`+items[1].UpdatedAt+`"`, 1)
	if got := read(t, e.boardPath("ada")); got != wantBoard {
		t.Errorf("the board is\n%s\nwant\n%s", got, wantBoard)
	}
	id := open(t, e, "ada", "new")
	wantBoard = strings.Replace(wantBoard, ", 7]", ", 7, {\"dispatch\":\""+id+"\"", 1)
	if got := read(t, e.boardPath("ada")); !strings.HasPrefix(got, wantBoard[:strings.Index(wantBoard, id)+len(id)]) || !strings.HasSuffix(got, "}], \"archive\": [\n  {}\n  ]\n}\n") {
		t.Errorf("the board is\n%s", got)
	}
}

// bad logs and boards: their own message, and nothing is changed.
var badLogs = map[string]struct{ text, say string }{
	"empty":        {"", "it is empty"},
	"blank":        {" \n", "it is empty"},
	"no JSON":      {"hello", "no JSON array"},
	"an object":    {`{"id":"1"}`, "no JSON array"},
	"a BOM":        {"\xef\xbb\xbf[]", "byte order mark"},
	"cut off":      {"[\n  {\"id\":\"1\",\"status\":\"open\"},\n  {\"id\":\"2\",\"sta", "cut off"},
	"cut off late": {"[\n  {\"id\":\"1\",\"status\":\"open\"}\n", "cut off"},
	"no commas":    {"[\n  {\"id\":\"1\"}\n  {\"id\":\"2\"}\n]", "record"},
	"more behind":  {"[\n  {\"id\":\"1\",\"status\":\"open\"}\n]\n]", "follows"},
}

func TestBadLog(t *testing.T) {
	for name, c := range badLogs {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t)
			open(t, e, "ada", "before")
			board := read(t, e.boardPath("ada"))
			write(t, e.LogPath("ada"), c.text)
			check := func(what string, err error, say string) {
				t.Helper()
				var fe *FileError
				if !errors.Is(err, ErrLog) || !errors.As(err, &fe) || fe.Path != e.LogPath("ada") || fe.Line < 1 || !strings.Contains(err.Error(), say) {
					t.Errorf("%s: %v", what, err)
				}
			}
			check("list", e.Records("ada", func(Record) error { return nil }), c.say)
			_, err := e.CloseDispatch(t.Context(), "ada", "1", Outcome{Status: Done})
			check("close", err, c.say)
			_, err = e.OpenDispatch(t.Context(), "ada", Task{Text: "x"})
			check("open", err, "")
			_, err = e.Repair(t.Context(), "ada")
			check("repair", err, c.say)
			if k := kinds(t, e); len(k) != 1 || k[0] != "unreadable-log " {
				t.Errorf("check says %q", k)
			}
			if read(t, e.LogPath("ada")) != c.text || read(t, e.boardPath("ada")) != board {
				t.Error("something was changed")
			}
			only(t, e, "ada")
		})
	}
}

func TestBadBoard(t *testing.T) {
	for name, c := range map[string]struct{ text, say string }{
		"empty":     {"", "it is empty"},
		"no JSON":   {"{\n  \"items\": [\n    {\"dispatch\": \"1\",}\n  ]\n}", "board.json:3"},
		"cut off":   {`{"v":1,"items":[{"dispatch":"1"`, "no JSON"},
		"a BOM":     {"\xef\xbb\xbf{}", "byte order mark"},
		"an array":  {"[]", "no JSON object"},
		"no items":  {`{"v":1}`, "array of items"},
		"bad items": {`{"v":1,"items":{}}`, "array of items"},
		"newer":     {`{"v":2,"items":[]}`, "newer stile"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t)
			id := open(t, e, "ada", "before")
			log := read(t, e.LogPath("ada"))
			write(t, e.boardPath("ada"), c.text)
			_, oerr := e.OpenDispatch(t.Context(), "ada", Task{Text: "x"})
			_, cerr := e.CloseDispatch(t.Context(), "ada", id, Outcome{Status: Done})
			_, rerr := e.Repair(t.Context(), "ada")
			_, serr := e.Board("ada")
			for _, err := range []error{oerr, cerr, rerr, serr} {
				var fe *FileError
				if !errors.Is(err, ErrBoard) || !errors.As(err, &fe) || !strings.Contains(err.Error(), c.say) || errors.Is(err, ErrNewerBoard) != (name == "newer") {
					t.Errorf("got %v", err)
				}
			}
			if k := kinds(t, e); len(k) != 1 || k[0] != "unreadable-board " {
				t.Errorf("check says %q", k)
			}
			if read(t, e.LogPath("ada")) != log || read(t, e.boardPath("ada")) != c.text {
				t.Error("something was changed")
			}
			only(t, e, "ada")
		})
	}
}

func TestDuplicateIDs(t *testing.T) {
	e := newEstate(t)
	text := `[{"id":"1","status":"open"},{"id":"1","status":"open"}]`
	write(t, e.LogPath("ada"), text)
	for _, agent := range []string{"", "ada"} {
		if _, err := e.CloseDispatch(t.Context(), agent, "1", Outcome{Status: Done}); !errors.Is(err, ErrDuplicate) {
			t.Errorf("close: %v", err)
		}
	}
	if _, _, err := e.Find("", "1"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("find: %v", err)
	}
	if k := kinds(t, e); !slices.Equal(k, []string{"unreadable-log "}) {
		t.Errorf("check says %q", k)
	}
	if read(t, e.LogPath("ada")) != text {
		t.Error("something was changed")
	}
}

func TestBadTexts(t *testing.T) {
	e := newEstate(t)
	for name, task := range map[string]Task{
		"empty": {}, "long": {Text: strings.Repeat("x", MaxText+1)}, "not UTF-8": {Text: "\xff"},
		"worker": {Text: "x", Worker: "\xff"}, "label": {Text: "x", Labels: map[string]string{"": "v"}},
	} {
		if _, err := e.OpenDispatch(t.Context(), "ada", task); !errors.Is(err, ErrText) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.CloseDispatch(t.Context(), "ada", "1", Outcome{Status: Open}); !errors.Is(err, ErrText) {
		t.Errorf("status: %v", err)
	}
	for _, name := range []string{"..", "a/b", "", "a\x1b", strings.Repeat("a", 241), "/etc"} {
		if _, err := e.OpenDispatch(t.Context(), name, Task{Text: "x"}); !errors.Is(err, ErrName) {
			t.Errorf("agent %q: %v", name, err)
		}
	}
	if names, err := e.Agents(); err != nil || len(names) > 0 {
		t.Errorf("agents %q, %v", names, err)
	}
	text := strings.Repeat("\x01", MaxText)
	for range 2 { // such a line is longer than the end of a log that is looked at
		if _, err := e.OpenDispatch(t.Context(), "ada", Task{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, e.Records("ada", func(r Record) error {
		if r.Task != text {
			t.Error("a long task comes back otherwise")
		}
		return nil
	}))
}

// A lock that is lost between log and board: the record stays, the board is left, the error names the
// dispatch, and check does.
func TestLockLostBeforeTheBoard(t *testing.T) {
	e := newEstate(t)
	first := open(t, e, "ada", "first")
	board := read(t, e.boardPath("ada"))
	for _, closing := range []bool{false, true} {
		renamed := false
		e.seams = &seam.Set{OnStep: func(s seam.Step) {
			if s == seam.CommitRenamed && !renamed {
				renamed = true
				_, err := lockfile.Unlock(context.Background(), e.LogPath("ada"), lockfile.UnlockOptions{Force: true})
				must(t, err)
			}
		}}
		var r Record
		var err error
		if closing {
			r, err = e.CloseDispatch(t.Context(), "ada", first, Outcome{Status: Done})
		} else {
			r, err = e.OpenDispatch(t.Context(), "ada", Task{Text: "second"})
		}
		e.seams = nil
		var landed *LandedError
		if !errors.Is(err, lockfile.ErrLost) || !errors.Is(err, ErrLanded) || !errors.As(err, &landed) || landed.ID != r.ID || landed.Opened == closing || !landed.Board {
			t.Fatalf("got %v", err)
		}
		if read(t, e.boardPath("ada")) != board {
			t.Error("the board was written without the lock")
		}
		want := "dispatch-not-on-board " + r.ID
		if closing {
			want = "item-behind " + r.ID
		}
		if k := kinds(t, e); !slices.Equal(k, []string{want}) {
			t.Errorf("check says %q, want %q", k, want)
		}
		done, err := e.Repair(t.Context(), "ada")
		must(t, err)
		if n := len(done.Added) + len(done.Moved); n != 1 {
			t.Errorf("repaired %+v", done)
		}
		if k := kinds(t, e); k != nil {
			t.Errorf("after the repair check says %q", k)
		}
		board = read(t, e.boardPath("ada"))
		only(t, e, "ada")
	}
}

func TestCheckKinds(t *testing.T) {
	e := newEstate(t)
	id := open(t, e, "ada", "x")
	write(t, e.LogPath("bob"), `[{"id":"b-1","task":"t","status":"done"},{"id":"b-2"},{"id":"b-3","status":"failed"}]`)
	write(t, e.boardPath("bob"), `{"items":[{"dispatch":"b-1","column":"todo"},{"title":"a note"},{"dispatch":"gone"}]}`)
	before := read(t, e.boardPath("bob"))
	if k, want := kinds(t, e), []string{"item-behind b-1", "item-without-dispatch gone", "dispatch-not-on-board b-2", "dispatch-not-on-board b-3"}; !slices.Equal(k, want) {
		t.Errorf("check says %q", k)
	}
	if read(t, e.boardPath("bob")) != before {
		t.Error("check has changed the board")
	}
	done, err := e.Repair(t.Context(), "bob")
	must(t, err)
	if !slices.Equal(done.Added, []string{"b-2", "b-3"}) || !slices.Equal(done.Moved, []string{"b-1"}) {
		t.Errorf("repaired %+v", done)
	}
	if k := kinds(t, e); !slices.Equal(k, []string{"item-without-dispatch gone"}) {
		t.Errorf("after the repair check says %q", k)
	}
	items, err := e.Board("bob")
	must(t, err)
	if len(items) != 5 || items[3].Column != Todo || items[4].Column != Closed {
		t.Errorf("the board holds %+v", items)
	}
	done, err = e.Repair(t.Context(), "ada")
	must(t, err)
	if done.Added != nil || done.Moved != nil {
		t.Errorf("nothing to do, and %+v of %s", done, id)
	}
}

// The line about a held lock stays in its bounds, and leads with the command, whatever the lock says.
func TestHeldLineBounds(t *testing.T) {
	e := newEstate(t)
	agent := strings.Repeat("a", 240)
	open(t, e, agent, "x")
	for pid, limit := range map[int64]int{9223372036854775807: 362, 1234567: 346} {
		write(t, e.LogPath(agent)+".lock", fmt.Sprintf(`{"pid":%d,"hostname":"%s","token":"0123456789abcdef01234567","acquiredAt":"%s"}`,
			pid, strings.Repeat("h", 255), strings.Repeat("9", 100)))
		old := lockTime(t, e.LogPath(agent)+".lock")
		f, err := e.Check(agent)
		must(t, err)
		if len(f.Problems) != 1 || f.Problems[0].Kind != LockHeld {
			t.Fatalf("check says %v (lock of %s)", f.Problems, old)
		}
		line := f.Problems[0].String()
		if len([]rune(line)) > limit || !strings.HasPrefix(line, fmt.Sprintf("stile dispatch unlock: lock held by pid %d", pid)) {
			t.Errorf("%d characters: %s", len([]rune(line)), line)
		}
		if f.Problems[0].Lock.Holder.Hostname != strings.Repeat("h", 255) {
			t.Error("the host is cut in the value, too")
		}
		e.Timeout = -1
		_, err = e.OpenDispatch(t.Context(), agent, Task{Text: "y"})
		if !errors.Is(err, lockfile.ErrHeld) || !strings.Contains(err.Error(), "stile dispatch unlock --force --agent "+agent) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the refusal is %v", err)
		}
	}
}

// lockTime makes a lock an hour old.
func lockTime(t *testing.T, path string) string {
	t.Helper()
	is, err := os.Stat(path)
	must(t, err)
	old := is.ModTime().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	return old.String()
}
