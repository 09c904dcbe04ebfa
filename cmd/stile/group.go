package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// A group is a verb whose first operand is a verb of its own: "stile dispatch open". Those are named with
// the group's name before theirs.

// sub gives the verb of a group.
func (v *verb) sub(name string) (verb, bool) {
	for _, s := range v.subs() {
		if s.name == v.name+" "+name {
			return s, true
		}
	}
	return verb{}, false
}

// subNames are the names of a group's verbs, without its own.
func (v *verb) subNames() (names []string) {
	for _, s := range v.subs() {
		names = append(names, strings.TrimPrefix(s.name, v.name+" "))
	}
	return names
}

// groupFlags are the flags of a group's verbs, each name once: for completion.
func groupFlags(subs []verb) (all []option) {
	seen := map[string]bool{}
	for _, s := range subs {
		for _, o := range s.flags() {
			names := slices.DeleteFunc(strings.Split(o.names, ","), func(n string) bool { return seen[n] })
			for _, n := range names {
				seen[n] = true
			}
			if len(names) > 0 {
				o.names = strings.Join(names, ",")
				all = append(all, o)
			}
		}
	}
	return all
}

func runGroup(v *verb, args []string) int {
	if len(args) == 0 {
		v.printGroup(os.Stderr)
		return exitFailed
	}
	if args[0] == "--help" || args[0] == "-h" {
		v.printGroup(stdout)
		return 0
	}
	s, ok := v.sub(args[0])
	if !ok {
		return fail(usageHint("stile "+v.name+" "+strings.Join(v.subNames(), "|"), "there is no verb %q", v.name+" "+args[0]), wantsJSON(args))
	}
	if asksHelp(&s, args[1:]) {
		s.printHelp(stdout)
		return 0
	}
	return s.run(args[1:])
}

// helpGroup is "stile help dispatch open".
func helpGroup(v *verb, args []string, out io.Writer) int {
	if len(args) > 0 {
		if s, ok := v.sub(args[0]); ok {
			s.printHelp(out)
			return 0
		}
		return runGroup(v, args[:1])
	}
	v.printGroup(out)
	return 0
}

func (v *verb) printGroup(w io.Writer) {
	fmt.Fprintf(w, "usage: stile %s %s [flags] …\n\n%s\n\n", v.name, strings.Join(v.subNames(), "|"), strings.TrimSpace(v.detail))
	for _, s := range v.subs() {
		fmt.Fprintf(w, "  %-16s %s\n", s.name, s.brief)
	}
	fmt.Fprintf(w, "\nExamples:\n")
	for _, line := range strings.Split(strings.TrimSpace(v.examples), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
}
