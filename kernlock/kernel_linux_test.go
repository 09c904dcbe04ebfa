package kernlock

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
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

// With more locks than fit into one piece of the list, and others coming and
// going, a lock that is held all the time is never shown as free.
func TestHeldLockIsSeenAmongManyThatComeAndGo(t *testing.T) {
	dir := t.TempDir()
	h, err := Open(filepath.Join(dir, "held"), Options{NoRecord: true})
	if err != nil {
		t.Fatal(err)
	}
	var others []*Lock
	for i := range 200 {
		if i == 100 {
			defer mustRelease(t, acquire(t, h))
		}
		l := mustAcquire(t, filepath.Join(dir, "other"+string(rune('a'+i%26))+string(rune('a'+i/26))), Options{NoRecord: true})
		others = append(others, l)
	}
	if lookKernel().facts(h.names.lock).state == KernelUnknown {
		t.Skip("needs /proc/locks of the initial pid namespace")
	}
	_, pieces, err := readPieces("/proc/locks")
	if err != nil || pieces < 2 {
		t.Fatalf("the list came in %d pieces, which shows nothing: %v", pieces, err)
	}
	quit, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			l := others[i%len(others)]
			if err := l.Release(); err != nil {
				t.Error(err)
				return
			}
			l, err := Acquire(t.Context(), l.Target(), Options{NoRecord: true})
			if err != nil {
				t.Error(err)
				return
			}
			others[i%len(others)] = l
		}
	}()
	for range 200 {
		if k := lookKernel().facts(h.names.lock); k.state != KernelHeld || !reflect.DeepEqual(k.pids, []int{os.Getpid()}) {
			t.Errorf("shown as %+v", k)
			break
		}
	}
	close(quit)
	<-done
	for _, l := range others {
		mustRelease(t, l)
	}
}
