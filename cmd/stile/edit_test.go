package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

// A signal that has come is a reason to land nothing, before the lock is even looked at.
func TestEditFenceMindsSignals(t *testing.T) {
	l, err := kernlock.Acquire(t.Context(), filepath.Join(t.TempDir(), "f"), kernlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	s := &signalSet{arrived: make(chan os.Signal, 4), set: make(chan struct{})}
	close(s.set)
	h := &editHold{l, s}
	if err := h.Fence(); err != nil {
		t.Fatal(err)
	}
	s.arrived <- endingSignals[0]
	var ended *endedBySignal
	if err := h.Fence(); !errors.As(err, &ended) || ended.number != signalNumber(endingSignals[0]) {
		t.Errorf("got %v", err)
	}
	if err := h.Fence(); err != nil {
		t.Errorf("a signal was counted twice: %v", err)
	}
}

// Lines are cut at newlines whatever pieces they come in, and no piece waits for the next line.
func TestReadBatches(t *testing.T) {
	pieces := []string{"a", "b\nc", "\n\nd\ne", "", "f"}
	to, quit := make(chan batch), make(chan struct{})
	defer close(quit)
	r := &pieceReader{pieces: pieces}
	go readBatches(r, to, quit)
	var got []string
	for {
		var b batch
		select {
		case b = <-to:
		case <-time.After(10 * time.Second):
			t.Fatal("a batch never came")
		}
		for _, l := range b.lines {
			got = append(got, strings.TrimSuffix(string(l), "\n"))
		}
		got = append(got, "|")
		if b.err != nil {
			break
		}
	}
	if want := []string{"ab", "|", "c", "", "d", "|", "ef", "|"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type pieceReader struct{ pieces []string }

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	r.pieces = r.pieces[1:]
	return n, nil
}
