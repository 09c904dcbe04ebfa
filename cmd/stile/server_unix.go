//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart keeps an interrupt from the terminal from ending the client under a command that is still at work.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
