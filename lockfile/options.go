package lockfile

import (
	"time"

	"github.com/stile-lock/stile/internal/seam"
)

const (
	// DefaultTimeout is how long Acquire waits for a held lock when Options says nothing.
	DefaultTimeout = 10 * time.Second
	// StaleAfter is the age from which a held lock is worth reporting. Nothing is ever broken for it.
	StaleAfter = time.Minute
	// unlockBusyWait is how long an unforced Unlock waits while another process breaks the same lock.
	unlockBusyWait = time.Second
)

// Options are the choices of one acquisition. The zero value waits DefaultTimeout and syncs.
type Options struct {
	// Timeout is how long to wait for a held lock: DefaultTimeout when 0, one try when negative.
	// Only waiting counts against it, on the monotonic clock; a free lock is taken at any Timeout.
	Timeout time.Duration
	// NoSync leaves out every fsync. A commit is then still whole or absent after a crash of the
	// process, but a power cut may lose it or, on some file systems, leave it empty.
	NoSync bool
	// UnlockHint is the command that errors name as the remedy, such as
	// "stile dispatch unlock --agent A". Where force is needed, " --force" is put behind its first
	// word "unlock". Empty means "stile unlock FILE".
	UnlockHint string
	// Seams is for this module's own tests.
	Seams *seam.Set
}

func (o *Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return DefaultTimeout
	}
	return max(o.Timeout, 0)
}
