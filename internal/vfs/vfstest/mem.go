// Package vfstest has file systems for tests: one in memory that can lose power, and wrappers that
// fail, kill or hold each operation of another one.
package vfstest

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stile-lock/stile/internal/vfs"
)

// Mem is a file system in memory. It keeps what a disk would keep: for each file the content as last
// synced, and for each name what it stood for when its folder was last synced. CrashImages builds
// from that what may be found after a power cut.
//
// Set its fields before first use.
type Mem struct {
	// Now gives modification times; time.Now when nil.
	Now func() time.Time
	// LinkErr, when set, is how Link fails on a free name, as on a file system without hard links.
	// A taken name is refused with EEXIST all the same, as such file systems do.
	LinkErr error
	// Umask is taken from the mode of created files.
	Umask fs.FileMode
	// UID and GID own created files.
	UID, GID int

	mu    sync.Mutex
	ino   uint64
	names map[string]*node // by cleaned path; folders too
	// was holds, for each name changed since its folder was last synced, all that it has stood for
	// since then, oldest first and without the present; nil is "no such name".
	was map[string][]*node
}

// node is a file, folder or other thing that names refer to.
type node struct {
	ino      uint64
	mode     fs.FileMode
	uid, gid int
	mtime    time.Time
	data     []byte // also a symlink's text
	synced   []byte // content at the last Sync
	dirty    bool   // changed since
}

// NewMem returns an empty file system with the folders dirs.
func NewMem(dirs ...string) *Mem {
	m := &Mem{names: map[string]*node{}, was: map[string][]*node{}}
	for _, dir := range append([]string{"/"}, dirs...) {
		m.names[clean(dir)] = m.node(fs.ModeDir|0o755, nil)
	}
	return m
}

func (m *Mem) node(mode fs.FileMode, data []byte) *node {
	m.ino++
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	return &node{ino: m.ino, mode: mode, uid: m.UID, gid: m.GID, mtime: now(), data: data}
}

// Put makes or replaces name, already safe on disk. A mode with type bits makes a link (data is its
// text), a FIFO and so on.
func (m *Mem) Put(name string, data []byte, mode fs.FileMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.node(mode, slices.Clone(data))
	n.synced = slices.Clone(data)
	m.names[clean(name)] = n
}

// Get returns the content of name, and whether it is there.
func (m *Mem) Get(name string) (data []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[clean(name)]
	if n == nil {
		return nil, false
	}
	return slices.Clone(n.data), true
}

// SetTime sets the modification time of name, which must exist.
func (m *Mem) SetTime(name string, t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[clean(name)].mtime = t
}

// Names returns the base names in dir, sorted.
func (m *Mem) Names(dir string) []string {
	names, _ := m.List(dir, "")
	return names
}

// clean is how a name is kept. There is one volume, so that "/d/f" means the same on Windows.
func clean(name string) string { return filepath.Clean(name[len(filepath.VolumeName(name)):]) }

// set changes what a name stands for and remembers what it stood for.
func (m *Mem) set(name string, n *node) {
	m.was[name] = append(m.was[name], m.names[name])
	if n == nil {
		delete(m.names, name)
	} else {
		m.names[name] = n
	}
}

// parent returns an error when the folder of name is missing or is no folder.
func (m *Mem) parent(name string) error {
	switch n := m.names[filepath.Dir(name)]; {
	case n == nil:
		return syscall.ENOENT
	case !n.mode.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}

func pathErr(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// Create implements vfs.FS.
func (m *Mem) Create(name string, perm fs.FileMode) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	if err := m.parent(name); err != nil {
		return nil, pathErr("create", name, err)
	}
	if m.names[name] != nil {
		return nil, pathErr("create", name, syscall.EEXIST)
	}
	n := m.node(perm.Perm()&^m.Umask, nil)
	m.set(name, n)
	return &memFile{m: m, n: n, name: name, write: true}, nil
}

// Open implements vfs.FS.
func (m *Mem) Open(name string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	n := m.names[name]
	switch {
	case n == nil:
		return nil, pathErr("open", name, syscall.ENOENT)
	case n.mode&fs.ModeSymlink != 0:
		return nil, pathErr("open", name, syscall.ELOOP)
	case n.mode&fs.ModeSocket != 0:
		return nil, pathErr("open", name, syscall.ENXIO)
	case n.mode.IsRegular() && n.mode&0o400 == 0:
		return nil, pathErr("open", name, syscall.EACCES)
	}
	return &memFile{m: m, n: n, name: name}, nil
}

// Link implements vfs.FS.
func (m *Mem) Link(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, name := clean(oldname), clean(newname)
	var err error
	switch n := m.names[old]; {
	case n == nil:
		err = syscall.ENOENT
	case m.parent(name) != nil:
		err = m.parent(name)
	case m.names[name] != nil:
		err = syscall.EEXIST
	case m.LinkErr != nil:
		err = m.LinkErr
	case n.mode.IsDir():
		err = syscall.EPERM
	default:
		m.set(name, n)
		return nil
	}
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
}

// Rename implements vfs.FS.
func (m *Mem) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, name := clean(oldname), clean(newname)
	n, there := m.names[old], m.names[name]
	var err error
	switch {
	case n == nil:
		err = syscall.ENOENT
	case m.parent(name) != nil:
		err = m.parent(name)
	case there != nil && there.mode.IsDir() && !n.mode.IsDir():
		err = syscall.EISDIR
	case n == there: // two names of one file: POSIX has rename do nothing
		return nil
	default:
		m.set(old, nil)
		m.set(name, n)
		return nil
	}
	return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
}

