package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// The style of the file is kept, whatever it is.
func TestAppendKeepsStyle(t *testing.T) {
	for _, tt := range []struct{ old, want string }{
		{"[]", "[\n  {\"n\":1}\n]"},
		{"[]\n", "[\n  {\"n\":1}\n]\n"},
		{" [ \n\n ] \n", " [\n  {\"n\":1}\n] \n"},
		{"[\n  {\"a\":1}\n]\n", "[\n  {\"a\":1},\n  {\"n\":1}\n]\n"},
		{"[\n\t{\"a\":1}\n]", "[\n\t{\"a\":1},\n\t{\"n\":1}\n]"},
		{"[\r\n  {\"a\":1}\r\n]\r\n", "[\r\n  {\"a\":1},\r\n  {\"n\":1}\r\n]\r\n"},
		{"[\n{\"a\":1},\n{\"b\":2}\n\n]\n", "[\n{\"a\":1},\n{\"b\":2},\n{\"n\":1}\n\n]\n"},
		{"[\n  1,\n  \"]\",\n  null\n]", "[\n  1,\n  \"]\",\n  null,\n  {\"n\":1}\n]"},
		{"[{\"a\":1}]", "[{\"a\":1},{\"n\":1}]"},
		{"[1, 2]\n", "[1, 2,{\"n\":1}]\n"},
		{"[[]]", "[[],{\"n\":1}]"},
		{"[\n[\n]\n]", "[\n[\n],\n{\"n\":1}\n]"},
		{"[\n  {\n    \"a\": [\n      {\"x\": 1}\n    ]\n  }\n]", "[\n  {\n    \"a\": [\n      {\"x\": 1}\n    ]\n  },\n  {\"n\":1}\n]"},
		{"[\n  {\"a\": 1,\n   \"b\": 2}\n]", "[\n  {\"a\": 1,\n   \"b\": 2},\n   {\"n\":1}\n]"},
		{"[\n  {\"a\":1}]\n", "[\n  {\"a\":1},\n  {\"n\":1}]\n"},
		{"[{\"a\":1}\n]", "[{\"a\":1},\n{\"n\":1}\n]"},
	} {
		path := filepath.Join(t.TempDir(), "f")
		put(t, path, tt.old)
		must(t, Append(t.Context(), path, []byte("{ \"n\" :\n 1 }\n"), UpdateOptions{NoSync: true}))
		if got := get(t, path); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.old, got, tt.want)
		}
	}
}

func TestAppendMakesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for i := range 3 {
		must(t, Append(t.Context(), path, fmt.Append(nil, i), UpdateOptions{NoSync: true}))
	}
	holds(t, path, "[\n  0,\n  1,\n  2\n]\n")
}

// A file that is no array is left as it is, and the error names the place.
func TestAppendNamesTheDamage(t *testing.T) {
	for _, tt := range []struct {
		text         string
		line, column int
	}{
		{"", 1, 1},
		{" \n ", 2, 2},
		{"{\"a\":1}", 1, 1},
		{"\n\n  {}", 3, 3},
		{"\xef\xbb\xbf[]", 1, 1},
		{"[\n  {\"a\":1},\n  {\"b\":2},\n]", 4, 1},
		{"[\n  {\"a\":1},\n  {\"b\":2", 3, 9},
		{"[\n  {\"a\":1},\n  {\"b\":2}\n", 4, 1},
		{"[\n  {\"a\":1},\n  {\"b\":2}\n]]", 4, 2},
		{"[\n  {\"a\":1}\n  {\"b\":2}\n]", 3, 3},
		{"[\n  {\"a\":1},\n  {\"b\":2]\n]", 3, 9},
		{"[\n  {\"a\":1},\n  \"half\n]", 3, 8},
		{"[\n  {\"a\":1},\n]\n  {\"b\":2}\n]", 3, 1},
		{"[\n,\n]", 2, 1},
		{"]", 1, 1},
		{"[", 1, 2},
		{"[\x00\n]", 1, 2},
		// Ends that say nothing of the outermost array.
		{"[[\n1\n]", 3, 2},
		{"[[\n]", 2, 2},
		{"[{\"a\":[\n1\n]", 3, 2},
		{"{\"a\":[\n0,\n1\n]", 1, 1},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		put(t, path, tt.text)
		before, err := os.Stat(path)
		must(t, err)
		err = Append(t.Context(), path, []byte("{}"), UpdateOptions{NoSync: true})
		is(t, err, ErrFormat)
		var place *FormatError
		if !errors.As(err, &place) || place.Line != tt.line || place.Column != tt.column || place.Path != path {
			t.Errorf("%q: %v; want line %d, column %d", tt.text, err, tt.line, tt.column)
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%q: the file was replaced", tt.text)
		}
		holds(t, path, tt.text)
		only(t, dir, "f", "f.lock")
	}
}

