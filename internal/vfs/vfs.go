// Package vfs holds the few file operations that the lock file needs, and is the only place in the
// module that knows when a file or a folder has to be fsynced, and how.
//
// The interface is small on purpose: each method is one thing that can fail, be killed or be
// overtaken by another process, so a wrapper that counts, fails or delays methods (see vfstest) sees
// every point at which the world can change. Two promises are made by every implementation:
//
//   - Create and Link are exclusive: they fail with fs.ErrExist when the new name is there, whatever
//     it is, and never replace it.
//   - No method follows a symbolic link in the last element of a name.
//
// Every error wraps an *fs.PathError or *os.LinkError, so errors.Is finds fs.ErrExist,
// fs.ErrNotExist, fs.ErrPermission and the system's own error number.
package vfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FS is a set of operations on named files. Names are those of the operating system.
// Implementations are safe for concurrent use.
type FS interface {
	// Create makes a file that was not there and opens it for writing, with perm less the umask.
	Create(name string, perm fs.FileMode) (File, error)
	// Open opens a file for reading. It never waits, not even on a FIFO without a writer, so the
	// caller can ask Stat what it has opened.
	Open(name string) (File, error)
	// Link gives the file oldname the second name newname.
	Link(oldname, newname string) error
	// Rename moves oldname to newname, replacing a file there in one step.
	Rename(oldname, newname string) error
	// Remove takes away a name. It never removes a folder, not even an empty one.
	Remove(name string) error
	// Lstat describes what the name is, without opening it.
	Lstat(name string) (Info, error)
	// Readlink returns the text of a symbolic link.
	Readlink(name string) (string, error)
	// List returns the names in the folder dir that begin with prefix, sorted.
	List(dir, prefix string) ([]string, error)
	// SyncDir makes the folder's present names survive a power cut. Where folders cannot be synced
	// (Windows; file systems that answer "invalid") it reports success, since nothing can be done.
	SyncDir(dir string) error
}

// File is an open file. A File is used by one goroutine at a time.
type File interface {
	io.Reader
	io.Writer
	// Stat describes the open file, whatever its name is by now.
	Stat() (Info, error)
	// Chmod sets the permission bits, setuid and setgid included.
	Chmod(mode fs.FileMode) error
	// Chown sets the owning user and group; -1 leaves one as it is.
	Chown(uid, gid int) error
	// Sync makes the content survive a power cut. After an error the content's state is unknown and
	// a second Sync proves nothing: the caller must give the file up.
	Sync() error
	// Close ends the use of the file. Its error can be the first sign that a write was lost.
	Close() error
}

// Info describes a file.
type Info struct {
	Mode    fs.FileMode // type and permission bits
	Size    int64       // bytes
	ModTime time.Time
	Dev     uint64 // with Ino, the file's identity; both 0 where the system has none
	Ino     uint64
	UID     int // -1 where the system has none
	GID     int
}

// SameFile reports whether two descriptions are of one file. It is never true where files have no
// identity.
func SameFile(a, b Info) bool { return a.Ino != 0 && a.Ino == b.Ino && a.Dev == b.Dev }

// FolderMaker is an FS that can make folders.
type FolderMaker interface {
	// Mkdir makes a folder that was not there, with perm less the umask: fs.ErrExist when the name is
	// there, whatever it is. The parent must be.
	Mkdir(name string, perm fs.FileMode) error
}

// ArrivalWatcher is an FS that can wake a caller when a name appears in a folder, by creation, link or
// rename. As with Watcher, waking is a convenience.
type ArrivalWatcher interface {
	// WatchArrivals begins to watch the folder dir. Wait then returns for any new name in it.
	WatchArrivals(dir string) (Watch, error)
}

// Watcher is an FS that can wake a caller when a name leaves its folder. Waking is a convenience:
// callers must look again themselves, and must also look now and then without being woken.
type Watcher interface {
	// Watch begins to watch for base being moved out of dir. A name that is unlinked, not moved,
	// wakes nobody. An error means that watching cannot be had now; the caller polls instead.
	Watch(dir, base string) (Watch, error)
}

// Watch is one caller's watch of one name.
type Watch interface {
	// Wait returns when the name has left since the last Wait, when the process pid has ended, when
	// d has passed, or when ctx is done; the last is the only error besides a broken watch.
	// A pid of 0 watches no process. The pid must be one of the caller's own pid namespace.
	Wait(ctx context.Context, d time.Duration, pid int64) error
	// Close ends the watch.
	Close() error
}

// Flocker is an FS that can try the kernel lock of a file.
type Flocker interface {
	// TryFlock takes the kernel lock of the file if nobody holds it, without waiting. When it is
	// held elsewhere, held is true and release nil.
	TryFlock(name string) (release func() error, held bool, err error)
}

// NameLimiter is an FS that knows how long a name may be.
type NameLimiter interface {
	// NameMax returns the longest name that the folder's file system allows, in bytes; 0 when that
	// is not known.
	NameMax(dir string) int
}

// Split cuts a path into its folder and its last element. Unlike filepath.Dir it rewrites nothing:
// "a/link/../f" is in "a/link/..", wherever the link leads.
func Split(path string) (dir, base string) {
	dir, base = filepath.Split(path)
	if short := strings.TrimRightFunc(dir, isSeparator); short != "" && filepath.VolumeName(dir) != short {
		return short, base
	}
	if dir == "" {
		dir = "."
	}
	return dir, base
}

func isSeparator(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) }

// ReadAll reads the open file to its end. When it has more than limit bytes, the first limit+1 of them
// are returned and whole is false.
func ReadAll(f io.Reader, limit int) (data []byte, whole bool, err error) {
	// A lock file has about 200 bytes: one read for the content, one that finds the end.
	data = make([]byte, 0, min(limit+1, 512))
	for len(data) <= limit {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), limit+1)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, true, nil
		}
		if err != nil {
			return data, false, err
		}
	}
	return data, false, nil
}

// ReadSized is ReadAll for a regular file whose Stat has just given its size. When one read, into a
// buffer with room for more, returns that many bytes, both say that they are all, and no second read
// is made to hear it again.
func ReadSized(f io.Reader, size int64, limit int) (data []byte, whole bool, err error) {
	if size < 1 || size > int64(limit) {
		return ReadAll(f, limit)
	}
	data = make([]byte, size+1)
	n, err := f.Read(data)
	switch {
	case err == nil && int64(n) == size:
		return data[:n], true, nil
	case errors.Is(err, io.EOF):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	rest, whole, err := ReadAll(f, limit-n)
	return append(data[:n], rest...), whole, err
}

// WriteAll writes all of data. A short write without an error is an error here.
func WriteAll(f io.Writer, data []byte) error {
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}
