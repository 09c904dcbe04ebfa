// Package follow wakes a reader when something in a folder changes, so that it can look again.
//
// It guarantees that a change made after Add wakes the next Wait, where the system tells of changes
// (Linux); elsewhere, and when the system has no watches left, every Wait ends after a moment. It does not
// say what has changed, and may wake for nothing: the caller compares. It measures on the monotonic clock.
package follow

import (
	"context"
	"time"
)

// moment is how long a Wait lasts where nobody tells of changes.
const moment = 250 * time.Millisecond

// sleep waits without being woken.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
