package lockfile

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// BenchmarkCycle is one acquisition and release, no Sync, on the real file system.
func BenchmarkCycle(b *testing.B) {
	for _, others := range []int{0, 100, 1000} {
		b.Run("others="+strconv.Itoa(others), func(b *testing.B) {
			dir := b.TempDir()
			for i := range others {
				if err := os.WriteFile(filepath.Join(dir, "other"+strconv.Itoa(i)), nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			path := filepath.Join(dir, "f")
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				h, err := Acquire(b.Context(), path, Options{NoSync: true})
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Release(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
