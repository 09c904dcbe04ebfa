package kernlock

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeldIsNeverCalledFree: the kernel gives its list of locks in pieces, and
// one that is released between two of them makes it skip another.
func TestHeldIsNeverCalledFree(t *testing.T) {
	listed(t)
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
	open := func(i int) int {
		fd, err := unix.Open(path(i), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		must(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	const held = 200 // more than come in one piece
	for i := range held {
		must(t, flock(open(i), unix.LOCK_EX))
	}
	var churn sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2 {
		fd := open(1000 + i)
		churn.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = flock(fd, unix.LOCK_EX)
				_ = flock(fd, unix.LOCK_UN)
			}
		})
	}
	free := 0
	for range 200 {
		view := lookKernel()
		for i := range held {
			if view.facts(path(i)).state == KernelFree {
				free++
			}
		}
	}
	close(stop)
	churn.Wait()
	if free > 0 {
		t.Errorf("called free %d times", free)
	}
}

func TestListLocksOfSeveralPieces(t *testing.T) {
	const a, b = "1: FLOCK  ADVISORY  WRITE 11 fe:00:101 0 EOF\n", "2: FLOCK  ADVISORY  WRITE 12 fe:00:102 0 EOF\n"
	for _, c := range []struct {
		pieces, reads, want int
	}{{0, 1, 1}, {1, 1, 1}, {2, 2, 2}, {9, 2, 2}} {
		reads := 0
		locks, err := listLocks(func(int) ([]byte, int, error) {
			reads++
			return []byte([]string{a, b}[reads-1]), c.pieces, nil
		})
		if err != nil || reads != c.reads || len(locks) != c.want {
			t.Errorf("%d pieces: %d reads, %d locks, %v", c.pieces, reads, len(locks), err)
		}
	}
}
