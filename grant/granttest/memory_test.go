package granttest_test

import (
	"testing"

	"github.com/stile-lock/stile/grant/granttest"
)

func TestMemory(t *testing.T) {
	granttest.Run(t, func(_ *testing.T, clock *granttest.Clock) granttest.Place { return granttest.MemoryPlace(clock, true) })
}

// Each contender goes by a clock of its own.
func TestMemoryWithoutAClock(t *testing.T) {
	granttest.Run(t, func(_ *testing.T, clock *granttest.Clock) granttest.Place { return granttest.MemoryPlace(clock, false) })
}
