package vfs

import (
	"errors"
	"testing"

	"golang.org/x/sys/windows"
)

// Another program has the file open, or its deletion is pending: the call is made again until it succeeds.
func TestCase26And27CallsAreRepeated(t *testing.T) {
	for _, errno := range []error{
		windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_DELETE_PENDING, windows.ERROR_ACCESS_DENIED,
	} {
		calls := 0
		err := patiently(func() error {
			if calls++; calls < 4 {
				return errno
			}
			return nil
		})
		if err != nil || calls != 4 {
			t.Errorf("%v: %v after %d calls", errno, err, calls)
		}
		if err := patiently(func() error { return errno }); !errors.Is(err, errno) {
			t.Errorf("for ever %v: %v", errno, err)
		}
	}
}

// Any other error is reported at once.
func TestCase27OtherErrorsAreNot(t *testing.T) {
	calls := 0
	err := patiently(func() error { calls++; return windows.ERROR_DISK_FULL })
	if !errors.Is(err, windows.ERROR_DISK_FULL) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
