package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// The classes of file systems.
var classes = []string{"hard links", "no hard links"}

// clock shows a test's time, and sleeps in the world's.
type clock struct{ *granttest.Clock }

func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// linkless is a file system without hard links.
type linkless struct{ vfs.FS }

func (f linkless) Link(oldname, newname string) error {
	if _, err := f.Lstat(newname); err == nil {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EEXIST}
	}
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
}

func (f linkless) Mkdir(name string, perm fs.FileMode) error {
	return f.FS.(vfs.FolderMaker).Mkdir(name, perm)
}

// classFS is the system's files, with link() failing in the second class. On a volume where it fails by itself
// nothing is in between.
func classFS(class string) vfs.FS {
	if class == classes[0] || volumeWithoutLinks() {
		return vfs.OS()
	}
	return linkless{vfs.OS()}
}

// testDir is a folder on the volume that the estates are to lie on; empty when any will do.
var testDir = os.Getenv("STILE_TEST_DIR")

// volumeWithoutLinks reports whether link() fails on that volume.
var volumeWithoutLinks = sync.OnceValue(func() bool {
	if testDir == "" {
		return false
	}
	dir, err := os.MkdirTemp(testDir, "links")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "a")
	return os.WriteFile(name, nil, 0o600) == nil && os.Link(name, name+"2") != nil
})

// estateDir is a folder for an estate. The user's state lies elsewhere: at home, not on the volume.
func estateDir(t *testing.T) string {
	t.Helper()
	if testDir == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(testDir, "estate") //nolint:usetesting // on that volume
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// diskPlace is a store on the system's files.
func diskPlace(t *testing.T, class string, clock seam.Clock) granttest.Place {
	estate, state := estateDir(t), t.TempDir()
	open := func() *Store {
		s, err := Open(estate, Options{State: state, Estate: "e", Seams: &seam.Set{FS: classFS(class), Clock: clock}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	root := filepath.Join(estate, containersName)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	page := func(container string, at grant.Ref) string {
		return filepath.Join(root, container, pagesName, place{at.Epoch, at.Rev}.name())
	}
	return granttest.Place{
		Open: func() grant.Store { return open() },
		Backup: func() func() {
			kept := filepath.Join(t.TempDir(), "kept")
			must(os.CopyFS(kept, os.DirFS(root)))
			return func() {
				must(os.RemoveAll(root))
				must(os.CopyFS(root, os.DirFS(kept)))
			}
		},
		Lose: func(container string) { must(os.RemoveAll(filepath.Join(root, container, pagesName))) },
		Overwrite: func(container string, at grant.Ref, data []byte) {
			must(os.WriteFile(page(container, at), data, 0o600))
		},
		Miss:    func(container string, at grant.Ref) { must(os.Remove(page(container, at))) },
		Restore: restoring,
	}
}

func restoring(ctx context.Context, s grant.Store, cmd grant.Restore) (grant.Revision, error) {
	rev, _, err := s.(*Store).Restore(ctx, cmd)
	return rev, err
}

// memPlace is a store on files in memory, which can lose power.
func memPlace(t *testing.T, class string, clock seam.Clock) (granttest.Place, *vfstest.Mem) {
	mem := vfstest.NewMem("/e", "/s")
	if class == classes[1] {
		mem.LinkErr = syscall.ENOTSUP
	}
	return granttest.Place{
		Open:    func() grant.Store { return openMem(t, mem, clock) },
		Restore: restoring,
		Overwrite: func(container string, at grant.Ref, data []byte) {
			mem.Put("/e/containers/"+container+"/pages/"+place{at.Epoch, at.Rev}.name(), data, 0o600)
		},
		PowerCuts: func(yield func(grant.Store) bool) {
			for image := range mem.CrashImages(200, 1) {
				if !yield(openMem(t, image, clock)) {
					return
				}
			}
		},
	}, mem
}

func openMem(t *testing.T, fsys vfs.FS, clock seam.Clock) *Store {
	t.Helper()
	s, err := Open("/e", Options{
		State: "/s/stile", Estate: "e",
		Seams: &seam.Set{FS: fsys, Clock: clock},
		fence: noFence,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noFence stands for the kernel's locks where files are not the kernel's.
func noFence(context.Context, string) (func() error, error) { return func() error { return nil }, nil }

func TestStore(t *testing.T) {
	for _, class := range classes {
		t.Run(class, func(t *testing.T) {
			granttest.Run(t, func(t *testing.T, c *granttest.Clock) granttest.Place { return diskPlace(t, class, clock{c}) })
		})
	}
}

func TestStoreInMemory(t *testing.T) {
	for _, class := range classes {
		t.Run(class, func(t *testing.T) {
			granttest.Run(t, func(t *testing.T, c *granttest.Clock) granttest.Place {
				place, _ := memPlace(t, class, clock{c})
				return place
			})
		})
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	list, err := vfs.OS().List(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}
