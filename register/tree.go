package register

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// What is wrong with a file that is about to land. Each is wrapped with the file's name.
var (
	// ErrLink: a symbolic link, and the tree does not take links.
	ErrLink = errors.New("it is a symbolic link")
	// ErrOdd: a socket, device, FIFO or whatever else has no bytes that could land.
	ErrOdd = errors.New("it is no file, folder or link")
	// ErrIsFolder: a folder where a file was named.
	ErrIsFolder = errors.New("it is a folder")
	// ErrChanged: the file changed while it was read, or since it was looked at.
	ErrChanged = errors.New("it changed while it was read")
)

// Tree is what is about to land: names, and where their bytes are. Bytes are read when it lands, not before.
// The zero Tree is empty, and takes no links.
type Tree struct {
	// Links takes symbolic links as links, if they stay within the tree. Without it they are refused.
	Links bool

	items []item
	names names
}

// item is an entry in the making.
type item struct {
	Entry
	open func() (source, error) // of a file
}

// source is an open file that tells afterwards whether what was read is what it is.
type source interface {
	io.ReadCloser
	// settled is asked after n bytes were read to the end: ErrChanged.
	settled(n int64) error
}

// Len is how many entries there are.
func (t *Tree) Len() int { return len(t.items) }

func (t *Tree) add(it item) error {
	if err := CheckName(it.Name); err != nil {
		return err
	}
	if len(t.items) >= maxEntries {
		return fmt.Errorf("%w: more than %d of them", ErrName, maxEntries)
	}
	if t.names == nil {
		t.names = names{}
	}
	if err := t.names.add(it.Name, it.Kind == KindFolder); err != nil {
		return err
	}
	t.items = append(t.items, it)
	return nil
}

// AddBytes adds a file of these bytes.
func (t *Tree) AddBytes(name string, perm fs.FileMode, data []byte) error {
	return t.add(item{
		Entry: Entry{Kind: KindFile, Name: name, Mode: Mode(perm.Perm())},
		open:  func() (source, error) { return &fixed{strings.NewReader(string(data))}, nil },
	})
}

// fixed cannot change.
type fixed struct{ *strings.Reader }

func (*fixed) Close() error        { return nil }
func (*fixed) settled(int64) error { return nil }

// AddFile adds the file at path under the path itself as its name: it must be relative and stay below the
// current folder.
func (t *Tree) AddFile(path string) error {
	name := filepath.ToSlash(filepath.Clean(path))
	if filepath.IsAbs(path) || filepath.VolumeName(path) != "" {
		name = filepath.ToSlash(path) // its fault is told as it was written
	}
	if err := CheckName(name); err != nil {
		return err
	}
	return t.addPath(name, path, false)
}

// AddAs adds the file at a path under another name.
func (t *Tree) AddAs(name, path string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return t.addPath(name, path, false)
}

// AddDir adds everything that lies in a folder, under the names that it has there.
func (t *Tree) AddDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", display.Text(dir), err)
	}
	if !info.IsDir() {
		return fmt.Errorf("read %s: it is not a folder", display.Text(dir))
	}
	return t.addFolder("", dir)
}

func (t *Tree) addFolder(name, dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", display.Text(dir), err)
	}
	if len(list) == 0 && name != "" {
		return t.add(item{Entry: Entry{Kind: KindFolder, Name: name}})
	}
	for _, d := range list {
		below := d.Name()
		if name != "" {
			below = name + "/" + below
		}
		// Before anything is looked at: what cannot be named cannot land.
		if err := CheckName(below); err != nil {
			return err
		}
		if err := t.addPath(below, filepath.Join(dir, d.Name()), true); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) addPath(name, path string, folders bool) error {
	fsys := vfs.OS()
	info, err := fsys.Lstat(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", display.Text(path), err)
	}
	refuse := func(err error) error { return fmt.Errorf("land %s: %w", shown(name), err) }
	switch {
	case info.Mode.IsRegular():
		return t.add(item{
			Entry: Entry{Kind: KindFile, Name: name, Mode: Mode(info.Mode.Perm()), Size: info.Size},
			open:  func() (source, error) { return openSource(fsys, path, info) },
		})
	case info.Mode.IsDir() && folders:
		return t.addFolder(name, path)
	case info.Mode.IsDir():
		return refuse(ErrIsFolder)
	case info.Mode&fs.ModeSymlink != 0 && !t.Links:
		return refuse(ErrLink)
	case info.Mode&fs.ModeSymlink != 0:
		target, err := fsys.Readlink(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", display.Text(path), err)
		}
		target = filepath.ToSlash(target)
		if err := checkTarget(name, target); err != nil {
			return err
		}
		return t.add(item{Entry: Entry{Kind: KindLink, Name: name, Target: target}})
	}
	return refuse(ErrOdd)
}

// file is a source on disk.
type file struct {
	vfs.File
	path   string
	before vfs.Info
}

// openSource opens what was looked at, and nothing that has taken its place since. Where files have no identity, they
// are told apart by their size and time.
func openSource(fsys vfs.FS, path string, seen vfs.Info) (source, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", display.Text(path), err)
	}
	info, err := f.Stat()
	same := vfs.SameFile(seen, info)
	if seen.Ino == 0 {
		same = seen.Size == info.Size && seen.ModTime.Equal(info.ModTime)
	}
	if err == nil && (!info.Mode.IsRegular() || !same) {
		err = ErrChanged
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("read %s: %w", display.Text(path), err)
	}
	return &file{f, path, info}, nil
}

// settled compares the file with what it was. A change that keeps the size and falls into one tick of the file
// system's clock cannot be told from none.
func (f *file) settled(n int64) error {
	after, err := f.Stat()
	if err == nil && (n != f.before.Size || after.Size != f.before.Size || !after.ModTime.Equal(f.before.ModTime)) {
		err = ErrChanged
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", display.Text(f.path), err)
	}
	return nil
}

// read gives the whole of an item to put, and fills in what was read.
func (it *item) read(ctx context.Context, put func(io.Reader) error) error {
	src, err := it.open()
	if err != nil {
		return err
	}
	defer src.Close()
	r := &counted{ctx: ctx, src: src}
	if err := put(r); err != nil {
		return err
	}
	if !r.ended {
		return fmt.Errorf("land %s: the store did not take it whole", shown(it.Name))
	}
	it.Size = r.n
	return nil
}

// counted ends as its source does, if that has not changed: the store then stores nothing.
type counted struct {
	ctx   context.Context
	src   source
	n     int64
	ended bool
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.src.Read(p)
	c.n += int64(n)
	if errors.Is(err, io.EOF) {
		if err := c.src.settled(c.n); err != nil {
			return n, err
		}
		c.ended = true
	}
	return n, err
}

// entries are the tree's, in order.
func (t *Tree) entries() []Entry {
	list := make([]Entry, len(t.items))
	for i, it := range t.items {
		list[i] = it.Entry
	}
	return sorted(slices.Clip(list))
}
