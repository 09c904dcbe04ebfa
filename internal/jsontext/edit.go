package jsontext

import (
	"bytes"
	"slices"
)

// Pair is a member to be set: its key, and its value as JSON.
type Pair struct {
	Key   string
	Value []byte
}

// Set gives the text with members of the object at or after at set, every other byte as it was: a value
// that is there is replaced, where it is; a member that is not is added behind the last one, in its style.
// A key must need no escapes. It is not ok when there is no object.
func Set(text []byte, at int, pairs ...Pair) (changed []byte, ok bool) {
	for _, p := range pairs {
		o, ok := ObjectAt(text, at)
		if !ok {
			return nil, false
		}
		if v, there := o.Get(p.Key); there {
			text = replace(text, v, p.Value)
			continue
		}
		name := `"` + p.Key + `":`
		if len(o.Members) == 0 {
			text = replace(text, Span{o.Whole.Start + 1, o.Whole.Start + 1}, slices.Concat([]byte(name), p.Value))
			continue
		}
		last := o.Members[len(o.Members)-1]
		if text[last.Value.Start-1] == ' ' {
			name += " "
		}
		end := Span{last.Value.End, last.Value.End}
		text = replace(text, end, slices.Concat(Separator(text, last.Name.Start), []byte(name), p.Value))
	}
	return text, true
}

// Separator is what goes between the element or member that begins at start and a next one: where it is
// the first on its line, a comma and such a line's beginning; else a comma, and the blank that follows a
// comma before it.
func Separator(text []byte, start int) []byte {
	lead := len(bytes.TrimRight(text[:start], " \t"))
	indent := text[lead:start]
	switch {
	case lead > 1 && text[lead-1] == '\n' && text[lead-2] == '\r':
		return slices.Concat([]byte(",\r\n"), indent)
	case lead > 0 && text[lead-1] == '\n':
		return slices.Concat([]byte(",\n"), indent)
	case lead > 0 && text[lead-1] == ',' && len(indent) > 0:
		return []byte(", ")
	}
	return []byte(",")
}

func replace(text []byte, s Span, by []byte) []byte {
	return slices.Concat(text[:s.Start], by, text[s.End:])
}
