//go:build !(linux && (amd64 || arm64))

package kernlock

import "context"

// queued says whether others wait their turn on f: unknown here, so no.
func (f *lockFile) queued() bool { return false }

// spin is for systems where a wait goes to sleep in the kernel.
func (h *Handle) spin(*lockFile) (bool, error) { return false, nil }

// block waits for the lock until ctx ends.
func (h *Handle) block(ctx context.Context, f *lockFile) (*lockFile, error) { return h.poll(ctx, f) }
