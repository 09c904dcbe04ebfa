package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of go test -json (go doc test2json; build events: go help buildjson).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string // in a package's fail: the import path whose build failed
}

// testRun is one run of one test; with -count a name has several.
type testRun struct {
	name   string
	output []string
	ended  bool
	failed bool
}

// pkgRun is one package between its start and its end.
type pkgRun struct {
	tests                   []*testRun
	byName                  map[string]*testRun
	output                  []string
	passed, failed, skipped int
}

type skip struct{ pkg, test, reason string }

// summary collects events and prints as it goes.
type summary struct {
	out      io.Writer
	verbose  bool
	running  map[string]*pkgRun
	builds   map[string][]string // output of builds, until told
	passed   int
	failures []string // by name: what the last line counts as failed
	skips    []skip
}

func newSummary(out io.Writer, verbose bool) *summary {
	return &summary{out: out, verbose: verbose, running: map[string]*pkgRun{}, builds: map[string][]string{}}
}

// read takes every event of r until its end. A line that is no event is printed as it came.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r) // not a Scanner: a line may have any length
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if errors.Is(err, io.EOF) {
			s.cutShort()
			return nil
		}
		if err != nil {
			s.cutShort()
			return err
		}
	}
}

func (s *summary) line(line string) {
	var ev event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &ev) != nil || ev.Action == "" {
		s.print(line)
		return
	}
	s.take(ev)
}

func (s *summary) take(ev event) {
	switch {
	case ev.Action == "build-output":
		s.builds[ev.ImportPath] = append(s.builds[ev.ImportPath], ev.Output)
	case ev.Action == "build-fail":
		s.tellBuild(ev.ImportPath)
	case ev.Test != "":
		s.takeTest(s.pkg(ev.Package), ev)
	default:
		s.takePackage(ev)
	}
}

func (s *summary) pkg(name string) *pkgRun {
	p := s.running[name]
	if p == nil {
		p = &pkgRun{byName: map[string]*testRun{}}
		s.running[name] = p
	}
	return p
}

func (s *summary) takeTest(p *pkgRun, ev event) {
	t := p.byName[ev.Test]
	if t == nil || ev.Action == "run" {
		t = &testRun{name: ev.Test}
		p.byName[ev.Test] = t
		p.tests = append(p.tests, t)
	}
	switch ev.Action {
	case "output":
		t.output = append(t.output, ev.Output)
	case "pass":
		t.ended = true
		s.passed++
		p.passed++
		if !s.verbose {
			t.output = nil
		}
	case "bench":
		t.ended = true
	case "fail":
		t.ended, t.failed = true, true
		s.fail(p, ev.Package, ev.Test)
	case "skip":
		t.ended = true
		p.skipped++
		s.skips = append(s.skips, skip{ev.Package, ev.Test, skipReason(t.output)})
		if !s.verbose {
			t.output = nil
		}
	}
}

func (s *summary) fail(p *pkgRun, pkg, what string) {
	p.failed++
	s.failures = append(s.failures, pkg+" "+what)
}

func (s *summary) takePackage(ev event) {
	p := s.pkg(ev.Package)
	switch ev.Action {
	case "output":
		p.output = append(p.output, ev.Output)
	case "pass", "fail", "skip":
		s.endPackage(p, ev)
		delete(s.running, ev.Package)
	}
}

