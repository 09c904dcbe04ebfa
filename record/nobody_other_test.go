//go:build unix && !linux

package record

import "testing"

func asNobody(t *testing.T) {
	t.Helper()
	t.Skip("root reads everything; run the tests as another user")
}
