package follow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Every way in which a log changes ends a wait: a file made, written to, or renamed over.
func TestWaitIsWoken(t *testing.T) {
	dir := t.TempDir()
	w := New()
	defer w.Close()
	w.Add(dir)
	path := filepath.Join(dir, "x")
	steps := map[string]func() error{
		"made": func() error { return os.WriteFile(path, []byte("1"), 0o600) },
		"written to": func() error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("2")
				err = errors.Join(err, f.Close())
			}
			return err
		},
		"renamed over": func() error {
			other := filepath.Join(t.TempDir(), "y")
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Rename(other, path))
		},
	}
	for _, name := range []string{"made", "written to", "renamed over"} {
		if err := steps[name](); err != nil {
			t.Fatal(err)
		}
		// The test's own deadline ends a wait that nothing ends.
		if err := w.Wait(t.Context(), 24*time.Hour); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	for name, w := range map[string]*Watch{"watching": New(), "blind": {}} {
		w.Add(t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			for {
				if err := w.Wait(ctx, 24*time.Hour); err != nil {
					done <- err
					return
				}
			}
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWaitEndsByItself(t *testing.T) {
	w := New()
	defer w.Close()
	if err := w.Wait(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
