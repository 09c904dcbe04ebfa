package lockfile

import (
	"context"
	"sync"
	"time"
)

// jumpClock is a clock on which sleeping takes no time.
type jumpClock struct {
	mu    sync.Mutex
	slept time.Duration
}

func (c *jumpClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(c.slept)
}

func (c *jumpClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
	return ctx.Err()
}