func TestAppendRefusesBadRecords(t *testing.T) {
	dir := t.TempDir()
	for rec, offset := range map[string]int64{
		"": 0, "{": 1, "{\"a\":}": 5, "1 2": 2, "nul": 3, "\"\xff\"": 1, "[1,]": 3,
	} {
		err := Append(t.Context(), filepath.Join(dir, "f"), []byte(rec), UpdateOptions{})
		is(t, err, ErrRecord)
		var place *FormatError
		if !errors.As(err, &place) || place.Offset != offset {
			t.Errorf("%q: %v; want byte %d", rec, err, offset)
		}
	}
	only(t, dir)
}

// Around every size at which the copying takes another turn, and a last line longer than the end that
// is looked at.
func TestAppendLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, size := range []int{chunkSize - 1, chunkSize, chunkSize + 1, tailSize + 100, chunkSize + tailSize - 1,
		chunkSize + tailSize, chunkSize + tailSize + 1, 3*chunkSize + 17} {
		for _, lineSize := range []int{100, tailSize - 20, tailSize + 20} {
			var b bytes.Buffer
			b.WriteString("[\n")
			n := 0
			for b.Len() < size-lineSize-20 {
				fmt.Fprintf(&b, "  {\"n\":%d},\n", n)
				n++
			}
			fmt.Fprintf(&b, "  {\"last\":%q}", strings.Repeat("x", lineSize))
			b.WriteString(strings.Repeat(" ", max(0, size-b.Len()-3)) + "\n]\n")
			put(t, path, b.String())
			must(t, Append(t.Context(), path, []byte("true"), UpdateOptions{NoSync: true}))
			got := get(t, path)
			var all []any
			must(t, json.Unmarshal([]byte(got), &all))
			if len(all) != n+2 || all[n+1] != true || !strings.HasPrefix(got, b.String()[:b.Len()-lineSize]) {
				t.Errorf("size %d, last line %d: %d elements, want %d", size, lineSize, len(all), n+2)
			}
		}
	}
}

// What is copied and what is held back are the file, and the offset is that of what is held back. A file
// of another size than was measured is no case for looking at its end.
func TestCopyButTail(t *testing.T) {
	for _, size := range []int{1, 100, tailSize - 1, tailSize, tailSize + 1, chunkSize + tailSize, chunkSize + tailSize + 1, 5 * chunkSize} {
		text := bytes.Repeat([]byte("[123456]"), size/8+1)[:size]
		for _, measured := range []int{0, size / 2, size - 1, size, size + 1, 2 * size} {
			var copied bytes.Buffer
			buf := make([]byte, tailSize+1)
			tail, at, err := copyButTail(&copied, iotest.HalfReader(bytes.NewReader(text)), int64(measured), buf)
			if measured != size {
				if !errors.Is(err, errLook) {
					t.Errorf("size %d, measured as %d: %v, want errLook", size, measured, err)
				}
				continue
			}
			must(t, err)
			if at != int64(copied.Len()) || !bytes.Equal(append(copied.Bytes(), tail...), text) || len(tail) != min(size, tailSize) {
				t.Errorf("size %d: %d bytes copied, tail of %d at %d", size, copied.Len(), len(tail), at)
			}
		}
		_, _, err := copyButTail(io.Discard, bytes.NewReader(make([]byte, size)), int64(size), make([]byte, tailSize+1))
		if !errors.Is(err, errLook) {
			t.Errorf("size %d: no bracket at its start: %v, want errLook", size, err)
		}
	}
}

