package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"testing"

	"github.com/stile-lock/stile/kernlock"
)

func TestClassify(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("lock f: %w", &fs.PathError{Op: "open", Path: "f", Err: err}) }
	tests := []struct {
		err  error
		exit int
		code string
	}{
		{usagef("x"), 64, "usage"},
		{fmt.Errorf("x: %w", kernlock.ErrUsage), 64, "usage"},
		{fmt.Errorf("x: %w", kernlock.ErrNameTooLong), 64, "name_too_long"},
		{fmt.Errorf("x: %w", kernlock.ErrReentrant), 64, "reentrant"},
		{fmt.Errorf("x: %w", kernlock.ErrBadLockFile), 65, "bad_lock_file"},
		{fmt.Errorf("x: %w", kernlock.ErrOtherFamily), 65, "other_family"},
		{wrap(fs.ErrNotExist), 66, "no_such_folder"},
		{fmt.Errorf("x: %w", kernlock.ErrUnsupported), 69, "unsupported_filesystem"},
		{&kernlock.TimeoutError{}, 75, "lock_acquire_timeout"},
		{&kernlock.HeldError{}, 75, "duplicate"},
		{fmt.Errorf("x: %w", kernlock.ErrLost), 76, "lock_lost"},
		{wrap(fs.ErrPermission), 77, "permission_denied"},
		{context.Canceled, 75, "cancelled"},
		{errors.New("odd"), 74, "io_error"},
		{commandFailure("x", &exec.Error{Name: "x", Err: exec.ErrNotFound}), 69, "command_not_found"},
		{commandFailure("x", fs.ErrPermission), 77, "command_not_executable"},
	}
	for _, tt := range append(tests, systemErrors(wrap)...) {
		f := classify(tt.err)
		if f.exit != tt.exit || f.code != tt.code {
			t.Errorf("%v: exit %d %s, want %d %s", tt.err, f.exit, f.code, tt.exit, tt.code)
		}
		if f.Error() == "" {
			t.Errorf("%s has no message", f.code)
		}
	}
}

// A timeout whose incident found no space stays a timeout.
func TestTimeoutOutweighsItsIncident(t *testing.T) {
	for _, e := range systemErrors(func(err error) error { return err }) {
		if f := classify(&kernlock.TimeoutError{RecordErr: e.err}); f.exit != 75 || f.code != "lock_acquire_timeout" {
			t.Errorf("with %v: exit %d %s", e.err, f.exit, f.code)
		}
	}
}
