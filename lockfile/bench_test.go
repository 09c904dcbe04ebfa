package lockfile

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
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

// cycle acquires and releases from one line on stdin to the next, and says how often.
func cycle(path string, in *bufio.Reader) int {
	_, _ = in.ReadString('\n')
	var over atomic.Bool
	go func() {
		_, _ = in.ReadString('\n')
		over.Store(true)
	}()
	n := 0
	for ; !over.Load(); n++ {
		h, err := Acquire(context.Background(), path, Options{NoSync: true, Timeout: time.Minute})
		if err != nil {
			fmt.Println("error:", err)
			return 1
		}
		if err := h.Release(); err != nil {
			fmt.Println("error:", err)
			return 1
		}
	}
	fmt.Println(n)
	return 0
}

// BenchmarkCrowd is processes that acquire and release for a second, together.
func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run("processes="+strconv.Itoa(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "f")
			for b.Loop() {
				var children []*child
				for range n {
					children = append(children, start(b, order{Path: path, Class: classes[0], Do: "cycle"}))
				}
				for _, c := range children {
					c.goOn()
				}
				time.Sleep(time.Second) //nolint:forbidigo // the second that is measured
				for _, c := range children {
					c.goOn()
				}
				total, least, most := 0, 1<<30, 0
				for _, c := range children {
					line, err := c.out.ReadString('\n')
					if err != nil {
						b.Fatal(err)
					}
					var k int
					if _, err := fmt.Sscan(line, &k); err != nil {
						b.Fatal(line)
					}
					total, least, most = total+k, min(least, k), max(most, k)
				}
				b.ReportMetric(float64(total), "cycles/s")
				b.ReportMetric(float64(least)/float64(most), "slowest/fastest")
			}
		})
	}
}
