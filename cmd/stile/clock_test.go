package main

import (
	"context"
	"os"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stile-lock/stile/internal/seam"
)

// testClock names a file with how far the clock of grants is from the world's, for all processes of a script.
const testClock = "STILE_TEST_CLOCK"

// setTestClock gives this process that clock, if there is one.
func setTestClock() {
	if name := os.Getenv(testClock); name != "" {
		grantSeams = &seam.Set{Clock: shiftedClock(name)}
	}
}

// shiftedClock looks into its file each time: a clock may be set under a process that runs.
type shiftedClock string

func (c shiftedClock) Now() time.Time {
	shift := time.Duration(0)
	if b, err := os.ReadFile(string(c)); err == nil {
		if shift, err = time.ParseDuration(string(b)); err != nil {
			panic(err)
		}
	}
	return time.Now().Add(shift)
}

func (c shiftedClock) Sleep(ctx context.Context, d time.Duration) error {
	return (*seam.Set)(nil).Or().Clock.Sleep(ctx, d)
}

// clock DUR sets the clock of grants on, or back (-1h).
func scriptClock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: clock DUR")
	}
	by, err := time.ParseDuration(args[0])
	ts.Check(err)
	name := ts.Getenv(testClock)
	if b, err := os.ReadFile(name); err == nil {
		before, err := time.ParseDuration(string(b))
		ts.Check(err)
		by += before
	}
	// In one step: a process may be reading it.
	ts.Check(os.WriteFile(name+".new", []byte(by.String()), 0o600))
	ts.Check(os.Rename(name+".new", name))
}

// keep NAME PATTERN puts what the last command's output has in the first group of PATTERN into a variable.
func scriptKeep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME PATTERN")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("nothing matches %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}
