// Command testsum runs go test and reports it for a person and for a machine: a line a package, all the
// output of what failed, every skip with its reason, and as the very last line
//
//	N passed, N failed, N skipped
//
// Subtests count. So does whatever keeps tests from running (a build that fails, a panic, a timeout, a
// package that exits early, a stream cut short): each is counted as failed, because a summary that leaves
// it out would call a broken tree green. It exits 1 when something failed, when no test ran at all, and,
// with STILE_NO_SKIP=1, when something was skipped.
//
//	testsum [-v] [-first PACKAGE]... [-also DIR]... [--] [go test arguments]
//	go test -json ./... | testsum -stdin
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	// Ctrl-C reaches go test as well; we stay to say what had failed by then. Notify, not Ignore: an
	// ignored signal would be inherited by go test and the tests.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if signal.Ignored(syscall.SIGHUP) { // as under nohup: tests of signals would wait for an end that never comes
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv("STILE_NO_SKIP") == "1"))
}

// run is main without the process: what it returns is the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, noSkip bool) int {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(stderr)
	fromStdin := flags.Bool("stdin", false, "read the output of go test -json instead of running it")
	verbose := flags.Bool("v", false, "print the output of tests that pass, too")
	var first []string
	flags.Func("first", "begin with this `PACKAGE` of this module, which takes long; the arguments have to name it too", func(pkg string) error {
		first = append(first, pkg)
		return nil
	})
	dirs := []string{""}
	flags.Func("also", "after this module's tests, run those of the module in `DIR`, when there is one", func(dir string) error {
		dirs = append(dirs, dir)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return 2
	}

	sum := newSummary(stdout, *verbose)
	if *fromStdin {
		if err := sum.read(stdin); err != nil {
			sum.broken("reading standard input", err)
		}
	} else {
		for i, dir := range dirs {
			if i > 0 && !isModule(dir) {
				continue
			}
			args := flags.Args()
			if i == 0 && len(first) > 0 {
				// Packages are tested in the order in which they are named first; flags come before them.
				at := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
				args = slices.Insert(slices.Clone(args), max(at, 0), first...)
			}
			sum.goTest(dir, args, stderr)
		}
	}
	return sum.finish(noSkip)
}

// isModule tells whether dir is the root of a Go module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// goTest runs go test -json in dir and reads all that it says.
func (s *summary) goTest(dir string, args []string, stderr io.Writer) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.broken("starting go test", err)
		return
	}
	if err := cmd.Start(); err != nil {
		s.broken("starting go test", err)
		return
	}
	failedBefore := len(s.failures)
	if err := s.read(out); err != nil {
		s.broken("reading go test", err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && len(s.failures) > failedBefore:
		// Already told, by the name of what failed.
	default:
		s.broken(fmt.Sprintf("go test in %q", dirName(dir)), err)
	}
}

func dirName(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}
