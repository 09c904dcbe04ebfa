//go:build !unix

package main

import "errors"

func demoLocks() int {
	return fail(usageHint("docs/guarantees.md says what is promised on this system",
		"the demo stops and kills processes as only Unix systems can: %w", errors.ErrUnsupported), false)
}
