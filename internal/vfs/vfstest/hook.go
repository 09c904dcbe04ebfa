package vfstest

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/internal/vfs"
)

// Op is one operation about to be done.
type Op struct {
	Kind string // create, open, openappend, link, rename, remove, lstat, readlink, list, syncdir, mkdir; file operations: read, write, stat, chmod, chown, sync, close, truncate
	Name string // the file's name as it was opened, or the old name of a link or rename
	New  string // the new name of a link or rename
	Data []byte // what a write writes
}

func (op Op) String() string {
	if op.New != "" {
		return fmt.Sprintf("%s %s %s", op.Kind, op.Name, op.New)
	}
	return op.Kind + " " + op.Name
}

// Short is an error that makes a write do its first part only and then fail with Err.
type Short struct {
	N   int
	Err error
}

func (s *Short) Error() string { return fmt.Sprintf("short write of %d: %v", s.N, s.Err) }
func (s *Short) Unwrap() error { return s.Err }

// After is an error that lets the operation happen and then reports Err all the same, as when the
// answer to a call is lost.
type After struct{ Err error }

func (a *After) Error() string { return fmt.Sprintf("after the fact: %v", a.Err) }
func (a *After) Unwrap() error { return a.Err }

// Wrap returns base with before called ahead of each operation. An error that before returns is
// given to the caller instead of doing the operation. Before may block: that is the step gate.
//
// A failed Close still closes, as on every system.
func Wrap(base vfs.FS, before func(Op) error) vfs.FS {
	return &hooked{base, func(op Op) (func(), error) { return func() {}, before(op) }}
}

type hooked struct {
	base vfs.FS
	// enter is called ahead of an operation, and what it returns when the operation is over.
	enter func(Op) (leave func(), err error)
}

func (h *hooked) do(op Op, f func() error) error {
	leave, err := h.enter(op)
	defer leave()
	var after *After
	if errors.As(err, &after) {
		if ferr := f(); ferr != nil {
			return ferr
		}
		return after.Err
	}
	if err != nil {
		return err
	}
	return f()
}

func (h *hooked) Create(name string, perm fs.FileMode) (f vfs.File, err error) {
	err = h.do(Op{Kind: "create", Name: name}, func() (err error) {
		f, err = h.base.Create(name, perm)
		return err
	})
	return h.file(name, f, err)
}

func (h *hooked) Open(name string) (f vfs.File, err error) {
	err = h.do(Op{Kind: "open", Name: name}, func() (err error) {
		f, err = h.base.Open(name)
		return err
	})
	return h.file(name, f, err)
}

func (h *hooked) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		if f != nil { // it was opened after all; nobody will close it
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &hookedFile{h: h, f: f, name: name}, nil
}

func (h *hooked) Link(oldname, newname string) error {
	return h.do(Op{Kind: "link", Name: oldname, New: newname}, func() error { return h.base.Link(oldname, newname) })
}

func (h *hooked) Rename(oldname, newname string) error {
	return h.do(Op{Kind: "rename", Name: oldname, New: newname}, func() error { return h.base.Rename(oldname, newname) })
}

func (h *hooked) Remove(name string) error {
	return h.do(Op{Kind: "remove", Name: name}, func() error { return h.base.Remove(name) })
}

// Mkdir implements vfs.FolderMaker, when the file system below does.
func (h *hooked) Mkdir(name string, perm fs.FileMode) error {
	return h.do(Op{Kind: "mkdir", Name: name}, func() error {
		maker, ok := h.base.(vfs.FolderMaker)
		if !ok {
			return pathErr("mkdir", name, errors.ErrUnsupported)
		}
		return maker.Mkdir(name, perm)
	})
}

func (h *hooked) Lstat(name string) (info vfs.Info, err error) {
	err = h.do(Op{Kind: "lstat", Name: name}, func() (err error) {
		info, err = h.base.Lstat(name)
		return err
	})
	return info, err
}

func (h *hooked) Readlink(name string) (text string, err error) {
	err = h.do(Op{Kind: "readlink", Name: name}, func() (err error) {
		text, err = h.base.Readlink(name)
		return err
	})
	return text, err
}

func (h *hooked) List(dir, prefix string) (names []string, err error) {
	err = h.do(Op{Kind: "list", Name: dir}, func() (err error) {
		names, err = h.base.List(dir, prefix)
		return err
	})
	return names, err
}

func (h *hooked) SyncDir(dir string) error {
	return h.do(Op{Kind: "syncdir", Name: dir}, func() error { return h.base.SyncDir(dir) })
}

type hookedFile struct {
	h    *hooked
	f    vfs.File
	name string
}

func (f *hookedFile) Read(p []byte) (n int, err error) {
	err = f.h.do(Op{Kind: "read", Name: f.name}, func() (err error) {
		n, err = f.f.Read(p)
		return err
	})
	return n, err
}

func (f *hookedFile) Write(p []byte) (n int, err error) {
	err = f.h.do(Op{Kind: "write", Name: f.name, Data: p}, func() (err error) {
		n, err = f.f.Write(p)
		return err
	})
	var short *Short
	if errors.As(err, &short) {
		n, werr := f.f.Write(p[:min(short.N, len(p))])
		return n, errors.Join(werr, short.Err)
	}
	return n, err
}

func (f *hookedFile) Stat() (info vfs.Info, err error) {
	err = f.h.do(Op{Kind: "stat", Name: f.name}, func() (err error) {
		info, err = f.f.Stat()
		return err
	})
	return info, err
}

func (f *hookedFile) Chmod(mode fs.FileMode) error {
	return f.h.do(Op{Kind: "chmod", Name: f.name}, func() error { return f.f.Chmod(mode) })
}

func (f *hookedFile) Chown(uid, gid int) error {
	return f.h.do(Op{Kind: "chown", Name: f.name}, func() error { return f.f.Chown(uid, gid) })
}

func (f *hookedFile) Sync() error {
	return f.h.do(Op{Kind: "sync", Name: f.name}, f.f.Sync)
}

func (f *hookedFile) Close() error {
	closed := false
	err := f.h.do(Op{Kind: "close", Name: f.name}, func() error {
		closed = true
		return f.f.Close()
	})
	if !closed {
		err = errors.Join(err, f.f.Close())
	}
	return err
}
