package vfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func TestOS(t *testing.T) {
	vfstest.TestFS(t, vfs.OS(), t.TempDir(),
		func(name string) {
			if err := os.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		})
}

func TestOSLinks(t *testing.T) {
	vfstest.TestFSLinks(t, vfs.OS(), t.TempDir(),
		func(text, name string) {
			if err := os.Symlink(text, name); err != nil {
				t.Fatal(err)
			}
		})
}

func TestOSFolders(t *testing.T) { vfstest.TestFSFolders(t, vfs.OS(), t.TempDir()) }

// A folder whose names fill several buffers, with names of every length.
func TestListLarge(t *testing.T) {
	dir := t.TempDir()
	n := 2000
	if runtime.GOOS == "windows" { // where making a file takes long, and the system has its own listing
		n = 100
	}
	var want []string
	for i := range n {
		name := fmt.Sprintf("%d-%s", i%7, strings.Repeat("n", 1+i%200)) + fmt.Sprint(i)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i%7 == 3 {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	got, err := vfs.OS().List(dir, "3-")
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("listed %d names, %v; want %d", len(got), err, len(want))
	}
}

func TestReadAllLimit(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 1024, 1025, 5000} {
		for _, limit := range []int{1, 512, 1024} {
			data, whole, err := vfs.ReadAll(strings.NewReader(strings.Repeat("x", size)), limit)
			if err != nil || whole != (size <= limit) || len(data) != min(size, limit+1) {
				t.Errorf("size %d, limit %d: %d bytes, whole %v, %v", size, limit, len(data), whole, err)
			}
		}
	}
}

// A size that is wrong, as that of a file that is being written may be, changes nothing but the number
// of reads.
func TestReadSized(t *testing.T) {
	const limit = 1024
	for _, length := range []int{0, 1, 511, 512, 1023, 1024, 1025, 5000} {
		for _, off := range []int{-5000, -1, 0, 1, 5000} {
			content := strings.Repeat("x", length)
			r := &countingReader{r: strings.NewReader(content)}
			data, whole, err := vfs.ReadSized(r, int64(length+off), limit)
			if err != nil || whole != (length <= limit) || string(data) != content[:min(length, limit+1)] {
				t.Errorf("%d bytes, said to be %d: %d bytes, whole %v, %v", length, length+off, len(data), whole, err)
			}
			if off == 0 && 0 < length && length <= limit && r.reads != 1 {
				t.Errorf("%d bytes took %d reads", length, r.reads)
			}
		}
	}
}

type countingReader struct {
	r     *strings.Reader
	reads int
}

func (c *countingReader) Read(p []byte) (int, error) {
	c.reads++
	return c.r.Read(p)
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][2]string{
		"f": {".", "f"}, "/f": {"/", "f"}, "/a/f": {"/a", "f"}, "/a//f": {"/a", "f"},
		"/a/link/../f": {"/a/link/..", "f"}, "a/": {"a", ""}, "./f": {".", "f"},
	} {
		if dir, base := vfs.Split(path); dir != want[0] || base != want[1] {
			t.Errorf("Split(%q) = %q, %q; want %q", path, dir, base, want)
		}
	}
}

type halfWriter struct{}

func (halfWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestWriteAllShort(t *testing.T) {
	if vfs.WriteAll(halfWriter{}, []byte("abcd")) == nil {
		t.Fatal("a short write was taken for success")
	}
}