func (s *summary) endPackage(p *pkgRun, ev event) {
	// A test that began and never ended was under way when a panic, a timeout or an exit took the process.
	// Benchmarks that do well have no end in the stream, only the package has.
	for _, t := range p.tests {
		if !t.ended && !(ev.Action == "pass" && strings.HasPrefix(t.name, "Benchmark")) {
			t.failed = true
			s.fail(p, ev.Package, t.name+" (did not finish)")
		}
	}
	switch {
	case ev.FailedBuild != "":
		s.tellBuild(ev.FailedBuild)
		s.fail(p, ev.Package, "(build of "+ev.FailedBuild+")")
	case ev.Action == "fail" && p.failed == 0:
		s.fail(p, ev.Package, "(the package, outside any test)")
	}
	word := "ok"
	if p.failed > 0 {
		word = "FAIL"
	}
	if ev.Action == "skip" || (p.failed == 0 && len(p.tests) == 0) {
		s.printf("%-4s %8s  %s  no tests\n", "-", "", ev.Package)
	} else {
		s.printf("%-4s %7.2fs  %s  %s\n", word, ev.Elapsed, ev.Package, counts(p.passed, p.failed, p.skipped))
	}
	s.tellOutput(p)
}

// tellOutput prints what a package said: all of what failed, and whatever no test can be blamed for.
func (s *summary) tellOutput(p *pkgRun) {
	for _, t := range p.tests {
		// Output that came after a test had passed belongs to something else, a panic for one.
		if t.failed || s.verbose || p.failed > 0 {
			s.print(strings.Join(t.output, ""))
		}
	}
	for _, line := range p.output {
		if p.failed > 0 || s.verbose || !isClosingLine(line) {
			s.print(line)
		}
	}
}

// isClosingLine knows the lines that go test prints at the end of a package in which all went well.
func isClosingLine(line string) bool {
	line = strings.TrimRight(line, "\r\n")
	return line == "PASS" || line == "testing: warning: no tests to run" ||
		strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") ||
		strings.HasPrefix(line, "\t") && strings.Contains(line, "\tcoverage: ") || strings.HasPrefix(line, "coverage: ")
}

func (s *summary) tellBuild(importPath string) {
	if lines := s.builds[importPath]; len(lines) > 0 {
		s.print(strings.Join(lines, ""))
		delete(s.builds, importPath)
	}
}

// cutShort ends every package that began and of which the stream has no end.
func (s *summary) cutShort() {
	names := make([]string, 0, len(s.running))
	for name := range s.running {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s.takePackage(event{Action: "output", Package: name, Output: "testsum: the output of go test ends before this package does\n"})
		s.takePackage(event{Action: "fail", Package: name})
	}
	// Warnings of builds that went well, and output of builds nobody named as failed.
	for path := range s.builds {
		s.tellBuild(path)
	}
}

// broken counts a failure of the run itself, one that no package's events tell of.
func (s *summary) broken(doing string, err error) {
	s.printf("testsum: %s: %v\n", doing, err)
	s.failures = append(s.failures, fmt.Sprintf("%s: %v", doing, err))
}

// finish prints the summary, whose last line is the count, and returns the exit code.
func (s *summary) finish(noSkip bool) int {
	code := 0
	if len(s.skips) > 0 {
		s.printf("\nskipped:\n")
		for _, k := range s.skips {
			s.printf("  %s %s: %s\n", k.pkg, k.test, k.reason)
		}
		if noSkip {
			s.printf("STILE_NO_SKIP is set: a skipped test fails this run\n")
			code = 1
		}
	}
	if len(s.failures) > 0 {
		s.printf("\nfailed:\n")
		for _, f := range s.failures {
			s.printf("  %s\n", f)
		}
		code = 1
	}
	if s.passed+len(s.failures)+len(s.skips) == 0 {
		s.printf("testsum: no test ran\n")
		code = 1
	}
	s.printf("%s\n", counts(s.passed, len(s.failures), len(s.skips)))
	return code
}

func (s *summary) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// print writes text as it is, and ends its last line: no line of ours may be appended to one of a test's.
func (s *summary) print(text string) {
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	s.printf("%s", text)
}

func counts(passed, failed, skipped int) string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", passed, failed, skipped)
}

// skipReason is what a skipped test said, on one line, without the marks and the source position.
func skipReason(output []string) string {
	var words []string
	for _, line := range strings.Split(strings.Join(output, ""), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if file, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(file, ".go:") && !strings.Contains(file, " ") {
			line = rest
		}
		words = append(words, line)
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, "; ")
}
