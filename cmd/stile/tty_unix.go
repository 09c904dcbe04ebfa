//go:build unix

package main

import "golang.org/x/sys/unix"

// canRewrite: terminals here understand the escape that clears a line.
const canRewrite = true

// The descriptor is named by its number: os.File.Fd would change the mode of
// a description that we share with our caller.
const stderrFD = 2

func stderrIsTerminal() bool {
	_, err := unix.IoctlGetWinsize(stderrFD, unix.TIOCGWINSZ)
	return err == nil
}

func terminalWidth() int {
	ws, err := unix.IoctlGetWinsize(stderrFD, unix.TIOCGWINSZ)
	if err != nil || ws.Col < 20 {
		return 80
	}
	return int(ws.Col)
}
