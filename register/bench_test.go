package register

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
)

// BenchmarkLog goes through 10,000 landings of one grant. TMPDIR=/dev/shm makes them sooner.
func BenchmarkLog(b *testing.B) {
	ctx := context.Background()
	dir := b.TempDir()
	open := func() *Register {
		s, err := local.Open(dir, local.Options{State: filepath.Join(dir, "state")})
		if err != nil {
			b.Fatal(err)
		}
		return Of(s, box)
	}
	r := open()
	n := 0
	do := func(c grant.Command) {
		if _, _, err := r.do(ctx, grant.Request{Command: c}); err != nil {
			b.Fatal(err)
		}
	}
	meta := func() grant.Meta {
		n++
		return grant.Meta{Container: box, Nonce: fmt.Sprintf("nonce-%08d", n), By: grant.Agent("a")}
	}
	do(grant.Create{Meta: meta()})
	var secret grant.Secret
	do(grant.Acquire{Meta: meta(), Session: secret.Hash()})
	const landings = 10_000
	head := grant.Digest("")
	for range landings {
		rev, _, err := r.do(ctx, grant.Request{Command: grant.Land{
			Meta: meta(), Session: grant.Session{Grant: 1, Secret: secret}, Base: head, Manifest: sumA, Note: "a landing of the benchmark",
		}})
		if err != nil {
			b.Fatal(err)
		}
		head = rev.Page().Register.Head
	}
	b.ResetTimer()
	for b.Loop() {
		began := time.Now()
		seen := 0
		for _, err := range open().All(ctx) {
			if err != nil {
				b.Fatal(err)
			}
			seen++
		}
		if seen != landings {
			b.Fatal(seen)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/10000")
	}
}