// Remove implements vfs.FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	switch n := m.names[name]; {
	case n == nil:
		return pathErr("remove", name, syscall.ENOENT)
	case n.mode.IsDir():
		return pathErr("remove", name, syscall.EISDIR)
	}
	m.set(name, nil)
	return nil
}

// Mkdir implements vfs.FolderMaker.
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	if err := m.parent(name); err != nil {
		return pathErr("mkdir", name, err)
	}
	if m.names[name] != nil {
		return pathErr("mkdir", name, syscall.EEXIST)
	}
	m.set(name, m.node(fs.ModeDir|perm.Perm()&^m.Umask, nil))
	return nil
}

// Lstat implements vfs.FS.
func (m *Mem) Lstat(name string) (vfs.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[clean(name)]
	if n == nil {
		return vfs.Info{}, pathErr("lstat", name, syscall.ENOENT)
	}
	return n.info(), nil
}

func (n *node) info() vfs.Info {
	return vfs.Info{
		Mode: n.mode, Size: int64(len(n.data)), ModTime: n.mtime,
		Dev: 1, Ino: n.ino, UID: n.uid, GID: n.gid,
	}
}

// Readlink implements vfs.FS.
func (m *Mem) Readlink(name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[clean(name)]
	switch {
	case n == nil:
		return "", pathErr("readlink", name, syscall.ENOENT)
	case n.mode&fs.ModeSymlink == 0:
		return "", pathErr("readlink", name, syscall.EINVAL)
	}
	return string(n.data), nil
}

// List implements vfs.FS.
func (m *Mem) List(dir, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = clean(dir)
	if n := m.names[dir]; n == nil {
		return nil, pathErr("open", dir, syscall.ENOENT)
	} else if !n.mode.IsDir() {
		return nil, pathErr("open", dir, syscall.ENOTDIR)
	}
	var names []string
	for name := range m.names {
		if base := filepath.Base(name); name != dir && filepath.Dir(name) == dir && strings.HasPrefix(base, prefix) {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names, nil
}

// SyncDir implements vfs.FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir = clean(dir)
	if m.names[dir] == nil {
		return pathErr("sync", dir, syscall.ENOENT)
	}
	for name := range m.was {
		if filepath.Dir(name) == dir {
			delete(m.was, name)
		}
	}
	return nil
}

type memFile struct {
	m      *Mem
	n      *node
	name   string
	write  bool
	at     int
	closed bool
}

func (f *memFile) Read(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, pathErr("read", f.name, fs.ErrClosed)
	case f.n.mode.IsDir():
		return 0, pathErr("read", f.name, syscall.EISDIR)
	case f.at >= len(f.n.data):
		return 0, io.EOF
	}
	n := copy(p, f.n.data[f.at:])
	f.at += n
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed || !f.write {
		return 0, pathErr("write", f.name, syscall.EBADF)
	}
	f.n.data = append(f.n.data, p...)
	f.n.dirty = true
	if f.m.Now != nil {
		f.n.mtime = f.m.Now()
	}
	return len(p), nil
}

func (f *memFile) Stat() (vfs.Info, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.n.info(), nil
}

func (f *memFile) Chmod(mode fs.FileMode) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.mode = f.n.mode&fs.ModeType | mode&^fs.ModeType
	return nil
}

// Chown knows one privilege: only a file system that runs as UID 0 gives files away.
func (f *memFile) Chown(uid, gid int) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.UID != 0 && (uid >= 0 && uid != f.n.uid || gid >= 0 && gid != f.n.gid) {
		return pathErr("chown", f.name, syscall.EPERM)
	}
	if uid >= 0 {
		f.n.uid = uid
	}
	if gid >= 0 {
		f.n.gid = gid
	}
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathErr("sync", f.name, fs.ErrClosed)
	}
	f.n.synced, f.n.dirty = slices.Clone(f.n.data), false
	return nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	return nil
}
