package dispatch

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
)

func TestIDs(t *testing.T) {
	s := (*seam.Set)(nil).Or()
	seen := map[string]bool{}
	for range 1000 {
		id, err := newID(s)
		must(t, err)
		if len(id) != 26 || strings.Trim(id, crockford) != "" || id[0] > '7' || seen[id] {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
	}
	fixed := (&seam.Set{Clock: at(1469918176385), Rand: bytes.NewReader(bytes.Repeat([]byte{0xff}, 10))}).Or()
	id, err := newID(fixed)
	must(t, err)
	if id != "01ARYZ6S41"+strings.Repeat("Z", 16) { // the example of the ULID specification, and all bits set
		t.Errorf("id %s", id)
	}
}

type at int64

func (c at) Now() time.Time                                   { return time.UnixMilli(int64(c)) }
func (c at) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
