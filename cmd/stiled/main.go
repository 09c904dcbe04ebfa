// Command stiled serves an estate over HTTP, keeps the tokens of those who may use it, and is the client through which
// the tool reaches a service elsewhere. What weighs is linked here, so that stile need not have it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/stile-lock/stile/internal/display"
)

// The exit codes: docs/cli.md.
const (
	exitOK      = 0
	exitFailed  = 1 // usage, or it could not be done
	exitRefused = 2 // another server serves the estate
)

// verb is one subcommand.
type verb struct {
	name, brief, synopsis, detail, example string
	run                                    func(v *verb, args []string) error
}

func verbs() []verb { return []verb{serveVerb(), tokenVerb(), clientVerb()} }

func main() { os.Exit(stiled(os.Args[1:])) }

// stiled runs one command line, and returns its exit code.
func stiled(args []string) int {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		out, code := io.Writer(os.Stdout), exitOK
		if len(args) == 0 {
			out, code = os.Stderr, exitFailed
		}
		fmt.Fprint(out, "Usage: stiled VERB [flags]\n\n")
		for _, v := range verbs() {
			fmt.Fprintf(out, "  %-8s %s\n", v.name, v.brief)
		}
		fmt.Fprint(out, "\n'stiled VERB --help' tells more.\n")
		return code
	}
	if args[0] == "--version" || args[0] == "-V" {
		fmt.Println("stiled " + version())
		return exitOK
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			return v.end(v.run(&v, args[1:]))
		}
	}
	fmt.Fprintf(os.Stderr, "stiled: unknown verb %s\n  hint: stiled --help\n", display.Text(args[0]))
	return exitFailed
}

// hinted is an error with the one command that helps.
type hinted struct {
	error
	hint string
	code int
}

func (h *hinted) Unwrap() error { return h.error }

func hint(err error, text string) error { return &hinted{err, text, exitFailed} }

// end reports a verb's error.
func (v *verb) end(err error) int {
	var h *hinted
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		v.help(os.Stdout)
		return exitOK
	}
	fmt.Fprintf(os.Stderr, "stiled: %s\n", display.Text(err.Error()))
	if errors.As(err, &h) {
		if h.hint != "" {
			fmt.Fprintf(os.Stderr, "  hint: %s\n", display.Text(h.hint))
		}
		return h.code
	}
	return exitFailed
}

func (v *verb) help(w io.Writer) {
	fmt.Fprintf(w, "Usage: stiled %s %s\n\n%s\n\nExample:\n%s\n", v.name, v.synopsis, v.detail, v.example)
}

// flags is a set of flags that says nothing by itself.
func flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads flags, and wants so many operands.
func (v *verb) parse(f *flag.FlagSet, args []string, operands int) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return hint(err, "stiled "+v.name+" --help")
	}
	if f.NArg() != operands {
		return hint(fmt.Errorf("%d operands, not %d", f.NArg(), operands), "stiled "+v.name+" "+v.synopsis)
	}
	return nil
}
