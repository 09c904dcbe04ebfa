//go:build !unix && !windows

package main

import (
	"errors"
	"fmt"
	"os"
)

var endingSignals = []os.Signal{os.Interrupt}

func shellCommand(line string) []string { return []string{"/bin/sh", "-c", line} }

func runCommand(path string, argv, env []string, signals *signalSet, streams ...*os.File) (int, error) {
	return runStarted(path, argv, env, signals, nil, streams...)
}

func runStarted(path string, argv, env []string, _ *signalSet, started func(*os.Process), streams ...*os.File) (int, error) {
	if streams == nil {
		streams = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: streams})
	if err != nil {
		return 0, commandFailure(argv[0], err)
	}
	if started != nil {
		started(p)
	}
	state, err := p.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for the command: %w", err)
	}
	return state.ExitCode(), nil
}

func execInPlace(string, []string, []string) error {
	return usageHint("leave -F out", "-F needs a system on which a process can become another: %w", errors.ErrUnsupported)
}
