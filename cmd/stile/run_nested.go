package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/stile-lock/stile/kernlock"
)

// heldVariable holds the lock_ids of the locks that "stile run" took for the
// commands above, colon-separated.
const heldVariable = "STILE_HELD"

// refuseNested refuses a lock that a "stile run" above this process holds:
// the wait could only end by its timeout. The variable alone proves nothing,
// because what a command leaves behind keeps it when the lock is long gone.
func refuseNested(h *kernlock.Handle) error {
	found := false
	for ids := os.Getenv(heldVariable); ids != "" && !found; {
		var id string
		id, ids, _ = strings.Cut(ids, ":")
		found = id == h.LockID()
	}
	if !found || !heldAbove(h) {
		return nil
	}
	return &failure{exit: exitUsage, code: "reentrant",
		hint: "the lock is held already: run the command without another 'stile run'",
		err:  fmt.Errorf("lock %s: held by the 'stile run' that this command runs under", h.Target())}
}

// statusOf looks at the lock of h without taking it.
func statusOf(h *kernlock.Handle) (*kernlock.Report, error) {
	return kernlock.Status(h.LockPath(), kernlock.Options{Exact: true})
}
