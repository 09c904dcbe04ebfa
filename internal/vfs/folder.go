package vfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ErrLink says that a symbolic link lies where none is followed.
var ErrLink = errors.New("a symbolic link, and none is followed here")

// Folder is an FS of the names in one folder that was opened once, at path. Whatever becomes of the way
// to it, all that is done is done in that very folder: what is elsewhere is not there (fs.ErrNotExist), and
// a link is not even read (ErrLink). It closes nothing of root, which must live as long as it is used.
func Folder(root *os.Root, path string) FS { return folder{root, path} }

type folder struct {
	root *os.Root
	path string
}

// base is the name of a file in the folder.
func (d folder) base(op, name string) (string, error) {
	dir, base := Split(name)
	if dir != d.path || base == "" || base == "." || base == ".." {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return base, nil
}

// whole gives an error the whole name: os.Root tells of the last element alone.
func (d folder) whole(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d folder) Create(name string, perm fs.FileMode) (File, error) {
	base, err := d.base("create", name)
	if err != nil {
		return nil, err
	}
	var f *os.File
	err = patientlyIn(func() (err error) {
		f, err = d.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		return err
	})
	if err != nil {
		return nil, d.whole("create", name, err)
	}
	return folderFile{f}, nil
}

// Open looks first and compares afterwards: an os.Root follows links that stay in it.
func (d folder) Open(name string) (File, error) {
	base, err := d.base("open", name)
	if err != nil {
		return nil, err
	}
	for {
		seen, err := d.root.Lstat(base)
		if err == nil && seen.Mode()&fs.ModeSymlink != 0 {
			err = ErrLink
		}
		var f *os.File
		if err == nil {
			err = patientlyIn(func() (err error) {
				f, err = d.root.OpenFile(base, os.O_RDONLY|openQuietly, 0)
				return err
			})
		}
		if err != nil {
			return nil, d.whole("open", name, err)
		}
		is, err := f.Stat()
		if err == nil && os.SameFile(seen, is) {
			return folderFile{f}, nil
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, d.whole("open", name, err)
		}
		// Replaced since it was looked at, as every commit does.
	}
}

func (d folder) Link(oldname, newname string) error {
	from, err := d.base("link", oldname)
	if err != nil {
		return err
	}
	to, err := d.base("link", newname)
	if err != nil {
		return err
	}
	err = patientlyIn(func() error { return d.root.Link(from, to) })
	return d.whole("link", newname, err)
}

func (d folder) Rename(oldname, newname string) error {
	from, err := d.base("rename", oldname)
	if err != nil {
		return err
	}
	to, err := d.base("rename", newname)
	if err != nil {
		return err
	}
	err = patientlyIn(func() error { return d.root.Rename(from, to) })
	return d.whole("rename", newname, err)
}

func (d folder) Remove(name string) error {
	base, err := d.base("remove", name)
	if err != nil {
		return err
	}
	is, err := d.root.Lstat(base)
	switch {
	case err == nil && is.IsDir(): // an os.Root would remove an empty one
		err = syscall.EISDIR
	case err == nil:
		err = patientlyIn(func() error { return d.root.Remove(base) })
	}
	return d.whole("remove", name, err)
}

func (d folder) Lstat(name string) (Info, error) {
	base, err := d.base("lstat", name)
	if err != nil {
		return Info{}, err
	}
	is, err := d.root.Lstat(base)
	if err != nil {
		return Info{}, d.whole("lstat", name, err)
	}
	return infoOfFile(is), nil
}

// Readlink refuses: whoever asks is about to follow.
func (d folder) Readlink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: ErrLink}
}

func (d folder) List(dir, prefix string) ([]string, error) {
	if dir != d.path {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.whole("list", dir, err)
	}
	defer f.Close() // a failed close of what was only read loses nothing
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, d.whole("list", dir, err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
	slices.Sort(names)
	return names, nil
}

func (d folder) SyncDir(dir string) error {
	if dir != d.path {
		return &fs.PathError{Op: "sync", Path: dir, Err: fs.ErrNotExist}
	}
	if !foldersSync {
		return nil
	}
	f, err := d.root.Open(".")
	if err != nil {
		return d.whole("sync", dir, err)
	}
	err = f.Sync()
	if syncUnsupported(err) {
		err = nil
	}
	return d.whole("sync", dir, errors.Join(err, f.Close()))
}

// Watch is the system's: waking is a convenience, and the watched path grants nothing.
func (d folder) Watch(dir, base string) (Watch, error) {
	if w, ok := OS().(Watcher); ok {
		return w.Watch(dir, base)
	}
	return nil, errors.ErrUnsupported
}

// TryFlock is the system's: it changes nothing in the file.
func (d folder) TryFlock(name string) (release func() error, held bool, err error) {
	if fl, ok := OS().(Flocker); ok {
		return fl.TryFlock(name)
	}
	return nil, false, errors.ErrUnsupported
}

func (d folder) NameMax(dir string) int {
	if l, ok := OS().(NameLimiter); ok {
		return l.NameMax(dir)
	}
	return 0
}

type folderFile struct{ *os.File }

func (f folderFile) Stat() (Info, error) {
	is, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOfFile(is), nil
}
