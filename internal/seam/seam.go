// Package seam is where tests take hold of the shipped code: the files, the clock, the random source,
// the process it believes to be, and the judgement of who is dead. Production code runs with the
// defaults. The types are internal, so nothing outside the module can change them.
package seam

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/vfs"
)

// Set is one choice of all the seams. A nil *Set, and every zero field, is the default.
type Set struct {
	FS    vfs.FS    // the operating system's files
	Clock Clock     // the system's clock
	Rand  io.Reader // crypto/rand
	// Process is who the code believes to be, and what that process remembers.
	Process *Process
	// Judge says who is dead; proc.Judge.
	Judge func(h proc.Holder, near string) proc.Judgement
	// OnStep is called at each named step, by the goroutine that takes it. Tests only.
	OnStep func(Step)
}

// defaults is made when it is first asked for: a program that links the locks and takes none pays for
// no look at its namespaces.
var defaults = sync.OnceValue(func() *Set {
	return &Set{
		FS:      vfs.OS(),
		Clock:   systemClock{},
		Rand:    rand.Reader,
		Process: NewProcess(proc.Self, proc.HostTag, proc.InInitialPIDNamespace()),
		Judge:   proc.Judge,
	}
})

// Or returns s with the defaults filled in.
func (s *Set) Or() *Set {
	if s == nil {
		return defaults()
	}
	full, defaults := *s, defaults()
	if full.FS == nil {
		full.FS = defaults.FS
	}
	if full.Clock == nil {
		full.Clock = defaults.Clock
	}
	if full.Rand == nil {
		full.Rand = defaults.Rand
	}
	if full.Process == nil {
		full.Process = defaults.Process
	}
	if full.Judge == nil {
		full.Judge = defaults.Judge
	}
	return &full
}

// At calls the step hook.
func (s *Set) At(step Step) {
	if s.OnStep != nil {
		s.OnStep(step)
	}
}

// Attempt is 24 random hex characters: a token, or the part of a name that makes it unique to one attempt.
type Attempt [24]byte

// Attempt draws one. Turned into a string only where it is used, it need not be on the heap.
func (s *Set) Attempt() (a Attempt, err error) {
	var drawn [len(a) / 2]byte
	if s.Rand == rand.Reader {
		_, err = rand.Read(drawn[:]) // it is known here to keep nothing of what it fills
	} else {
		other := make([]byte, len(drawn))
		_, err = io.ReadFull(s.Rand, other)
		copy(drawn[:], other)
	}
	if err != nil {
		return a, fmt.Errorf("draw a token: %w", err)
	}
	hex.Encode(a[:], drawn[:])
	return a, nil
}

// Hex24 is an Attempt as a string.
func (s *Set) Hex24() (string, error) {
	a, err := s.Attempt()
	if err != nil {
		return "", err
	}
	return string(a[:]), nil
}

// Clock is the time. Now's wall reading is for showing, its monotonic reading for waiting.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or sooner with ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d < briefly {
		nap(d)
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// briefly is a sleep short enough not to be interrupted.
const briefly = 2 * time.Millisecond
