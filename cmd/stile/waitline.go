package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// waitLineDelay keeps short waits silent.
const waitLineDelay = 400 * time.Millisecond

// waitLine is the one line that tells somebody at a terminal whom they are
// waiting for. It is rewritten in place and gone when the wait is over.
type waitLine struct {
	quit, done chan struct{}
}

// startWaitLine costs a timer and nothing else while the wait is short.
func startWaitLine(t target, plan *runPlan, deadline time.Time) *waitLine {
	terminal := stderrIsTerminal()
	if plan.json || !terminal && !plan.verbose {
		return nil
	}
	return newWaitLine(func() string { return waitText(t, deadline) })
}

// newWaitLine shows what text says, anew each second where a line can be rewritten.
func newWaitLine(text func() string) *waitLine {
	l := &waitLine{quit: make(chan struct{}), done: make(chan struct{})}
	go l.show(text, stderrIsTerminal() && os.Getenv("TERM") != "dumb" && canRewrite)
	return l
}

// stop ends the line and takes it off the screen.
func (l *waitLine) stop() {
	if l == nil {
		return
	}
	close(l.quit)
	<-l.done
}

func (l *waitLine) show(line func() string, rewrite bool) {
	defer close(l.done)
	tick := time.NewTimer(waitLineDelay)
	defer tick.Stop()
	shown := false
	defer func() {
		if shown {
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}()
	for {
		select {
		case <-l.quit:
			return
		case <-tick.C:
		}
		text := line()
		if !rewrite {
			fmt.Fprintln(os.Stderr, text)
			return
		}
		// A job in the background must not write over its user's prompt.
		if inForeground() {
			fmt.Fprint(os.Stderr, "\r"+cut(text, terminalWidth()-1)+"\x1b[K")
			shown = true
		}
		tick.Reset(time.Second)
	}
}

// waitText says who is in the way, since when, and how long we shall wait.
func waitText(t target, deadline time.Time) string {
	left := max(time.Until(deadline), 0)
	who := "holder unknown"
	if r, err := statusOf(t.handle); err == nil {
		switch {
		case r.Holder != nil && r.HolderState == kernlock.Current:
			who = fmt.Sprintf("held by %s (pid %d, %s) since %s", display.Text(r.Holder.AgentID), r.Holder.PID,
				display.Text(r.Holder.Operation), r.Holder.AcquiredAt.Local().Format("15:04:05"))
		case len(r.Holders) > 0:
			who = fmt.Sprintf("held by %s (pid %d), which left no record", display.Text(r.Holders[0].Name), r.Holders[0].PID)
		}
	}
	return fmt.Sprintf("stile: waiting for %s, %s, %.0f s left", display.Text(filepath.Base(t.handle.Target())), who, left.Seconds())
}

// cut shortens s to n characters, so that a rewritten line never wraps.
func cut(s string, n int) string {
	r := []rune(s)
	if n < 1 || len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
