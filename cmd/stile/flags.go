package main

import (
	"strings"
)

// option is one flag of a verb. The same table parses, prints the help and
// makes the shell completions, so the three cannot disagree.
type option struct {
	names string // without dashes, comma-separated, in the order of the help: "w,wait,timeout"
	arg   string // what the value is called; empty for a switch
	help  string
	words string // values for completion, space-separated; "FILE" for file names
	set   func(value string) error
}

func boolOption(names, help string, p *bool) option {
	return option{names: names, help: help, set: func(string) error { *p = true; return nil }}
}

// jsonOption and exactOption are those of verbs that show something.
func jsonOption(p *bool) option { return boolOption("json", "print JSON", p) }

func exactOption(p *bool) option { return boolOption("exact", "PATH itself is the lock file", p) }

func stringOption(names, arg, help string, p *string) option {
	return option{names: names, arg: arg, help: help, set: func(v string) error { *p = v; return nil }}
}

// parsed is a command line after its flags were taken off.
type parsed struct {
	operands []string
	// terminated says that "--" ended the flags before the first operand.
	terminated bool
}

// parse reads flags as getopt_long does: short ones in groups (-xn), values
// attached or following (-w5, -w 5, --timeout=5, --timeout 5), "--" ends them.
// With inOrder the first operand ends them too, so that what follows reaches
// a command untouched; otherwise flags and operands may be mixed. Long names
// must be written out: an abbreviation would change its meaning with the next
// flag that is added.
//
// Why not a library: docs/decisions/0003-flag-parsing.md.
func parse(args []string, options []option, inOrder bool) (parsed, error) {
	var p parsed
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			p.terminated = len(p.operands) == 0
			p.operands = append(p.operands, args...)
			return p, nil
		case strings.HasPrefix(arg, "--"):
			rest, err := parseLong(arg[2:], args, options)
			if err != nil {
				return p, err
			}
			args = rest
		case len(arg) > 1 && arg[0] == '-':
			rest, err := parseShort(arg[1:], args, options)
			if err != nil {
				return p, err
			}
			args = rest
		default:
			p.operands = append(p.operands, arg)
			if inOrder {
				p.operands = append(p.operands, args...)
				return p, nil
			}
		}
	}
	return p, nil
}

func parseLong(arg string, rest []string, options []option) ([]string, error) {
	name, value, attached := strings.Cut(arg, "=")
	o := findOption(options, name)
	switch {
	case o == nil || len(name) < 2:
		return nil, usagef("there is no flag --%s", name)
	case o.arg == "" && attached:
		return nil, usagef("--%s takes no value", name)
	case o.arg != "" && !attached:
		if len(rest) == 0 {
			return nil, usagef("--%s needs a value (%s)", name, o.arg)
		}
		value, rest = rest[0], rest[1:]
	}
	return rest, o.set(value)
}

func parseShort(group string, rest []string, options []option) ([]string, error) {
	for i := 0; i < len(group); i++ {
		name := group[i : i+1]
		o := findOption(options, name)
		if o == nil {
			return nil, usagef("there is no flag -%s", name)
		}
		if o.arg == "" {
			if err := o.set(""); err != nil {
				return nil, err
			}
			continue
		}
		value := group[i+1:]
		if value == "" {
			if len(rest) == 0 {
				return nil, usagef("-%s needs a value (%s)", name, o.arg)
			}
			value, rest = rest[0], rest[1:]
		}
		return rest, o.set(value)
	}
	return rest, nil
}

func findOption(options []option, name string) *option {
	for i := range options {
		for names := options[i].names; names != ""; {
			var n string
			n, names, _ = strings.Cut(names, ",")
			if n == name {
				return &options[i]
			}
		}
	}
	return nil
}

// flagText is how a flag's names are shown: "-w, --wait, --timeout SECS".
func (o *option) flagText() string {
	var b strings.Builder
	for i, n := range strings.Split(o.names, ",") {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(dashed(n))
	}
	if o.arg != "" {
		b.WriteString(" " + o.arg)
	}
	return b.String()
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// wantsJSON says whether --json is among the flags, for an error that came
// before the flags were all read.
func wantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--json":
			return true
		case "--":
			return false
		}
	}
	return false
}
