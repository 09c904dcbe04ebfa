package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// childVerb starts the second process of doctor and the writers of demo. It
// is no part of the interface.
const childVerb = "__child"

func cmdChild(args []string) int {
	err := errors.New("no such part")
	switch {
	case len(args) == 3 && args[0] == "try-lock":
		return childTryLock(args[1], args[2])
	case len(args) == 1 && args[0] == "hold":
		// Says that it is in, and stays until its input ends.
		fmt.Println("in")
		_, err = io.Copy(io.Discard, os.Stdin)
	case len(args) == 4 && args[0] == "add":
		err = demoAdd(args[1], args[2], args[3])
	case len(args) == 5 && args[0] == "writer":
		err = demoWriter(args[1], args[2], args[3], args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}

func childTryLock(kind, name string) int {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		var got bool
		if got, err = tryLock(f, kind); err == nil && !got {
			return exitHeld
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}
