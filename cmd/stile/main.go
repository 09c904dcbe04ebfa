// The runtime need not follow the control group's limits: this tool waits far
// more than it computes. (It reads them at the start all the same.)
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command stile lets one writer at a time through to shared files.
//
// Each verb has a file of its own. The exit codes and the JSON shapes are
// contracts, written down in docs/cli.md. The tool links no net/http and
// builds nothing at start-up that the verb at hand does not need: "stile run"
// stands in front of every command that its users run.
package main

import "os"

func main() {
	os.Exit(afterOutput(stile(os.Args[1:])))
}

// stile runs one command line and returns its exit code.
func stile(args []string) int {
	if len(args) == 0 {
		printOverview(os.Stderr)
		return exitFailed
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "--help", "-h":
		return cmdHelp(rest, stdout, os.Stderr)
	case "--version", "-V":
		return cmdVersion(rest)
	case childVerb:
		return cmdChild(rest)
	}
	v, ok := findVerb(name)
	if !ok {
		return unknownVerb(name, os.Stderr)
	}
	if v.subs != nil {
		return runGroup(&v, rest)
	}
	if asksHelp(&v, rest) {
		v.printHelp(stdout)
		return 0
	}
	return v.run(rest)
}

// asksHelp says whether --help or -h stands among the verb's own flags. It
// must not be read out of the arguments of a command that "run" starts.
func asksHelp(v *verb, args []string) bool {
	options := v.flags()
	operands := 0 // that may stand before the command
	if v.name == "grant run" {
		operands = 1
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--help" || a == "-h":
			return true
		case a == "--" || len(a) < 2 || a[0] != '-':
			if v.name == "run" || v.name == "edit" || v.name == "grant run" && operands == 0 || a == "--" {
				return false
			}
			operands--
		default:
			if takesNext(a, options) {
				i++
			}
		}
	}
	return false
}

// takesNext says whether the flag argument a consumes the one after it.
func takesNext(a string, options []option) bool {
	if len(a) > 2 && a[:2] == "--" {
		o := findOption(options, a[2:])
		return o != nil && o.arg != ""
	}
	for i := 1; i < len(a); i++ {
		o := findOption(options, a[i:i+1])
		if o == nil {
			return false
		}
		if o.arg != "" {
			return i == len(a)-1
		}
	}
	return false
}
