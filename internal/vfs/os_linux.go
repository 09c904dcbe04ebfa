package vfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OS returns the operating system's files. On Linux it makes the system calls itself: a lock file's
// cycle is nine short ones, and package os adds about a third to their time (polling descriptors,
// finalizers, a second call in Remove, an allocation for each name in a folder).
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct {
	fd   int
	name string
}

// again repeats a call that a signal interrupted. Go's own preemption signals make that routine.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func pathErr(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func linkErr(op, oldname, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: oldname, New: newname, Err: err}
}

func open(op, name string, flags int, perm fs.FileMode) (File, error) {
	fd, err := openAt(name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, sysMode(perm))
	if err != nil {
		return nil, pathErr(op, name, err)
	}
	return &osFile{fd: fd, name: name}, nil
}

func (osFS) Create(name string, perm fs.FileMode) (File, error) {
	return open("create", name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, perm)
}

func (osFS) Open(name string) (File, error) {
	return open("open", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

func (osFS) Link(oldname, newname string) error {
	return linkErr("link", oldname, newname, linkAt(oldname, newname))
}

func (osFS) Rename(oldname, newname string) error {
	return linkErr("rename", oldname, newname, renameAt(oldname, newname))
}

func (osFS) Remove(name string) error {
	return pathErr("remove", name, unlinkAt(name))
}

// Mkdir implements FolderMaker.
func (osFS) Mkdir(name string, perm fs.FileMode) error {
	return pathErr("mkdir", name, again(func() error { return unix.Mkdir(name, sysMode(perm)) }))
}

func (osFS) Lstat(name string) (Info, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Lstat(name, &st) }); err != nil {
		return Info{}, pathErr("lstat", name, err)
	}
	return infoOf(&st), nil
}

func (osFS) Readlink(name string) (string, error) { return os.Readlink(name) }

// SyncDir opens the folder and fsyncs it. EINVAL and ENOTSUP are how a file system without folder
// sync answers; any other error is a real one.
func (osFS) SyncDir(dir string) error {
	fd, err := openDir(dir)
	if err != nil {
		return err
	}
	err = again(func() error { return unix.Fsync(fd) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(pathErr("sync", dir, err), pathErr("close", dir, unix.Close(fd)))
}

// openDir follows links: only the last elements of file names are held to be plain.
func openDir(dir string) (fd int, err error) {
	fd, err = openAt(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, pathErr("open", dir, err)
}

// NameMax implements NameLimiter. Most file systems say 255; one that encrypts names may say 143.
func (osFS) NameMax(dir string) int {
	var st unix.Statfs_t
	if again(func() error { return unix.Statfs(dir, &st) }) != nil {
		return 0
	}
	return int(st.Namelen)
}

var direntBufs = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// List reads the folder with getdents and makes strings only of the names that are wanted: with a
// thousand other files in the folder that is most of the cost of a sweep.
func (osFS) List(dir, prefix string) ([]string, error) {
	fd, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	bufp := direntBufs.Get().(*[]byte)
	defer direntBufs.Put(bufp)
	var names []string
	for {
		var n int
		err := again(func() (err error) {
			n, err = unix.Getdents(fd, *bufp)
			return err
		})
		if err != nil {
			return nil, pathErr("readdir", dir, err)
		}
		if n <= 0 {
			slices.Sort(names)
			return names, nil
		}
		names = appendNames(names, (*bufp)[:n], prefix)
	}
}

// appendNames picks the names with the prefix out of a buffer of linux_dirent64 records: inode (8
// bytes), offset (8), record length (2), type (1), then the name, ended by a zero byte.
func appendNames(names []string, buf []byte, prefix string) []string {
	const reclenAt, nameAt = 16, 19
	for len(buf) > nameAt {
		reclen := int(binary.NativeEndian.Uint16(buf[reclenAt:]))
		if reclen <= nameAt || reclen > len(buf) {
			return names
		}
		name := buf[nameAt:reclen]
		buf = buf[reclen:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if len(name) == 0 || len(name) < len(prefix) ||
			!strings.HasPrefix(unsafe.String(&name[0], len(name)), prefix) {
			continue
		}
		if s := string(name); s != "." && s != ".." {
			names = append(names, s)
		}
	}
	return names
}

func (f *osFile) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = again(func() (err error) {
		n, err = unix.Read(f.fd, p)
		return err
	})
	if err != nil {
		return 0, pathErr("read", f.name, err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *osFile) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		var n int
		err := again(func() (err error) {
			n, err = unix.Write(f.fd, p[done:])
			return err
		})
		if err != nil {
			return done, pathErr("write", f.name, err)
		}
		if n == 0 {
			return done, pathErr("write", f.name, io.ErrShortWrite)
		}
		done += n
	}
	return done, nil
}

func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return Info{}, pathErr("stat", f.name, err)
	}
	return infoOf(&st), nil
}

func (f *osFile) Chmod(mode fs.FileMode) error {
	return pathErr("chmod", f.name, again(func() error { return unix.Fchmod(f.fd, sysMode(mode)) }))
}

func (f *osFile) Chown(uid, gid int) error {
	return pathErr("chown", f.name, again(func() error { return unix.Fchown(f.fd, uid, gid) }))
}

func (f *osFile) Sync() error {
	return pathErr("sync", f.name, again(func() error { return unix.Fsync(f.fd) }))
}

// Close never repeats an interrupted close: on Linux the descriptor is gone after the first, and by
// then it may belong to somebody else.
func (f *osFile) Close() error {
	if f.fd < 0 {
		return pathErr("close", f.name, fs.ErrClosed)
	}
	fd := f.fd
	f.fd = -1
	err := unix.Close(fd)
	if err == unix.EINTR {
		err = nil
	}
	return pathErr("close", f.name, err)
}

func sysMode(mode fs.FileMode) uint32 {
	m := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		m |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		m |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		m |= unix.S_ISVTX
	}
	return m
}

func modeOf(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	switch raw & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	}
	if raw&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if raw&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if raw&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func infoOf(st *unix.Stat_t) Info {
	sec, nsec := st.Mtim.Unix()
	return Info{
		Mode: modeOf(st.Mode), Size: st.Size, ModTime: time.Unix(sec, nsec),
		Dev: uint64(st.Dev), Ino: st.Ino, UID: int(st.Uid), GID: int(st.Gid),
	}
}
