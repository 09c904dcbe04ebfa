package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/stile-lock/stile/internal/vfs"
)

var (
	_ vfs.Appender = (*Mem)(nil)
	_ vfs.Appender = (*hooked)(nil)
)

// OpenAppend implements vfs.Appender.
func (m *Mem) OpenAppend(name string, create bool, perm fs.FileMode) (vfs.AppendFile, error) {
	if create {
		f, err := m.Create(name, perm)
		if err != nil {
			return nil, err
		}
		return f.(*memFile), nil
	}
	f, err := m.Open(name)
	if err != nil {
		return nil, err
	}
	switch mode := f.(*memFile).n.mode; {
	case mode.IsDir():
		return nil, pathErr("open", name, syscall.EISDIR)
	case mode.IsRegular() && mode&0o200 == 0:
		return nil, pathErr("open", name, syscall.EACCES)
	}
	f.(*memFile).write = true
	return f.(*memFile), nil
}

// ReadAt implements io.ReaderAt.
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, pathErr("read", f.name, fs.ErrClosed)
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// SyncData implements vfs.AppendFile.
func (f *memFile) SyncData() error { return f.Sync() }

// Truncate implements vfs.AppendFile.
func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed || !f.write || size < 0 || size > int64(len(f.n.data)) {
		return pathErr("truncate", f.name, syscall.EINVAL)
	}
	f.n.data = f.n.data[:size:size] // what was synced keeps its bytes
	f.n.dirty = true
	return nil
}

// OpenAppend implements vfs.Appender, when the file system below does.
func (h *hooked) OpenAppend(name string, create bool, perm fs.FileMode) (vfs.AppendFile, error) {
	var f vfs.AppendFile
	err := h.do(Op{Kind: "openappend", Name: name}, func() (err error) {
		base, ok := h.base.(vfs.Appender)
		if !ok {
			return pathErr("open", name, errors.ErrUnsupported)
		}
		f, err = base.OpenAppend(name, create, perm)
		return err
	})
	if err != nil {
		if f != nil { // it was opened after all; nobody will close it
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &hookedAppend{hookedFile{h: h, f: f, name: name}, f}, nil
}

type hookedAppend struct {
	hookedFile
	more vfs.AppendFile
}

func (f *hookedAppend) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.h.do(Op{Kind: "read", Name: f.name}, func() (err error) {
		n, err = f.more.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *hookedAppend) SyncData() error {
	return f.h.do(Op{Kind: "sync", Name: f.name}, f.more.SyncData)
}

func (f *hookedAppend) Truncate(size int64) error {
	return f.h.do(Op{Kind: "truncate", Name: f.name}, func() error { return f.more.Truncate(size) })
}
