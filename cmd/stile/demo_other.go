//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

type demo struct{ dir, exe string }

func (d *demo) stile(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: d.exe, Args: append([]string{"stile"}, args...)}
}

func demoLocks() int {
	return fail(usageHint("docs/guarantees.md says what is promised on this system",
		"the demo stops and kills processes as only Unix systems can: %w", errors.ErrUnsupported), false)
}
