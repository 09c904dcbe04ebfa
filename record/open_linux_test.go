package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What was read is closed, a little later than the hold ends, also when nothing could be changed.
func TestChangesLeaveNothingOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	put(t, path, "[\n  1\n]\n")
	open := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		n := 0
		for _, name := range names {
			if to, err := os.Readlink("/proc/self/fd/" + name.Name()); err == nil && filepath.Dir(to) == dir {
				n++
			}
		}
		return n
	}
	refuse := errors.New("no")
	must(t, Append(t.Context(), path, []byte("2"), UpdateOptions{NoSync: true}))
	if err := Update(t.Context(), path, func([]byte) ([]byte, error) { return nil, refuse }, UpdateOptions{}); !errors.Is(err, refuse) {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = Update(t.Context(), path, func([]byte) ([]byte, error) { panic("in the hold") }, UpdateOptions{})
	}()
	put(t, path, "no array\n")
	if err := Append(t.Context(), path, []byte("3"), UpdateOptions{NoSync: true}); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	if n := open(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}
