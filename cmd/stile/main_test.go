package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the tool: "stile" in scripts and in tests is
// this very code in a process of its own. "helper" plays the commands that
// run under locks.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"stile":  main,
		"helper": helperMain,
	})
}

// scriptsFor lists the scripts that are for this system: all but those whose
// first line says which one they are for, when that is another. They are no
// skipped tests, since no machine could run all.
func scriptsFor(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal("no scripts: ", err)
	}
	var ours []string
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		system, ok := strings.CutPrefix(string(b), "[!")
		system, _, _ = strings.Cut(system, "] skip ")
		if !ok || system == runtime.GOOS || system == "unix" && runtime.GOOS != "windows" {
			ours = append(ours, name)
		}
	}
	return ours
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: scriptsFor(t),
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"STILE_AGENT", "LOOPX_AGENT_ID", "STILE_HELD", "STILE_ESTATE", "SHELL"} {
				e.Setenv(name, "")
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    scriptCode,
			"any":     scriptAny,
			"waitfor": scriptWaitFor,
			"shape":   scriptShape,
			"holds":   scriptHolds,
			"absent":  scriptAbsent,
		},
		Condition: func(cond string) (bool, error) {
			if name, ok := strings.CutPrefix(cond, "can:"); ok {
				_, err := exec.LookPath(name)
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// code N ARGS… runs a command that must end with exit code N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = fmt.Sprint(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// any ARGS… runs a command that may end with any exit code.
func scriptAny(ts *testscript.TestScript, neg bool, args []string) {
	var exit *exec.ExitError
	if err := ts.Exec(args[0], args[1:]...); err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
}

// waitfor FILE waits until FILE exists.
func scriptWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if !poll(func() bool { return exists(ts.MkAbs(args[0])) }) {
		ts.Fatalf("%s never came", args[0])
	}
}

// shape SOURCE GOLDEN compares the form of a JSON document, with every value
// replaced by its type, with a golden file.
func scriptShape(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is not one JSON document: %v", args[0], err)
	}
	var b bytes.Buffer
	writeShape(&b, v, "")
	if got, want := b.String()+"\n", ts.ReadFile(args[1]); got != want {
		ts.Fatalf("shape of %s is\n%swant\n%s", args[0], got, want)
	}
}

func writeShape(b *bytes.Buffer, v any, indent string) {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		b.WriteString("{")
		for _, name := range names {
			fmt.Fprintf(b, "\n%s  %s: ", indent, name)
			writeShape(b, v[name], indent+"  ")
		}
		if len(names) > 0 {
			b.WriteString("\n" + indent)
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		if len(v) > 0 {
			writeShape(b, v[0], indent)
		}
		b.WriteString("]")
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprintf(b, "%T", v)
	}
}

// holds FILE TEXT says that the file's bytes are exactly TEXT and a newline.
func scriptHolds(ts *testscript.TestScript, neg bool, args []string) {
	if got := ts.ReadFile(args[0]); (got == args[1]+"\n") == neg {
		ts.Fatalf("%s holds %q", args[0], got)
	}
}

// absent PATTERN says that no file matches.
func scriptAbsent(ts *testscript.TestScript, neg bool, args []string) {
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	if err != nil || len(found) > 0 {
		ts.Fatalf("found %v, %v", found, err)
	}
}

// helperMain is the commands that run under locks in tests.
func helperMain() {
	args := os.Args[1:]
	if len(args) == 0 {
		os.Exit(99)
	}
	switch args[0] {
	case "exit":
		// exit N
		var n int
		_, _ = fmt.Sscan(args[1], &n)
		os.Exit(n)
	case "stay":
		// stay READY: makes the file READY and lives until it is killed. A
		// minute bounds what a test leaves behind that died itself.
		must(os.WriteFile(args[1], nil, 0o600))
		<-time.After(time.Minute)
	case "remove":
		must(os.Remove(args[1]))
	case "leave":
		// leave READY: leaves a "stay" behind and ends.
		cmd := exec.Command(os.Args[0], "stay", args[1])
		must(cmd.Start())
		must(os.WriteFile(args[1]+".pid", fmt.Appendf(nil, "%d", cmd.Process.Pid), 0o600))
		poll(func() bool { return exists(args[1]) })
	default:
		if !systemHelper(args) {
			os.Exit(99)
		}
	}
}

// poll waits for a state that no event announces.
func poll(ok func() bool) bool {
	for deadline := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // between two looks, not instead of one
	}
	return true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(98)
	}
}
