// Command barerun FILE CMD… is the least that a Go program can do to run CMD
// under flock(2): no flags, no checks, no record. It shows how much of
// "stile run" is the Go runtime.
package main

import (
	"os"
	"syscall"
)

func main() {
	fd, err := syscall.Open(os.Args[1], syscall.O_RDWR|syscall.O_CREAT, 0o666)
	if err != nil {
		os.Exit(66)
	}
	if syscall.Flock(fd, syscall.LOCK_EX) != nil {
		os.Exit(69)
	}
	p, err := syscall.ForkExec(os.Args[2], os.Args[2:], &syscall.ProcAttr{
		Env: syscall.Environ(), Files: []uintptr{0, 1, 2, uintptr(fd)},
	})
	if err != nil {
		os.Exit(69)
	}
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(p, &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	os.Exit(status.ExitStatus())
}
