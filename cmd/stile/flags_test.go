package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		args    string
		inOrder bool
		sets    string // what was set, in order
		rest    string
		term    bool
		err     string
	}{
		{"-xn f true", true, "x n", "f true", false, ""},
		{"-w5 f", true, "w=5", "f", false, ""},
		{"-w 5 f", true, "w=5", "f", false, ""},
		{"-nw5 f", true, "n w=5", "f", false, ""},
		{"-nw 5 f", true, "n w=5", "f", false, ""},
		{"--timeout=5 f", true, "w=5", "f", false, ""},
		{"--timeout 5 f", true, "w=5", "f", false, ""},
		{"--timeout= f", true, "w=", "f", false, ""},
		{"-E 7 f", true, "E=7", "f", false, ""},
		{"-w -1 f", true, "w=-1", "f", false, ""},
		{"--exclusive --nb f", true, "x n", "f", false, ""},
		{"f -x -n", true, "", "f -x -n", false, ""},
		{"f -x -n", false, "x n", "f", false, ""},
		{"-- -x", true, "", "-x", true, ""},
		{"f -- -x", true, "", "f -- -x", false, ""},
		{"f -- -x", false, "", "f -x", false, ""},
		{"- -x", true, "", "- -x", false, ""},
		{"-z f", true, "", "", false, "no flag -z"},
		{"-xz f", true, "x", "", false, "no flag -z"},
		{"--zz f", true, "", "", false, "no flag --zz"},
		{"--x f", true, "", "", false, "no flag --x"},
		{"--exclusive=1 f", true, "", "", false, "takes no value"},
		{"-w", true, "", "", false, "needs a value (SECS)"},
		{"--timeout", true, "", "", false, "needs a value (SECS)"},
		{"-x -- a -- b", true, "x", "a -- b", true, ""},
	}
	for _, tt := range tests {
		var sets []string
		sw := func(names string) option {
			short, _, _ := strings.Cut(names, ",")
			return option{names: names, set: func(string) error { sets = append(sets, short); return nil }}
		}
		val := func(names, arg string) option {
			short, _, _ := strings.Cut(names, ",")
			return option{names: names, arg: arg, set: func(v string) error { sets = append(sets, short+"="+v); return nil }}
		}
		options := []option{sw("x,e,exclusive"), sw("n,nb,nonblock"), val("w,wait,timeout", "SECS"), val("E", "N")}
		p, err := parse(strings.Fields(tt.args), options, tt.inOrder)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parse %q: error %v, want %q", tt.args, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("parse %q: %v", tt.args, err)
			continue
		}
		if got := strings.Join(sets, " "); got != tt.sets {
			t.Errorf("parse %q: set %q, want %q", tt.args, got, tt.sets)
		}
		if got := strings.Join(p.operands, " "); got != tt.rest || p.terminated != tt.term {
			t.Errorf("parse %q: operands %q, terminated %v", tt.args, got, p.terminated)
		}
	}
}

// Two flags of one name would make the second unreachable.
func TestFlagNamesAreUnique(t *testing.T) {
	for _, v := range verbs() {
		seen := map[string]bool{"help": true, "h": true}
		options := v.flags()
		if v.name == "run" {
			options = new(runFlags).options()
		}
		for _, o := range options {
			for _, n := range strings.Split(o.names, ",") {
				if seen[n] {
					t.Errorf("%s has two flags %s", v.name, dashed(n))
				}
				seen[n] = true
			}
		}
	}
}

func TestEveryVerbIsFound(t *testing.T) {
	for _, v := range verbs() {
		if _, ok := findVerb(v.name); !ok {
			t.Errorf("%s is listed and not found", v.name)
		}
		if v.examples == "" || v.detail == "" || v.brief == "" {
			t.Errorf("%s lacks an example or an explanation", v.name)
		}
	}
}

func TestNearestVerb(t *testing.T) {
	for slip, want := range map[string]string{
		"stauts": "status", "statsu": "status", "rnu": "run", "incident": "incidents", "docter": "doctor",
		"verzion": "version", "inc": "incidents", "hepl": "help", "xyzzy": "", "q": "", strings.Repeat("x", 99): "",
	} {
		if got := nearestVerb(slip); got != want {
			t.Errorf("nearest to %q is %q, want %q", slip, got, want)
		}
	}
}

func TestParseRun(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SHELL", "")
	shell := shellCommand("true")
	tests := []struct {
		args    []string
		targets []string
		argv    []string
	}{
		{[]string{"f", "true"}, []string{"f"}, []string{"true"}},
		{[]string{"f", "true", "-n"}, []string{"f"}, []string{"true", "-n"}},
		{[]string{"-n", "f", "true"}, []string{"f"}, []string{"true"}},
		{[]string{"--", "f", "true"}, []string{"f"}, []string{"true"}},
		{[]string{"--", "-f", "true"}, []string{"-f"}, []string{"true"}},
		{[]string{"a", "b", "--", "true", "--", "x"}, []string{"a", "b"}, []string{"true", "--", "x"}},
		{[]string{"--", "a", "-b", "--", "true"}, []string{"a", "-b"}, []string{"true"}},
		{[]string{"f", "-c", "true"}, []string{"f"}, shell},
		{[]string{"f", "--command", "true"}, []string{"f"}, shell},
		{[]string{"-c", "true", "f"}, []string{"f"}, shell},
		{[]string{"-c", "true", "a", "b"}, []string{"a", "b"}, shell},
		{[]string{"a", "b", "--", "-c", "true"}, []string{"a", "b"}, shell},
		{[]string{"-ctrue", "f"}, []string{"f"}, shell},
	}
	for _, tt := range tests {
		plan, err := parseRun(tt.args)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if !reflect.DeepEqual(plan.targets, tt.targets) || !reflect.DeepEqual(plan.argv, tt.argv) {
			t.Errorf("%q: targets %q, command %q", tt.args, plan.targets, plan.argv)
		}
	}
}

func TestParseRunRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"", "--", "f", "-- f", "f --", "a b --", "-n", "9", "-u 9", "-u f true", "--unlock f true",
		"-w f true", "-w NaN f true", "-w nan f true", "-w inf f true", "-w -inf f true", "-w +Inf f true", "-w -1 f true",
		"-w 86401 f true", "-w 1e300 f true", "-w x f true", "-w 5s f true", "--timeout= f true", "-w 0x f true",
		"-E -1 f true", "-E 256 f true", "-E x f true", "-E= f true",
		"-s -x f true", "-F -o f true", "--policy x f true", "--policy= f true",
		"-n --policy monitor f true", "--policy single_flight -w 5 f true",
		"-c true f stile", "f -c", "f -c true false", "-c true",
		"f stile -x -- y", "-z f true", "--timeou 5 f true",
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, " ")
		}
		_, err := parseRun(list)
		if err == nil {
			t.Errorf("stile run %s: was accepted", args)
			continue
		}
		if f := classify(err); f.exit != exitUsage || f.code != "usage" {
			t.Errorf("stile run %s: exit %d, code %s: %v", args, f.exit, f.code, err)
		}
	}
	if _, err := parseRun([]string{"", "true"}); err == nil {
		t.Error("an empty target was accepted")
	}
	if _, err := parseRun([]string{"-w", "", "f", "true"}); err == nil {
		t.Error("an empty -w was accepted")
	}
}
