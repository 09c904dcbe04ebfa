// Package jsontext finds where the parts of a JSON text lie, so that one of them can be replaced and every
// other byte kept.
//
// It guarantees that on a text that is valid JSON what it finds is right, and that on any other it ends,
// inside the text. It does not check that a text is valid: encoding/json does. It decodes nothing but keys,
// which are compared exactly, unlike encoding/json's.
package jsontext

import (
	"bytes"
	"encoding/json"
)

// Span is a part of a text: from Start up to, and not with, End.
type Span struct{ Start, End int }

// Of gives the part of text.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Member is a member of an object.
type Member struct {
	Key   string
	Name  Span // the key with its quotation marks
	Value Span
}

// Object is an object in a text.
type Object struct {
	Members []Member
	Whole   Span // with its braces
}

// Get gives the value of a key; the last one when there are several, as most readers take it.
func (o *Object) Get(key string) (Span, bool) {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Key == key {
			return o.Members[i].Value, true
		}
	}
	return Span{}, false
}

// ObjectAt takes apart the object that begins at or after at, blanks left out. It is not ok when there is
// none.
func ObjectAt(text []byte, at int) (o Object, ok bool) {
	i := blanks(text, at)
	o.Whole, ok = eachPart(text, i, '{', '}', func(i int) (end int, ok bool) {
		name, ok := value(text, i)
		if !ok || text[i] != '"' {
			return 0, false
		}
		colon := blanks(text, name.End)
		if colon >= len(text) || text[colon] != ':' {
			return 0, false
		}
		v, ok := value(text, blanks(text, colon+1))
		if ok {
			o.Members = append(o.Members, Member{key(name.Of(text)), name, v})
		}
		return v.End, ok
	})
	return o, ok
}

// ElementsAt gives the elements of the array that begins at or after at, blanks left out, and the array
// itself, with its brackets. It is not ok when there is none.
func ElementsAt(text []byte, at int) (elements []Span, whole Span, ok bool) {
	whole, ok = eachPart(text, blanks(text, at), '[', ']', func(i int) (end int, ok bool) {
		v, ok := value(text, i)
		if ok {
			elements = append(elements, v)
		}
		return v.End, ok
	})
	return elements, whole, ok
}

// eachPart visits the parts of the object or array at i.
func eachPart(text []byte, i int, open, end byte, part func(i int) (end int, ok bool)) (whole Span, ok bool) {
	if i >= len(text) || text[i] != open {
		return Span{}, false
	}
	whole.Start = i
	i = blanks(text, i+1)
	if i < len(text) && text[i] == end {
		whole.End = i + 1
		return whole, true
	}
	for {
		if i, ok = part(i); !ok {
			return Span{}, false
		}
		i = blanks(text, i)
		switch {
		case i >= len(text):
			return Span{}, false
		case text[i] == end:
			whole.End = i + 1
			return whole, true
		case text[i] != ',':
			return Span{}, false
		}
		i = blanks(text, i+1)
	}
}

func key(name []byte) string {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name[1 : len(name)-1])
	}
	var s string
	if json.Unmarshal(name, &s) != nil {
		return string(name)
	}
	return s
}

// value finds the end of the value that begins at i.
func value(text []byte, i int) (Span, bool) {
	start := i
	if i >= len(text) {
		return Span{}, false
	}
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			if i < 0 {
				return Span{}, false
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return Span{}, false
			}
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return Span{}, false
			}
			i++
		default: // a number or a word
			for i < len(text) && bytes.IndexByte([]byte(",:]}[{\" \t\r\n"), text[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return Span{start, i}, true
		}
	}
	return Span{}, false
}

// stringEnd is behind the quotation mark that ends the string at i, or -1.
func stringEnd(text []byte, i int) int {
	i++
	for {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		slashes := 0
		for j := i - 2; text[j] == '\\'; j-- { // ends at the opening mark
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

func blanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}
