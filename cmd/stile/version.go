package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionVerb() verb {
	return verb{
		name:     "version",
		brief:    "show what this is built from",
		synopsis: "[--json]",
		detail:   "Shows the version, the commit and the Go release that this tool was built from.",
		examples: "stile version --json",
		options: func() []option {
			var asJSON bool
			return []option{jsonOption(&asJSON)}
		},
		run: cmdVersion,
	}
}

type versionOut struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty when the build did not record it
	Time     string `json:"time"`
	Modified bool   `json:"modified"` // the tree had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func cmdVersion(args []string) int {
	var asJSON bool
	p, err := parse(args, []option{jsonOption(&asJSON)}, false)
	if err == nil && len(p.operands) > 0 {
		err = usagef("version takes no operand")
	}
	if err != nil {
		return fail(err, asJSON || wantsJSON(args))
	}
	v := readVersion()
	if asJSON {
		printJSON(stdout, v)
		return 0
	}
	fmt.Fprintf(stdout, "stile %s", v.Version)
	if v.Commit != "" {
		fmt.Fprintf(stdout, " (commit %.12s", v.Commit)
		if v.Modified {
			fmt.Fprint(stdout, ", modified")
		}
		fmt.Fprint(stdout, ")")
	}
	fmt.Fprintf(stdout, " %s %s\n", v.Go, v.Platform)
	return 0
}

func readVersion() versionOut {
	v := versionOut{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
