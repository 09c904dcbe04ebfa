//go:build unix && !aix && !solaris

package kernlock

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWeakness15OneWaiterRotates: of two waiters that found the file full,
// the second must not push the first one's new file over the full one.
func TestWeakness15OneWaiterRotates(t *testing.T) {
	n := newTarget(t)
	path := n.incidents()
	full := bytes.Repeat([]byte("x"), maxIncidents)
	writeFile(t, path, full)
	open := func() (int, *unix.Stat_t) {
		t.Helper()
		fd, err := openRegular(path, unix.O_RDWR|unix.O_APPEND)
		must(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		return fd, &st
	}
	first, st := open()
	second, st2 := open()
	third, st3 := open()

	// While one is at it, another leaves the file where it is.
	must(t, flock(first, unix.LOCK_EX))
	if rotate(second, path, st2) {
		t.Error("two rotate at once")
	}
	if !bytes.Equal(readFile(t, path), full) {
		t.Error("the full file was moved under the one who rotates")
	}
	must(t, flock(first, unix.LOCK_UN))

	if !rotate(first, path, st) {
		t.Error("the full file was not moved")
	}
	writeFile(t, path, []byte("new\n"))
	for fd, st := range map[int]*unix.Stat_t{second: st2, third: st3} {
		if !rotate(fd, path, st) {
			t.Error("the row would go to the full file")
		}
	}
	if got := readFile(t, path); string(got) != "new\n" {
		t.Errorf("the new file holds %q", got)
	}
	if !bytes.Equal(readFile(t, path+rotatedSuffix), full) {
		t.Error("the full file is lost")
	}
}
