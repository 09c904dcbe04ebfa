package kernlock

import (
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseLocks(t *testing.T) {
	got := parseLocks([]byte(`1: POSIX  ADVISORY  WRITE 77 fe:00:5 0 EOF
2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4712 fe:00:131 0 EOF
3: OFDLCK ADVISORY  WRITE -1 fe:00:131 1099511627776 1099511627776
3: -> OFDLCK ADVISORY  WRITE -1 fe:00:131 1099511627776 1099511627776
3: -> OFDLCK ADVISORY  WRITE -1 fe:00:131 0 10
4: FLOCK  ADVISORY  READ 8 00:2b:9 0 EOF
5: FLOCK  ADVISORY  READ 0 00:2b:9 0 EOF
6: FLOCK  nonsense
`))
	want := map[kernelFile]*kernelFacts{
		{"fe:00", 5}:   {state: KernelFree},
		{"fe:00", 131}: {state: KernelHeld, pids: []int{4711}, waiters: 2},
		{"00:2b", 9}:   {state: KernelHeld, shared: true, pids: []int{8}},
	}
	if !reflect.DeepEqual(got, want) {
		for f, k := range got {
			t.Errorf("%v: %+v", f, *k)
		}
	}
}

// The kernel hands out its list in pieces, and where a lock is taken in between a line comes twice.
func TestParseLocksCountsAWaiterOnce(t *testing.T) {
	got := parseLocks([]byte(`1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:131 0 EOF
2: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4712 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 4713 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 0 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 0 fe:00:131 0 EOF
`))
	if k := got[kernelFile{"fe:00", 131}]; k == nil || k.waiters != 4 {
		t.Errorf("%+v, want 4 waiters: two numbered, and two that are not", k)
	}
}

// A reading that left a lock out must not make it free.
func TestMergeLocksKeepsWhatAnyReadingShows(t *testing.T) {
	f, g := kernelFile{"fe:00", 1}, kernelFile{"fe:00", 2}
	first := map[kernelFile]*kernelFacts{f: {state: KernelFree, waiters: 2}}
	second := map[kernelFile]*kernelFacts{
		f: {state: KernelHeld, pids: []int{7}, waiters: 1},
		g: {state: KernelHeld, pids: []int{8}},
	}
	got := mergeLocks(mergeLocks(nil, first), second)
	if k := got[f]; k.state != KernelHeld || k.waiters != 2 || !reflect.DeepEqual(k.pids, []int{7}) {
		t.Errorf("%+v", *k)
	}
	if got[g] == nil || got[g].state != KernelHeld {
		t.Errorf("%+v", got[g])
	}
}

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
	}{{0, 1, 1}, {1, 1, 1}, {2, 3, 2}, {9, 3, 2}} {
		reads := 0
		locks, err := listLocks(func(int) ([]byte, int, error) {
			reads++
			return []byte([]string{a, b, a}[reads-1]), c.pieces, nil
		})
		if err != nil || reads != c.reads || len(locks) != c.want {
			t.Errorf("%d pieces: %d reads, %d locks, %v", c.pieces, reads, len(locks), err)
		}
	}
}
