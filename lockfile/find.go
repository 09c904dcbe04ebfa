package lockfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// class is what one hold has learnt of its file system. It is learnt anew in every hold: a mount can
// change under a path.
type class uint8

const (
	unlearnt class = iota
	links          // a link() has succeeded
	noLinks        // a link() has failed other than by a missing or a taken name
)

// lock is one lock in the hands of one call.
type lock struct {
	s    *seam.Set
	path string // guarded file; its last element is no symlink
	name string // lock file
	dir  string // the folder of both
	base string // name of the guarded file in it
	sync bool
	hint string
	cls  class
	// guarded describes the guarded file; exists says whether there is one.
	guarded vfs.Info
	exists  bool
	// self and tag are this process, looked up at the first need and then kept: a name and a content
	// made for one hold are of one host name, whatever the host is called meanwhile.
	self proc.Holder
	tag  string
}

// identity is this process, as the lock and the names beside it say it.
func (l *lock) identity() (self proc.Holder, tag string) {
	if l.tag == "" {
		l.self, l.tag = l.s.Process.Self(), l.s.Process.Tag()
	}
	return l.self, l.tag
}

// find looks at the guarded file and says where its lock is. It makes nothing.
func find(path string, o Options) (*lock, error) {
	l := &lock{s: o.Seams.Or(), sync: !o.NoSync, hint: o.UnlockHint}
	path, err := absolute(path)
	if err != nil {
		return nil, err
	}
	const maxLinks = 40
	for n := 0; ; n++ {
		l.guarded, err = l.s.FS.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", path, err)
		}
		if l.guarded.Mode&fs.ModeSymlink == 0 {
			l.exists = true
			break
		}
		if n == maxLinks {
			return nil, fmt.Errorf("look at %s: %w", path, syscall.ELOOP)
		}
		text, err := l.s.FS.Readlink(path)
		if err != nil {
			return nil, fmt.Errorf("follow %s: %w", path, err)
		}
		if !filepath.IsAbs(text) {
			dir, _ := vfs.Split(path)
			text = dir + string(filepath.Separator) + text
		}
		path = text
	}
	l.path, l.name = path, path+format.LockSuffix
	l.dir, l.base = vfs.Split(path)
	if l.base == "" || l.exists && !l.guarded.Mode.IsRegular() {
		return nil, fmt.Errorf("guard %s: %w", path, ErrNotRegular)
	}
	return l, nil
}

// absolute makes a path independent of the working folder, without rewriting it: "link/.." is not
// where it seems.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	if runtime.GOOS == "windows" {
		return filepath.Abs(path)
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	return wd + "/" + path, nil
}

// fits checks that the longest name the lock may need is allowed in the folder, before any is made.
func (l *lock) fits() error {
	// Shorter than this, it fits every file system in use: the least limit is that of one which
	// encrypts names.
	const safe = 143
	longest := len(l.base) + format.LongestSuffix
	if longest <= safe {
		return nil
	}
	limit := format.MaxNameLen
	if fsys, ok := l.s.FS.(vfs.NameLimiter); ok && longest <= limit {
		if n := fsys.NameMax(l.dir); n > 0 && n < limit {
			limit = n
		}
	}
	if longest > limit {
		return fmt.Errorf("lock %s: %w: at most %d bytes here", displayPath(l.path), ErrNameTooLong,
			limit-format.LongestSuffix)
	}
	return nil
}

// reading is a lock file as one handle saw it.
type reading struct {
	info  vfs.Info
	data  []byte // the content; of a file over MaxLock the beginning
	ended bool   // data is the whole content
	// Of a file over MaxLock that was read to its end: its size and sha256.
	size int64
	sum  []byte

	lock   *format.Lock // what parse found; nil: unreadable
	kernel bool         // parse found a kernel lock's holder record
	alive  bool         // the last judgement of the holder
}

// look reads the lock and what it says.
func (l *lock) look() (*reading, error) {
	r, err := l.read(l.name, false)
	if err == nil {
		r.parse()
	}
	return r, err
}

// parse reads the meaning of what was read.
func (r *reading) parse() {
	if !r.ended {
		return
	}
	if r.kernel = format.IsKernelRecord(r.data); !r.kernel {
		r.lock, _ = format.ParseLock(r.data)
	}
}

// read reads a lock file. With whole it is read to its end whatever its size, to be compared;
// otherwise a file over MaxLock is only known to be unreadable.
func (l *lock) read(name string, whole bool) (*reading, error) {
	f, err := l.s.FS.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// Opening a link or a socket fails in its own way on each system.
		if info, lerr := l.s.FS.Lstat(name); lerr == nil && !info.Mode.IsRegular() {
			return nil, notLockFile(name, info)
		}
		return nil, fmt.Errorf("read lock: %w", err)
	}
	defer f.Close() // a failed close of what was only read loses nothing
	r := &reading{}
	if r.info, err = f.Stat(); err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	if !r.info.Mode.IsRegular() {
		return nil, notLockFile(name, r.info)
	}
	r.data, r.ended, err = vfs.ReadSized(f, r.info.Size, format.MaxLock)
	if err == nil && !r.ended && whole {
		sum := sha256.New()
		sum.Write(r.data)
		r.size, err = io.Copy(sum, f)
		r.size += int64(len(r.data))
		r.sum = sum.Sum(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	return r, nil
}

// same reports whether two readings are of the same bytes, which are a lock's identity: every lock
// carries a token of its own. A copy has them too, so a lock put back by copying is the same.
func (r *reading) same(other *reading) bool {
	if r.ended && other.ended {
		return bytes.Equal(r.data, other.data)
	}
	return !r.ended && !other.ended && r.sum != nil && r.size == other.size && bytes.Equal(r.sum, other.sum)
}

// key is the part of a claim's name that says which lock it is on.
func (r *reading) key() string {
	sum := r.sum
	if r.ended {
		s := sha256.Sum256(r.data)
		sum = s[:]
	}
	return hex.EncodeToString(sum)[:format.KeyLen]
}

func notLockFile(name string, info vfs.Info) error {
	kind := "a device"
	switch {
	case info.Mode.IsDir():
		kind = "a folder"
	case info.Mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case info.Mode&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case info.Mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%s is %s: %w", displayPath(name), kind, ErrNotLockFile)
}

func (l *lock) kernelLock() error {
	return fmt.Errorf("%s: %w, kept by stile run and its like; it is never removed (see stile status)",
		displayPath(l.name), ErrKernelLock)
}