// The file is not decoded when its end says enough: damage before the last line stays, as documented.
// This is what makes Append fast, so the test notices when it stops being so.
func TestAppendLooksAtTheEndAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "[\n  damage,\n  {}\n]\n")
	must(t, Append(t.Context(), path, []byte("1"), UpdateOptions{NoSync: true}))
	holds(t, path, "[\n  damage,\n  {},\n  1\n]\n")
}

// FuzzAppend holds Append to a full decode. An array gets the record, and only it; what is no array
// either keeps its bytes, or was accepted for its last line and then still has every byte of it before
// the record.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		"[]", "[\n]", "[\n  {\"a\":1}\n]\n", "[1,2]", "[\n1,\n2\n]", "[\n{\"a\":[\n{\"x\":1}\n]", "[\"\n{}\n]",
		"[\n\"a\\\n\"\n]", "{}", "[\n  {\n    \"a\": 1\n  }\n]", "[\n1\n]\n]", "[[\n1\n]", "\ufeff[]", "[\n1\n,\n]", "[\n,\n1\n]",
		"[{\"a\":\n1\n]", "[\n-\n1\n]", "[1\n2\n]",
	} {
		f.Add([]byte(seed), []byte(`{"n":1}`))
	}
	f.Add([]byte("[]"), []byte("not json"))
	f.Fuzz(func(t *testing.T, old, rec []byte) {
		mem := vfstest.NewMem("/d")
		mem.Put("/d/f", old, 0o644)
		err := Append(t.Context(), "/d/f", rec, UpdateOptions{
			Lock: &fakeLock{timeout: time.Hour}, NoSync: true, Seams: &seam.Set{FS: mem},
		})
		got, _ := mem.Get("/d/f")
		if names := mem.Names("/d"); len(names) != 1 {
			t.Fatalf("left: %q", names)
		}
		before, isArray := decode(old)
		if err != nil {
			if !bytes.Equal(got, old) {
				t.Fatalf("refused (%v), and %q became %q", err, old, got)
			}
			if isArray && !errors.Is(err, ErrRecord) {
				t.Fatalf("the array %q was refused: %v", old, err)
			}
			return
		}
		if !isArray {
			cut := bytes.LastIndexByte(bytes.TrimRight(old, blanks), ']')
			kept := bytes.TrimRight(old[:max(cut, 0)], blanks)
			if !bytes.HasPrefix(got, kept) || bytes.IndexByte(bytes.TrimSpace(old), '\n') < 0 {
				t.Fatalf("%q is no array and became %q", old, got)
			}
			return
		}
		after, ok := decode(got)
		var want any
		if err := unmarshal(rec, &want); err != nil {
			t.Fatalf("the record %q was accepted: %v", rec, err)
		}
		if !ok || !reflect.DeepEqual(after, append(before, want)) {
			t.Fatalf("%q with %q became %q", old, rec, got)
		}
		if !bytes.HasPrefix(got, bytes.TrimRight(old[:bytes.LastIndexByte(old, ']')], blanks)) {
			t.Fatalf("%q: what was there has changed: %q", old, got)
		}
	})
}

// decode reads a whole JSON array, and nothing else. Numbers stay as they are written.
func decode(text []byte) (array []any, ok bool) {
	var v any
	if unmarshal(text, &v) != nil {
		return nil, false
	}
	array, ok = v.([]any)
	return array, ok
}

func unmarshal(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}
