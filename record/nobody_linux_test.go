package record

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody lets the rest of the test touch files as a user who owns nothing.
func asNobody(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // it is the thread that changes
	t.Cleanup(func() {
		_, _ = unix.SetfsuidRetUid(0)
		runtime.UnlockOSThread()
	})
	const nobody = 65534
	if _, err := unix.SetfsuidRetUid(nobody); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.SetfsuidRetUid(-1); err != nil || now != nobody {
		t.Fatalf("still user %d, %v", now, err)
	}
}
