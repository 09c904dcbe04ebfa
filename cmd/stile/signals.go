package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// signalSet is the signals that this process receives from the moment it
// waits for a lock until its command has ended.
type signalSet struct {
	arrived chan os.Signal
	set     chan struct{}
}

// catchSignals begins to receive. What was ignored when this process started
// (nohup, a background job) stays ignored, for the command too.
//
// Each signal costs the runtime some switches between threads, as much
// together as taking a lock. So it is done aside, and waited for by ready; a
// signal that comes before finds nothing begun that it could leave behind.
func catchSignals() *signalSet {
	s := &signalSet{arrived: make(chan os.Signal, 16), set: make(chan struct{})}
	go func() {
		defer close(s.set)
		for _, sig := range endingSignals {
			if !signal.Ignored(sig) {
				signal.Notify(s.arrived, sig)
			}
		}
	}()
	return s
}

// ready returns when the signals are received.
func (s *signalSet) ready() { <-s.set }

// pending gives the number of a signal that has come and means the end, or 0.
// While a command runs, others are received too.
func (s *signalSet) pending() int {
	for {
		select {
		case sig := <-s.arrived:
			if slices.Contains(endingSignals, sig) {
				return signalNumber(sig)
			}
		default:
			return 0
		}
	}
}

// waitContext is the context of an acquire. Nothing is spent on the signals
// and the line on the screen until somebody asks for its Done, which is when
// the lock was not free: a goroutine more in every run costs what its
// handing to another thread costs.
type waitContext struct {
	context.Context
	cancel  context.CancelFunc
	signals *signalSet
	line    func() *waitLine

	begin sync.Once
	quit  chan struct{}
	got   chan int
	shown *waitLine
}

func newWaitContext(signals *signalSet, line func() *waitLine) *waitContext {
	ctx, cancel := context.WithCancel(context.Background())
	return &waitContext{Context: ctx, cancel: cancel, signals: signals, line: line}
}

// Done ends at the first signal.
func (w *waitContext) Done() <-chan struct{} {
	w.begin.Do(func() {
		w.signals.ready()
		w.quit, w.got = make(chan struct{}), make(chan int, 1)
		w.shown = w.line()
		go func() {
			select {
			case sig := <-w.signals.arrived:
				w.cancel()
				w.got <- signalNumber(sig)
			case <-w.quit:
				w.got <- 0
			}
		}()
	})
	return w.Context.Done()
}

// end ends the wait, successful or not, and gives the number of the signal
// that came during it, 0 if none did. The context itself stays alive: a lock
// may live in it.
func (w *waitContext) end() int {
	w.begin.Do(func() {})
	if w.quit == nil {
		return w.signals.pending()
	}
	w.shown.stop()
	close(w.quit)
	return <-w.got
}

func signalNumber(sig os.Signal) int {
	n, _ := sig.(syscall.Signal)
	return int(n)
}
