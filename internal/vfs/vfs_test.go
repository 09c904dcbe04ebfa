package vfs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

func TestOS(t *testing.T) {
	vfstest.TestFS(t, vfs.OS(), t.TempDir(),
		func(name string) {
			if err := os.Mkdir(name, 0o755); err != nil {
				t.Fatal(err)
			}
		},
		func(text, name string) {
			if err := os.Symlink(text, name); err != nil {
				t.Fatal(err)
			}
		})
}

// A folder whose names fill several buffers, with names of every length.
func TestListLarge(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 2000 {
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

func TestModesAndOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	name := filepath.Join(t.TempDir(), "f")
	f, err := vfs.OS().Create(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Chmod(0o640 | fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Mode != 0o640|fs.ModeSetgid || info.UID != os.Getuid() {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := f.Chown(-1, info.GID); err != nil {
		t.Fatal(err)
	}
}

// A watch wakes for its own name being moved and for nothing else; the name's coming, other names
// and unlinking wake nobody.
func TestWatch(t *testing.T) {
	fsys, ok := vfs.OS().(vfs.Watcher)
	if !ok {
		t.Skip("no watching here")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	w, err := fsys.Watch(dir, "lock")
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	for _, name := range []string{"lock", "other"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Rename(at("other"), at("another"))

	woken := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	wait := func() { woken <- w.Wait(ctx, time.Hour, 0) }
	go wait()
	select {
	case err := <-woken:
		t.Fatalf("woken by another name, %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	os.Rename(at("lock"), at("moved"))
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	go wait()
	cancel()
	if err := <-woken; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := w.Wait(t.Context(), time.Millisecond, 0); err != nil {
		t.Fatal(err)
	}
}

func TestWatchSeesDeath(t *testing.T) {
	fsys, ok := vfs.OS().(vfs.Watcher)
	if !ok {
		t.Skip("no watching here")
	}
	w, err := fsys.Watch(t.TempDir(), "lock")
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
	if err != nil {
		t.Skip(err)
	}
	woken := make(chan error)
	go func() { woken <- w.Wait(t.Context(), time.Hour, int64(p.Pid)) }()
	p.Kill()
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

func TestTryFlock(t *testing.T) {
	fsys, ok := vfs.OS().(vfs.Flocker)
	if !ok {
		t.Skip("no flock here")
	}
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, held, err := fsys.TryFlock(name)
	if err != nil || held {
		t.Fatalf("a free lock: held %v, %v", held, err)
	}
	if _, held, err := fsys.TryFlock(name); err != nil || !held {
		t.Fatalf("a held lock: held %v, %v", held, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, held, err = fsys.TryFlock(name)
	if err != nil || held {
		t.Fatalf("a lock let go: held %v, %v", held, err)
	}
	release()
}
