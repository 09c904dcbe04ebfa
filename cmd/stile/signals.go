package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalSet is the signals that this process receives from the moment it
// waits for a lock until its command has ended.
type signalSet struct {
	arrived chan os.Signal
}

// catchSignals starts receiving. What was ignored when this process started
// (nohup, a background job) stays ignored, for the command too.
func catchSignals() *signalSet {
	s := &signalSet{arrived: make(chan os.Signal, 16)}
	for _, sig := range endingSignals {
		if !signal.Ignored(sig) {
			signal.Notify(s.arrived, sig)
		}
	}
	return s
}

// cancelOnSignal gives a context that ends at the first signal. The returned
// function stops that and gives the signal's number, 0 if none came. It must
// be called before the signals are used for anything else.
func (s *signalSet) cancelOnSignal() (context.Context, func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	quit := make(chan struct{})
	got := make(chan int, 1)
	go func() {
		select {
		case sig := <-s.arrived:
			cancel()
			n, _ := sig.(syscall.Signal)
			got <- int(n)
		case <-quit:
			got <- 0
		}
	}()
	return ctx, func() int {
		close(quit)
		n := <-got
		if n != 0 {
			cancel()
		}
		// Without a signal the context stays alive: a lock lives in it.
		return n
	}
}
