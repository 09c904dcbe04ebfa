package main

import (
	"fmt"
	"strings"
)

// judge draws the verdicts. A reason to distrust outweighs every check that
// passed: the checks ran on one machine, through one mount.
func (d *diagnosis) judge(has map[string]bool) {
	fuse := strings.HasPrefix(d.Filesystem, "fuse")

	k := newVerdict()
	k.needs(has["flock_excludes"], "flock does not keep a second process out")
	switch {
	case fuse:
		k.caveat("FUSE: flock may not exclude a process that reaches the files through another mount of this folder")
	case !d.Local:
		k.caveat("not known to be local (" + d.Filesystem + "): flock may not exclude processes on other hosts")
	}
	d.KernelLock = *k

	l := newVerdict()
	l.needs(has["exclusive_create"], "files cannot be created exclusively")
	l.needs(has["rename_over_open"], "rename does not replace a file in one step")
	l.wants(has["hard_link"], "no hard links: the lock's name appears before its content, so a crash between leaves a lock that must be unlocked by hand")
	d.durability(l, has)
	if !d.Local {
		l.caveat("not known to be local (" + d.Filesystem + "): a dead holder on another host, or before a restart, is never proved dead and must be unlocked by hand")
	}
	d.LockFile = *l

	g := newVerdict()
	g.needs(has["exclusive_create"], "files cannot be created exclusively, which is how a revision is published")
	d.durability(g, has)
	if !d.Local {
		g.caveat("not known to be local (" + d.Filesystem + "): its exclusive create must be atomic for every host")
	}
	d.Grant = *g
}

func (d *diagnosis) durability(v *verdict, has map[string]bool) {
	v.wants(has["fsync_file"], "fsync of a file does not answer: a change may be lost in a power cut")
	v.wants(has["fsync_folder"], "fsync of a folder does not answer: a new name may be lost in a power cut")
}

func newVerdict() *verdict { return &verdict{Verdict: "safe", Reasons: []string{}} }

func (v *verdict) needs(ok bool, why string) {
	if !ok {
		v.Verdict = "unsafe"
		v.Reasons = append(v.Reasons, why)
	}
}

func (v *verdict) wants(ok bool, why string) {
	if !ok {
		v.caveat(why)
	}
}

func (v *verdict) caveat(why string) {
	if v.Verdict == "safe" {
		v.Verdict = "caveat"
	}
	v.Reasons = append(v.Reasons, why)
}

func (d *diagnosis) print() {
	local := "known to be local"
	if !d.Local {
		local = "not known to be local"
	}
	fmt.Fprintf(stdout, "%s is on %s, %s.\n\n", d.Folder, d.Filesystem, local)
	rows := make([][]string, 0, len(d.Checks))
	for _, c := range d.Checks {
		mark := "ok"
		if !c.OK {
			mark = "NO"
		}
		rows = append(rows, []string{mark, strings.ReplaceAll(c.Name, "_", " "), c.Detail})
	}
	printTable(stdout, rows)
	fmt.Fprintln(stdout)
	for _, v := range []struct {
		name string
		v    verdict
	}{
		{"kernel lock", d.KernelLock},
		{"lock file", d.LockFile},
		{"grant", d.Grant},
	} {
		word := map[string]string{"safe": "safe", "caveat": "works, with a caveat", "unsafe": "NOT SAFE here"}[v.v.Verdict]
		fmt.Fprintf(stdout, "%-12s %s\n", v.name, word)
		for _, r := range v.v.Reasons {
			fmt.Fprintf(stdout, "%-12s - %s\n", "", r)
		}
	}
}
