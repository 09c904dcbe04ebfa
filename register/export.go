package register

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// ErrNotEmpty says that an export would replace a folder that has something in it, and was not told to.
var ErrNotEmpty = errors.New("it is not an empty folder")

// ErrNotReplaced says that the export is whole, and another stands where it should.
var ErrNotReplaced = errors.New("the folder was not replaced")

// Export writes a tree into a folder. The folder appears whole, with every artifact checked, or not at all. One
// that is there and has something in it stays as it is, ErrNotEmpty, or is replaced as a whole: what was in it is
// removed. Where the system can exchange two folders (Linux, macOS), there is one or the other at every moment; else
// there is none for a moment.
//
// It is durable when Export returns. What a killed export leaves, dir.tmp-…, the next one removes.
func (r *Register) Export(ctx context.Context, m *Manifest, dir string, replace bool) error {
	full, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("export to %s: %w", display.Text(dir), err)
	}
	if err := r.export(ctx, m, full, replace); err != nil {
		return fmt.Errorf("export to %s: %w", display.Text(dir), err)
	}
	return nil
}

func (r *Register) export(ctx context.Context, m *Manifest, dir string, replace bool) (err error) {
	if err := m.check(); err != nil {
		return err
	}
	there, err := replaceable(dir, replace)
	if err != nil {
		return err
	}
	temp, err := tempFolder(dir)
	if err != nil {
		return err
	}
	// What lies in it at the end is half a tree, or the one that was replaced.
	defer func() {
		if !errors.Is(err, errAside) {
			removeTree(temp)
		}
	}()
	// Made in a folder into which nobody looks, with the mode that any new folder has.
	tree := filepath.Join(temp, "tree")
	if err := os.Mkdir(tree, 0o777); err != nil {
		return err
	}
	if err := r.fill(ctx, m, tree); err != nil {
		return err
	}
	if there {
		err = exchange(tree, dir)
	} else {
		err = os.Rename(tree, dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReplaced, err)
	}
	return vfs.OS().SyncDir(filepath.Dir(dir))
}

// replaceable tells whether there is a folder that has to make room, if it may.
func replaceable(dir string, replace bool) (there bool, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, ErrNotEmpty // a file or a link is nobody's export
	}
	list, err := os.ReadDir(dir)
	if err == nil && len(list) > 0 && !replace {
		err = ErrNotEmpty
	}
	return true, err
}

// tempFolder makes a folder beside dir, under a name that tells whose it is, and removes those of dead processes.
func tempFolder(dir string) (string, error) {
	s := (*seam.Set)(nil).Or()
	parent, base := vfs.Split(dir)
	if err := sweepFolders(s, parent, base); err != nil {
		return "", err
	}
	attempt, err := s.Hex24()
	if err != nil {
		return "", err
	}
	temp := format.Make(dir, format.Temp, "", s.Process.Tag(), s.Process.Self().PID, attempt)
	return temp, os.Mkdir(temp, 0o700)
}

func sweepFolders(s *seam.Set, parent, base string) error {
	names, err := s.FS.List(parent, base+".")
	if err != nil {
		return err
	}
	judge := sweep.NewJudge(s, parent)
	for _, name := range names {
		if n, ok := format.Parse(name, base); ok && n.Kind == format.Temp && judge.Dead(n) {
			path := filepath.Join(parent, name)
			info, err := os.Lstat(path)
			if err != nil || !info.IsDir() {
				continue
			}
			// One that died between two renames: what was there goes back, unless something else has come.
			if _, err := os.Lstat(filepath.Join(parent, base)); errors.Is(err, fs.ErrNotExist) {
				_ = os.Rename(filepath.Join(path, asideName), filepath.Join(parent, base))
			}
			removeTree(path)
		}
	}
	return nil
}

// removeTree removes what an export made. Folders in it have the mode that they were made with, or their user's:
// one that cannot be emptied stays.
func removeTree(dir string) { _ = os.RemoveAll(dir) }

// fill writes the tree into an empty folder of ours, through which no link leads out, and syncs it.
func (r *Register) fill(ctx context.Context, m *Manifest, temp string) (err error) {
	root, err := os.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var links []Entry
	for _, e := range m.Entries {
		name := filepath.FromSlash(e.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		switch e.Kind {
		case KindFolder:
			err = root.MkdirAll(name, 0o777)
		case KindLink:
			links = append(links, e) // when all else is there, so that nothing is written through one
		case KindFile:
			err = r.writeOut(ctx, root, name, e)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range links {
		if err := root.Symlink(filepath.FromSlash(e.Target), filepath.FromSlash(e.Name)); err != nil {
			return err
		}
	}
	return syncFolders(root)
}

func (r *Register) writeOut(ctx context.Context, root *os.Root, name string, e Entry) (err error) {
	from, err := r.Open(ctx, e)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, bufferSize))
	switch {
	case err != nil:
		return err
	case n != e.Size:
		return &ObjectError{r.container, shown(e.Name), e.SHA256, ErrDamaged}
	}
	if err := to.Chmod(fs.FileMode(e.Mode)); err != nil {
		return err
	}
	return to.Sync()
}

// bufferSize is what an artifact is read and written by.
const bufferSize = 256 << 10

// syncFolders makes the names in a tree durable, from the leaves up.
func syncFolders(root *os.Root) error {
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	for i := len(folders) - 1; i >= 0 && err == nil; i-- {
		err = vfs.OS().SyncDir(filepath.Join(root.Name(), filepath.FromSlash(folders[i])))
	}
	return err
}
