//go:build !linux

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// OS returns the operating system's files, through package os.
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) Create(name string, perm fs.FileMode) (File, error) {
	var f *os.File
	err := patiently(func() (err error) {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Open(name string) (File, error) {
	var f *os.File
	err := patiently(func() (err error) {
		f, err = openForRead(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Link(oldname, newname string) error {
	return patiently(func() error { return os.Link(oldname, newname) })
}

func (osFS) Rename(oldname, newname string) error {
	return patiently(func() error { return os.Rename(oldname, newname) })
}

func (osFS) Remove(name string) error {
	return patiently(func() error { return remove(name) })
}

// Mkdir implements FolderMaker.
func (osFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

func (osFS) Lstat(name string) (Info, error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(fi), nil
}

func (osFS) Readlink(name string) (string, error) { return os.Readlink(name) }

func (osFS) List(dir, prefix string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	for {
		some, err := f.Readdirnames(512)
		for _, name := range some {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		if err == io.EOF {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (osFS) SyncDir(dir string) error {
	if !foldersSync {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if syncUnsupported(err) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func (f osFile) Stat() (Info, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(fi), nil
}
