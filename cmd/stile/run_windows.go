package main

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// endingSignals end a wait. A console sends ^C to the command as well.
var endingSignals = []os.Signal{os.Interrupt}

func shellCommand(line string) []string {
	shell := os.Getenv("COMSPEC")
	if shell == "" {
		shell = "cmd.exe"
	}
	return []string{shell, "/c", line}
}

// runCommand runs the command in a job that ends with us: a lock cannot be
// inherited here, so nothing may run on when its holder is gone.
func runCommand(path string, argv, env []string, signals *signalSet, streams ...*os.File) (int, error) {
	return runStarted(path, argv, env, signals, nil, streams...)
}

// runStarted says besides what was started.
func runStarted(path string, argv, env []string, signals *signalSet, started func(*os.Process), streams ...*os.File) (int, error) {
	if streams == nil {
		streams = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	if err := joinJob(); err != nil {
		return 0, fmt.Errorf("make a job for the command: %w", err)
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: streams})
	if err != nil {
		return 0, commandFailure(argv[0], err)
	}
	if started != nil {
		started(p)
	}
	go func() {
		for range signals.arrived {
			// The command got it from the console; we wait for its end.
			continue
		}
	}()
	state, err := p.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for the command: %w", err)
	}
	return state.ExitCode(), nil
}

// joinJob puts this process into a job whose members end when its last
// handle, ours, is closed. What is started later is in it from its first
// instruction. The handle stays open on purpose.
func joinJob() error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return err
	}
	return windows.AssignProcessToJobObject(job, windows.CurrentProcess())
}

func execInPlace(string, []string, []string) error {
	return usageHint("leave -F out", "-F needs a system on which a process can become another: %w", errors.ErrUnsupported)
}
