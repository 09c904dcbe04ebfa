package jsontext

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestSet(t *testing.T) {
	done := []Pair{{"status", []byte(`"done"`)}, {"result", []byte(`"x"`)}}
	for text, want := range map[string]string{
		`{"id":"1","status":"open","x":[1, {"status":2}]}`: `{"id":"1","status":"done","x":[1, {"status":2}],"result":"x"}`,
		`{}`:                               `{"status":"done","result":"x"}`,
		`{"status":"a","status":"b"}`:      `{"status":"a","status":"done","result":"x"}`,
		`{"Status":"a"}`:                   `{"Status":"a","status":"done","result":"x"}`,
		`{"st\u0061tus":"a"}`:              `{"st\u0061tus":"done","result":"x"}`,
		`{"a": 1, "b": "\\\" }"}`:          `{"a": 1, "b": "\\\" }", "status": "done", "result": "x"}`,
		"{\n  \"a\": 1\n}":                 "{\n  \"a\": 1,\n  \"status\": \"done\",\n  \"result\": \"x\"\n}",
		"{\r\n\t\"a\":null\r\n}":           "{\r\n\t\"a\":null,\r\n\t\"status\":\"done\",\r\n\t\"result\":\"x\"\r\n}",
		" { \"result\" : [ ] } ":           " { \"result\" : \"x\",\"status\": \"done\" } ",
		`{"a":{"b":"]"},"status":{"c":1}}`: `{"a":{"b":"]"},"status":"done","result":"x"}`,
	} {
		got, ok := Set([]byte(text), 0, done...)
		if !ok || string(got) != want || !json.Valid(got) {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
	for _, bad := range []string{"", "[]", `{"a"}`, `{"a":1`, `{"a":"x}`, `{a:1}`, `{"a":1,}`} {
		if got, ok := Set([]byte(bad), 0, done...); ok {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

// What is found in any valid text is what encoding/json decodes; no text makes it leave the text.
func FuzzParts(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, `[1,2,"x]"]`, `[{"a":[{}]},null]`, `{"\"":"\\"}`, `[ ]`, `{"a":{"b":[1,"}"]}}`, `"x"`, "[\n1\n,\n2\n]", `{"a":"\\"}`, `{"x":-1.5e3,"y":true}`, `["`, `{"`, `[\"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, isObject := ObjectAt(text, 0)
		elements, _, isArray := ElementsAt(text, 0)
		if !json.Valid(text) || !utf8.Valid(text) { // keys are compared as they are, not mended
			return
		}
		var array []json.RawMessage
		if err := json.Unmarshal(text, &array); (err == nil && array != nil) != isArray {
			t.Fatalf("%q: an array: %v", text, isArray)
		}
		for i, e := range elements {
			if string(e.Of(text)) != string(array[i]) {
				t.Fatalf("%q: element %d is %q", text, i, e.Of(text))
			}
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); (err == nil && object != nil) != isObject {
			t.Fatalf("%q: an object: %v", text, isObject)
		}
		got := map[string]json.RawMessage{}
		for _, m := range o.Members {
			got[m.Key] = m.Value.Of(text)
		}
		if isObject && len(got) > 0 && !reflect.DeepEqual(got, object) {
			t.Fatalf("%q: members %q, want %q", text, got, object)
		}
	})
}
