package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a throw-away module of one package a name, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.test/m\n\ngo 1.26\n")
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sum runs testsum on a module of its own and returns the exit code and what it printed.
func sum(t *testing.T, dir string, noSkip bool, args ...string) (int, string) {
	t.Helper()
	var out, errs strings.Builder
	s := newSummary(&out, false)
	s.goTest(dir, args, &errs)
	code := s.finish(noSkip)
	if t.Failed() {
		t.Log(errs.String())
	}
	return code, out.String() + errs.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[len(lines)-1]
}

const testHead = "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _ = os.Args, time.Second\n\n"

func TestRealRuns(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	for _, c := range []struct {
		name   string
		files  map[string]string
		args   []string
		noSkip bool
		code   int
		last   string
		want   []string
		not    []string
	}{
		{
			name: "subtests count and passing tests are quiet",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {
				t.Log("quiet words")
				t.Run("one", func(t *testing.T) {})
				t.Run("two", func(t *testing.T) {})
			}`},
			last: "3 passed, 0 failed, 0 skipped",
			want: []string{"example.test/m  3 passed"},
			not:  []string{"quiet words"},
		},
		{
			name: "a failing test is shown whole, its passing neighbour not",
			files: map[string]string{"p_test.go": testHead + `func TestGood(t *testing.T) { t.Log("quiet words") }
				func TestBad(t *testing.T) { t.Log("before it"); os.Stdout.WriteString("raw words"); t.Run("sub", func(t *testing.T) { t.Error("the cause") }) }`},
			code: 1,
			last: "1 passed, 2 failed, 0 skipped",
			want: []string{"before it", "raw words", "the cause", "failed:\n  example.test/m TestBad/sub\n  example.test/m TestBad\n"},
			not:  []string{"quiet words"},
		},
		{
			name: "a skip is named with its reason",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) { t.Run("b", func(t *testing.T) { t.Skip("wine64 is missing") }) }
				func TestMute(t *testing.T) { t.SkipNow() }`},
			last: "1 passed, 0 failed, 2 skipped",
			want: []string{"  example.test/m TestA/b: wine64 is missing\n", "  example.test/m TestMute: no reason given\n"},
			not:  []string{"STILE_NO_SKIP"},
		},
		{
			name:   "a skip fails a run that allows none",
			files:  map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) { t.Skip("no disk") }`},
			noSkip: true,
			code:   1,
			last:   "0 passed, 0 failed, 1 skipped",
			want:   []string{"STILE_NO_SKIP"},
		},
		{
			name: "a build failure counts, and the other package still runs",
			files: map[string]string{
				"bad/bad.go":       "package bad\n\nfunc F() { undefinedThing() }\n",
				"bad/bad_test.go":  "package bad\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {}\n",
				"good/ok_test.go":  testHead + `func TestA(t *testing.T) {}`,
				"user/use_test.go": "package user\n\nimport (\n\t\"testing\"\n\n\t\"example.test/m/bad\"\n)\n\nfunc TestF(t *testing.T) { bad.F() }\n",
			},
			code: 1,
			last: "1 passed, 2 failed, 0 skipped",
			want: []string{"undefined: undefinedThing", "(build of example.test/m/bad"},
		},
		{
			name:  "an import of nothing counts",
			files: map[string]string{"p_test.go": "package p\n\nimport _ \"example.test/m/nowhere\"\n"},
			code:  1,
			last:  "0 passed, 1 failed, 0 skipped",
			want:  []string{"example.test/m/nowhere"},
		},
		{
			name:  "what vet refuses counts",
			files: map[string]string{"p_test.go": "package p\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) { fmt.Printf(\"%d\\n\", \"x\") }\n"},
			code:  1,
			last:  "0 passed, 1 failed, 0 skipped",
			want:  []string{"wrong type string"},
		},
		{
			name: "a panic fails every test it took along",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {}
				func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { go panic("gone wrong"); select {} }) }
				func TestC(t *testing.T) {}`},
			code: 1,
			last: "1 passed, 2 failed, 0 skipped",
			want: []string{"gone wrong", "goroutine "},
		},
		{
			name:  "a timeout fails the test that hung",
			files: map[string]string{"p_test.go": testHead + `func TestHangs(t *testing.T) { <-make(chan int); time.Sleep(time.Hour) }`},
			args:  []string{"-timeout=500ms"},
			code:  1,
			last:  "0 passed, 1 failed, 0 skipped",
			want:  []string{"test timed out", "TestHangs"},
		},
		{
			name: "an exit outside any test counts",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {}
				func TestMain(m *testing.M) { m.Run(); os.Stdout.WriteString("leaving\n"); os.Exit(3) }`},
			code: 1,
			last: "1 passed, 1 failed, 0 skipped",
			want: []string{"leaving", "outside any test"},
		},
		{
			name: "a package without tests is no skip and no failure",
			files: map[string]string{
				"none/none.go": "package none\n",
				"p_test.go":    testHead + `func TestA(t *testing.T) {}`,
			},
			last: "1 passed, 0 failed, 0 skipped",
			want: []string{"example.test/m/none  no tests"},
		},
		{
			name:  "nothing but packages without tests is no success",
			files: map[string]string{"none/none.go": "package none\n"},
			code:  1,
			last:  "0 passed, 0 failed, 0 skipped",
			want:  []string{"no test ran"},
		},
		{
			name:  "go test that cannot start its work counts",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {}`},
			args:  []string{"-no-such-flag"},
			code:  1,
			last:  "0 passed, 1 failed, 0 skipped",
		},
		{
			name: "a run of each count is counted",
			files: map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {}
				func BenchmarkA(b *testing.B) {}`},
			args: []string{"-count=3", "-bench=."},
			last: "3 passed, 0 failed, 0 skipped",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out := sum(t, module(t, c.files), c.noSkip, append(c.args, "./...")...)
			if code != c.code || !strings.Contains(out, c.last+"\n") {
				t.Errorf("exit code %d, want %d; last line %q, want %q", code, c.code, lastLine(out), c.last)
			}
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					t.Errorf("not in the output: %q", w)
				}
			}
			for _, w := range c.not {
				if strings.Contains(out, w) {
					t.Errorf("in the output: %q", w)
				}
			}
			if t.Failed() {
				t.Logf("the output:\n%s", out)
			}
		})
	}
}

// What cannot be had from a real run at will: a stream cut short, lines that are no events.
func TestStreams(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	const begun = `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
	const ended = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"p"}` + "\n"
	for _, c := range []struct {
		name, stream string
		code         int
		last         string
		want         []string
	}{
		{"cut short", begun, 1, "0 passed, 1 failed, 0 skipped", []string{"TestA (did not finish)", "ends before this package"}},
		{"cut within a line", begun + `{"Action":"pa`, 1, "0 passed, 1 failed, 0 skipped", []string{`{"Action":"pa` + "\n"}},
		{"cut before any test", `{"Action":"start","Package":"p"}` + "\n" + `{"Action":"output","Package":"p","Output":"said\n"}`, 1, "0 passed, 1 failed, 0 skipped", []string{"said"}},
		{"lines that are no events", "warning: " + long + "\n{not json}\n" + begun + ended, 0, "1 passed, 0 failed, 0 skipped", []string{long, "{not json}"}},
		{"a stray word of a package that passes", begun + `{"Action":"output","Package":"p","Output":"stray\n"}` + "\n" + ended, 0, "1 passed, 0 failed, 0 skipped", []string{"stray"}},
		{"nothing", "", 1, "0 passed, 0 failed, 0 skipped", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			code := run([]string{"-stdin"}, strings.NewReader(c.stream), &out, &out, false)
			if code != c.code || lastLine(out.String()) != c.last {
				t.Errorf("exit code %d, want %d; last line %q, want %q", code, c.code, lastLine(out.String()), c.last)
			}
			for _, w := range c.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("not in the output: %.80q", w)
				}
			}
		})
	}
}

func TestAlsoRunsASecondModule(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	first := module(t, map[string]string{"p_test.go": testHead + `func TestA(t *testing.T) {}`})
	second := module(t, map[string]string{"p_test.go": testHead + `func TestB(t *testing.T) {}`})
	t.Chdir(first)
	var out strings.Builder
	code := run([]string{"-also", second, "-also", t.TempDir(), "--", "./..."}, nil, &out, &out, false)
	if code != 0 || lastLine(out.String()) != "2 passed, 0 failed, 0 skipped" {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}

// The package that is named begins, is tested once, and is not looked for in the second module.
func TestFirstBegins(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	first := module(t, map[string]string{
		"a/a_test.go": "package a\n" + strings.SplitN(testHead, "\n", 2)[1] + `func TestA(t *testing.T) {}`,
		"z/z_test.go": "package z\n" + strings.SplitN(testHead, "\n", 2)[1] + `func TestZ(t *testing.T) {}`,
	})
	second := module(t, map[string]string{"p_test.go": testHead + `func TestB(t *testing.T) {}`})
	t.Chdir(first)
	var out strings.Builder
	code := run([]string{"-first", "./z", "-also", second, "--", "-p=1", "-count=1", "./..."}, nil, &out, &out, false)
	a, z := strings.Index(out.String(), "/a "), strings.Index(out.String(), "/z ")
	if code != 0 || lastLine(out.String()) != "3 passed, 0 failed, 0 skipped" || z < 0 || a < z {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}

func TestVerboseShowsWhatPassed(t *testing.T) {
	var out strings.Builder
	stream := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"the words\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`
	if code := run([]string{"-v", "-stdin"}, strings.NewReader(stream), &out, &out, true); code != 0 || !strings.Contains(out.String(), "the words") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
