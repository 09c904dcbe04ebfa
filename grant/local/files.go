package local

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// pending makes an unpublished file in dir, under a name that tells its owner. Fill writes it; then it is
// synced, if asked, and closed. On an error it is gone, or goes at this process's next sweep.
func (s *Store) pending(dir string, perm fs.FileMode, sync bool, fill func(vfs.File) error) (name string, err error) {
	attempt, err := s.seams.Hex24()
	if err != nil {
		return "", err
	}
	name = format.Make(filepath.Join(dir, pendingBase), format.Temp, "", s.seams.Process.Tag(), s.seams.Process.Self().PID, attempt)
	f, err := s.seams.FS.Create(name, perm)
	if err != nil {
		sweep.Remove(s.seams, name) // in case it was made all the same
		return "", err
	}
	err = fill(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		sweep.Remove(s.seams, name)
		return "", err
	}
	return name, nil
}

func writing(data []byte) func(vfs.File) error {
	return func(f vfs.File) error { return vfs.WriteAll(f, data) }
}

// sweep removes what dead processes left unpublished in the container's folder for that, and makes the folder
// where it went missing: a copy of an estate may come without what was empty.
func (b *box) sweep() error {
	err := sweep.Dir(b.s.seams, b.path(pendingName, pendingBase))
	if errors.Is(err, fs.ErrNotExist) {
		return b.s.mkdir(b.path(pendingName), 0o777)
	}
	return err
}

// replace puts data in place of a file on which nothing depends, whole but not synced.
func (b *box) replace(name string, data []byte, perm fs.FileMode) error {
	temp, err := b.s.pending(b.path(pendingName), perm, false, writing(data))
	if err != nil {
		return err
	}
	if err := b.s.seams.FS.Rename(temp, name); err != nil {
		sweep.Remove(b.s.seams, temp)
		return err
	}
	return nil
}

// syncFile makes a file's content durable that another process wrote. Where a system does not sync what is
// open for reading (Windows), nothing can be done.
func (s *Store) syncFile(name string) error {
	f, err := s.seams.FS.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
