package record

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/stile-lock/stile/internal/vfs"
)

// place is where in the end of an array's text a record can be added.
type place struct {
	cut    int    // behind the last element, or behind the "[" of an empty array
	before []byte // what goes between there and the record
	after  []byte // what goes between the record and what was there, which begins at rest
	rest   int
}

// write writes the text with the record in it.
func (p place) write(w io.Writer, text, line []byte) error {
	if err := vfs.WriteAll(w, text[:p.cut]); err != nil {
		return err
	}
	return vfs.WriteAll(w, concat(p.before, line, p.after, text[p.rest:]))
}

// quickPlace finds the place from the end of the text alone, which begins at offset at of a file whose
// first byte is "[". It finds none unless the last element is a line of its own: a raw newline cannot
// lie inside a JSON string, so what parses between two of them is a value and no part of one, and the
// "]" that follows closes an array around it. That this is the outermost is known of a whole file
// only; what comes before the line must at least be a comma, or the file's first byte.
func quickPlace(text []byte, at int64) (place, bool) {
	end, last, ok := tailOf(text)
	if !ok {
		return place{}, false
	}
	if last >= 0 && int64(last)+at == 0 { // nothing but the first byte
		return emptyPlace(last, end), true
	}
	newline := bytes.LastIndexByte(text[:last+1], '\n')
	if newline < 0 {
		return place{}, false
	}
	value := bytes.TrimLeft(text[newline+1:last+1], blanks)
	if len(value) == 0 || !json.Valid(value) {
		return place{}, false
	}
	switch before := lastInk(text[:newline]); {
	case before < 0:
		return place{}, false
	case text[before] != ',' && !(text[before] == '[' && int64(before)+at == 0):
		return place{}, false
	}
	return linePlace(text, last), true
}

// checkedPlace reads the whole text, and finds the place if it is a JSON array.
func checkedPlace(path string, text []byte) (place, error) {
	first := len(text) - len(bytes.TrimLeft(text, blanks))
	switch {
	case first == len(text):
		return place{}, badFile(path, text, int64(first), "no JSON array: the file is empty")
	case bytes.HasPrefix(text, byteOrderMark):
		return place{}, badFile(path, text, 0, "no JSON array: it begins with a byte order mark")
	case text[first] != '[':
		return place{}, badFile(path, text, int64(first), "no JSON array: it begins with %q", text[first])
	}
	if offset, err := checkJSON(text); err != nil {
		return place{}, badFile(path, text, offset, "no JSON array: %v", err)
	}
	end, last, _ := tailOf(text)
	if last == first {
		return emptyPlace(last, end), nil
	}
	if bytes.IndexByte(text[last+1:end], '\n') < 0 {
		return place{cut: last + 1, before: []byte(","), rest: last + 1}, nil
	}
	return linePlace(text, last), nil
}

// byteOrderMark is what some editors put before a text. JSON has no place for it.
var byteOrderMark = []byte("\xef\xbb\xbf")

// tailOf finds the closing bracket and the last byte before it that is no blank.
func tailOf(text []byte) (end, last int, ok bool) {
	end = lastInk(text)
	if end < 0 || text[end] != ']' {
		return 0, 0, false
	}
	last = lastInk(text[:end])
	return end, last, last >= 0
}

// linePlace adds a line like the one whose last byte is at last.
func linePlace(text []byte, last int) place {
	newline := bytes.LastIndexByte(text[:last+1], '\n')
	line := text[newline+1 : last+1]
	indent := line[:len(line)-len(bytes.TrimLeft(line, blanks))]
	return place{cut: last + 1, before: concat([]byte(","), lineEnd(text[:newline+1]), indent), rest: last + 1}
}

// lineEnd is how the text ends its lines.
func lineEnd(text []byte) []byte {
	if bytes.HasSuffix(text, []byte("\r\n")) {
		return []byte("\r\n")
	}
	return []byte("\n")
}

// emptyPlace makes an array without elements one of a record a line.
func emptyPlace(open, end int) place {
	return place{cut: open + 1, before: []byte("\n  "), after: []byte("\n"), rest: end}
}

// blanks are what JSON allows between its tokens.
const blanks = " \t\r\n"

// lastInk is the index of the last byte that is no blank, or -1.
func lastInk(text []byte) int { return len(bytes.TrimRight(text, blanks)) - 1 }
