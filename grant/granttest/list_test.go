package granttest

import (
	"fmt"
	"strings"
	"testing"
)

// TestEveryFailureIsTested: the failures of the design's list that a store can meet are here, each once. The
// 22nd is a service's, the 30th the state machine's.
func TestEveryFailureIsTested(t *testing.T) {
	count := map[string]int{}
	for _, list := range [][]test{failureTests, raceTests, damageTests, storeTests} {
		for _, c := range list {
			if strings.HasPrefix(c.name, "Failure") {
				count[c.name[:len("Failure00")]]++
			}
		}
	}
	for n := 1; n < 30; n++ {
		want := 1
		if n == 22 {
			want = 0
		}
		if name := fmt.Sprintf("Failure%02d", n); count[name] != want {
			t.Errorf("%s has %d tests", name, count[name])
		}
	}
}
