package repo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPromisesNameTests checks that every test which the documents name
// exists, and that every promise in docs/guarantees.md names one.
func TestPromisesNameTests(t *testing.T) {
	known, docs := map[string]bool{}, map[string]string{}
	eachFile(t, root(t), func(path string, text []byte) {
		switch {
		case strings.HasSuffix(path, "_test.go"):
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				known[string(m[1])] = true
			}
		case strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".md"):
			docs[path] = string(text)
		}
	})
	if _, ok := docs["docs/guarantees.md"]; !ok {
		t.Error("no docs/guarantees.md")
	}
	for path, text := range docs {
		for _, fault := range promiseFaults(text, known, path == "docs/guarantees.md") {
			t.Errorf("%s: %s", path, fault)
		}
	}
}

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z0-9]\w*)\(`)
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z0-9][A-Za-z0-9_]*)`")
)

// promiseFaults lists the tests that text names and that do not exist. In a
// list of promises each row of a table must name one.
func promiseFaults(text string, known map[string]bool, promises bool) []string {
	var faults []string
	for i, line := range strings.Split(text, "\n") {
		names := testName.FindAllStringSubmatch(line, -1)
		for _, m := range names {
			if !known[m[1]] {
				faults = append(faults, fmt.Sprintf("line %d names %s, which does not exist", i+1, m[1]))
			}
		}
		row := strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| Promise")
		if promises && row && len(names) == 0 {
			faults = append(faults, fmt.Sprintf("line %d promises without a test", i+1))
		}
	}
	return faults
}

func TestPromiseFaults(t *testing.T) {
	known := map[string]bool{"TestThere": true}
	for text, want := range map[string]int{
		"| it holds | `TestThere` |":     0,
		"| it holds | `TestGone` |":      1,
		"| it holds | trust me |":        1,
		"| Promise | Test |\n|---|---|":  0,
		"prose about `TestGone` and all": 1,
	} {
		if got := promiseFaults(text, known, true); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if !slices.Equal(promiseFaults("| a | b |", known, false), nil) {
		t.Error("a row of another document counts as a promise")
	}
}
