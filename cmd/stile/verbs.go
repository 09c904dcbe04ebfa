package main

import (
	"fmt"
	"io"
	"strings"
)

// verb is one command of the tool.
type verb struct {
	name     string
	brief    string // one line for the overview
	synopsis string // after "stile NAME"; lines are separate forms
	detail   string // paragraphs for the verb's own help
	examples string
	options  func() []option
	operands string // what completion offers: "FILE", "DIR" or words
	run      func(args []string) int
	subs     func() []verb // of a group, which has these in place of run
}

// verbs is made on demand: nothing is built at start-up for the verbs that
// were not asked for.
func verbs() []verb {
	return []verb{
		runVerb(),
		editVerb(),
		appendVerb(),
		statusVerb(),
		unlockVerb(),
		initVerb(),
		dispatchVerb(),
		boardVerb(),
		grantVerb(),
		registerVerb(),
		reproVerb(),
		incidentsVerb(),
		doctorVerb(),
		demoVerb(),
		versionVerb(),
		completionVerb(),
	}
}

// findVerb gives the one named, without building the others.
func findVerb(name string) (verb, bool) {
	switch name {
	case "run":
		return runVerb(), true
	case "edit":
		return editVerb(), true
	case "append":
		return appendVerb(), true
	case "unlock":
		return unlockVerb(), true
	case "grant":
		return grantVerb(), true
	case "register":
		return registerVerb(), true
	case "repro":
		return reproVerb(), true
	case "init":
		return initVerb(), true
	case "dispatch":
		return dispatchVerb(), true
	case "board":
		return boardVerb(), true
	case "status":
		return statusVerb(), true
	case "incidents":
		return incidentsVerb(), true
	case "doctor":
		return doctorVerb(), true
	case "demo":
		return demoVerb(), true
	case "version":
		return versionVerb(), true
	case "completion":
		return completionVerb(), true
	}
	return verb{}, false
}

func (v *verb) flags() []option {
	if v.options == nil {
		return nil
	}
	return v.options()
}

// printHelp writes the verb's help: forms, explanation, flags, examples.
func (v *verb) printHelp(w io.Writer) {
	for i, form := range strings.Split(v.synopsis, "\n") {
		lead := "usage: "
		if i > 0 {
			lead = "       "
		}
		fmt.Fprintln(w, strings.TrimRight(lead+"stile "+v.name+" "+form, " "))
	}
	fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(v.detail))
	if options := v.flags(); len(options) > 0 {
		fmt.Fprintf(w, "\nFlags:\n")
		for _, o := range options {
			text := o.flagText()
			if len(text) <= 26 {
				fmt.Fprintf(w, "  %-26s %s\n", text, o.help)
			} else {
				fmt.Fprintf(w, "  %s\n  %-26s %s\n", text, "", o.help)
			}
		}
	}
	fmt.Fprintf(w, "\nExamples:\n")
	for _, line := range strings.Split(strings.TrimSpace(v.examples), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func printOverview(w io.Writer) {
	fmt.Fprint(w, `stile lets one writer at a time through to the files that processes share.

usage: stile VERB [flags] …

`)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-12s %s\n", v.name, v.brief)
	}
	fmt.Fprint(w, `  help         show this, or the help of one verb

Example:
  stile run notes.json -- ./add-note.sh 'water the plants'

'stile VERB --help' explains a verb.
`)
}

func cmdHelp(args []string, out, errw io.Writer) int {
	if len(args) == 0 {
		printOverview(out)
		return 0
	}
	v, ok := findVerb(args[0])
	if !ok {
		return unknownVerb(args[0], errw)
	}
	if v.subs != nil {
		return helpGroup(&v, args[1:], out)
	}
	v.printHelp(out)
	return 0
}

func unknownVerb(name string, w io.Writer) int {
	msg := fmt.Sprintf("there is no verb %q", name)
	hint := "'stile help' lists the verbs"
	if near := nearestVerb(name); near != "" {
		hint = "did you mean 'stile " + near + "'?"
	}
	printFailure(w, msg, hint)
	return exitFailed
}

// nearestVerb is the verb that name is most likely a slip of, or "".
func nearestVerb(name string) string {
	best, bestDistance := "", 3
	if len(name) > 32 {
		return ""
	}
	for _, v := range append(verbs(), verb{name: "help"}) {
		d := editDistance(name, v.name)
		if strings.HasPrefix(v.name, name) && len(name) > 1 {
			d = 1
		}
		if d < bestDistance && d < len(v.name) {
			best, bestDistance = v.name, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
