package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readerGone returns when nobody will read on what is written to the standard output: true for a pipe whose
// reader has gone. Of a file it never returns.
func readerGone() bool {
	fds := []unix.PollFd{{Fd: 1}} // no event is asked for: errors are told anyway
	for {
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
