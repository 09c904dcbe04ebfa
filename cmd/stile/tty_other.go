//go:build !unix

package main

import "os"

// canRewrite: a console may print the escape instead of obeying it, so the
// line is written once and left.
const canRewrite = false

func stderrIsTerminal() bool {
	st, err := os.Stderr.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func terminalWidth() int { return 80 }

func inForeground() bool { return true }
