//go:build !linux

package follow

import (
	"context"
	"time"
)

// Watch is the folders that are watched: here, none.
type Watch struct{}

// New begins to watch; nothing yet.
func New() *Watch { return &Watch{} }

// Add does nothing: every Wait ends after a moment.
func (w *Watch) Add(string) {}

// Wait returns after a moment, after d if that is less, or with ctx's error.
func (w *Watch) Wait(ctx context.Context, d time.Duration) error { return sleep(ctx, min(d, moment)) }

// Close ends the watch.
func (w *Watch) Close() error { return nil }
