package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/stile-lock/stile/internal/follow"
)

// lookAgain is how often a follower looks without having been woken: a folder may have come that is not
// watched yet, and a system may have no watches left.
const lookAgain = time.Second

// followed calls round, and again whenever something changes in the folders that round adds to the watch.
// It ends at a signal, when nobody reads on, and with the first error; 128 and the signal's number is then
// the exit code, and nothing is said.
func followed(round func(*follow.Watch) error) error {
	signals := catchSignals()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	number := make(chan int, 2)
	signals.ready()
	go func() {
		number <- signalNumber(<-signals.arrived)
		cancel()
	}()
	go func() {
		if readerGone() {
			number <- pipeSignal
			cancel()
		}
	}()
	w := follow.New()
	defer w.Close() // nothing was written through it
	for {
		if err := round(w); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				return &exitCode{128 + pipeSignal}
			}
			return err
		}
		if err := w.Wait(ctx, lookAgain); err != nil {
			return &exitCode{128 + <-number}
		}
	}
}

// pipeSignal is the number of SIGPIPE, of which a program dies when nobody reads what it writes.
const pipeSignal = 13

// sight is what a file looked like. A log is replaced by each change, so any shows.
type sight struct {
	is fs.FileInfo
}

// changed looks at a file, and says whether it is another than before.
func (s *sight) changed(path string) bool {
	is, err := os.Lstat(path)
	if err != nil {
		is = nil
	}
	was := s.is
	s.is = is
	if is == nil || was == nil {
		return is != was
	}
	return !os.SameFile(is, was) || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime())
}
