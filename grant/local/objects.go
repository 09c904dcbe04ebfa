package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// ErrBadObject says that an object's bytes are not those of its name. Putting the right ones again mends it.
var ErrBadObject = errors.New("object is damaged")

func checkKind(kind grant.Kind) error {
	switch kind {
	case grant.KindArtifact, grant.KindQuarantine, grant.KindStaging:
		return nil
	}
	return fmt.Errorf("%w: %q is no kind of object", grant.CodeBadInput, string(kind))
}

func checkDigest(d grant.Digest) error {
	if len(d) != 2*sha256.Size || strings.Trim(string(d), "0123456789abcdef") != "" {
		return fmt.Errorf("%w: not a SHA-256 in lower-case hex", grant.CodeBadInput)
	}
	return nil
}

func (b *box) objects(kind grant.Kind) string { return b.path(objectsName, string(kind)) }

// Put stores what r gives under its SHA-256, durably, unless it is there and whole; it returns that and the
// number of bytes. Memory does not grow with the object. An error of r is returned, and nothing is stored.
func (s *Store) Put(ctx context.Context, container string, kind grant.Kind, r io.Reader) (grant.Digest, int64, error) {
	b, err := s.box(container)
	if err != nil {
		return "", 0, err
	}
	if err := checkKind(kind); err != nil {
		return "", 0, err
	}
	if err := b.there(); err != nil {
		return "", 0, err
	}
	if err := b.sweep(); err != nil {
		return "", 0, err
	}
	dir := b.objects(kind)
	if err := b.makeObjects(kind); err != nil {
		return "", 0, err
	}
	sum, size, there := sha256.New(), int64(0), false
	var digest grant.Digest
	temp, err := s.pending(b.path(pendingName), 0o666, false, func(f vfs.File) (err error) {
		size, err = io.CopyBuffer(io.MultiWriter(f, sum), &reader{ctx, r}, make([]byte, bufferSize))
		if err != nil {
			return err
		}
		digest = grant.Digest(hex.EncodeToString(sum.Sum(nil)))
		if there = b.whole(filepath.Join(dir, string(digest)), digest); there {
			return nil
		}
		return f.Sync()
	})
	if err == nil && there {
		sweep.Remove(s.seams, temp)
		err = s.seams.FS.SyncDir(dir) // whoever put it there may not have come to that
	} else if err == nil {
		if err = b.place(temp, kind, digest); err == nil {
			err = s.seams.FS.SyncDir(dir)
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("store an object of %s: %w", display.Text(container), err)
	}
	return digest, size, nil
}

// makeObjects makes the folders of a kind, once in a process: to find them is no proof that their names are on the
// disk.
func (b *box) makeObjects(kind grant.Kind) error {
	if slices.Contains(b.s.recall(b.name).kinds, kind) {
		return nil
	}
	if b.s.isFolder(b.path(objectsName)) == nil && b.s.isFolder(b.objects(kind)) == nil {
		if err := b.s.syncDirs(b.dir, b.path(objectsName)); err != nil {
			return err
		}
	} else {
		for _, d := range []string{b.path(objectsName), b.objects(kind)} {
			if err := b.s.mkdir(d, 0o777); err != nil {
				return err
			}
		}
	}
	b.s.remember(b.name, func(m *memory) { m.kinds = append(slices.Clone(m.kinds), kind) })
	return nil
}

// place moves a synced file to an object's name. What is there already is damaged: so replacing it takes nothing
// from anybody, and needs no hard links. The name is durable when the folder is synced.
func (b *box) place(temp string, kind grant.Kind, digest grant.Digest) error {
	fsys, dir := b.s.seams.FS, b.objects(kind)
	name := filepath.Join(dir, string(digest))
	if info, err := fsys.Lstat(name); err == nil && !info.Mode.IsRegular() {
		sweep.Remove(b.s.seams, temp)
		return fmt.Errorf("%s: %w", display.Text(name), errOdd)
	}
	err := fsys.Rename(temp, name)
	if errors.Is(err, fs.ErrNotExist) { // the folder went since it was made: a backup was put in its place
		b.s.remember(b.name, func(m *memory) { m.kinds = nil })
		if err = b.makeObjects(kind); err == nil {
			err = fsys.Rename(temp, name)
		}
	}
	if err != nil {
		sweep.Remove(b.s.seams, temp)
	}
	return err
}

// syncDirs syncs folders, all at once: the disk takes them together.
func (s *Store) syncDirs(dirs ...string) error {
	errs := make([]error, len(dirs))
	var all sync.WaitGroup
	for i, d := range dirs[1:] {
		all.Go(func() { errs[i+1] = s.seams.FS.SyncDir(d) })
	}
	errs[0] = s.seams.FS.SyncDir(dirs[0])
	all.Wait()
	return errors.Join(errs...)
}

// vouchObjects makes the names of placed objects durable. No page of the container is published before that: it may
// name them.
func (b *box) vouchObjects() error {
	placed := b.s.recall(b.name).placed
	if len(placed) == 0 {
		return nil
	}
	var dirs []string
	for kind := range placed {
		dirs = append(dirs, b.objects(kind))
	}
	if err := b.s.syncDirs(dirs...); err != nil {
		return fmt.Errorf("sync the objects of %s: %w", display.Text(b.name), err)
	}
	b.s.remember(b.name, func(m *memory) {
		m.placed = maps.Clone(m.placed)
		// What was placed since the sync began needs another.
		maps.DeleteFunc(m.placed, func(kind grant.Kind, n int64) bool { return placed[kind] == n })
	})
	return nil
}

// whole tells whether an object is there with the right bytes.
func (b *box) whole(name string, digest grant.Digest) bool {
	f, err := b.openObject(name, digest)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, f, make([]byte, bufferSize))
	return err == nil
}

// bufferSize is what objects are read and written by.
const bufferSize = 256 << 10

// Get opens an object: fs.ErrNotExist when there is none. Its bytes are checked as they are read: the last
// Read says ErrBadObject instead of io.EOF when they were not those of the name, so do not use them before.
func (s *Store) Get(ctx context.Context, container string, kind grant.Kind, digest grant.Digest) (io.ReadCloser, error) {
	b, err := s.box(container)
	if err == nil {
		err = errors.Join(checkKind(kind), checkDigest(digest), ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	f, err := b.openObject(filepath.Join(b.objects(kind), string(digest)), digest)
	if err != nil {
		return nil, fmt.Errorf("open an object of %s: %w", display.Text(container), err)
	}
	return f, nil
}

func (b *box) openObject(name string, digest grant.Digest) (io.ReadCloser, error) {
	f, err := b.s.seams.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode.IsRegular() {
		err = errOdd
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &object{f: f, want: digest, sum: sha256.New()}, nil
}

// Objects lists the objects of a kind, in order.
func (s *Store) Objects(ctx context.Context, container string, kind grant.Kind) ([]grant.Digest, error) {
	b, err := s.box(container)
	if err == nil {
		err = errors.Join(checkKind(kind), ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	if err := b.there(); err != nil {
		return nil, err
	}
	names, err := s.seams.FS.List(b.objects(kind), "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the objects of %s: %w", display.Text(container), err)
	}
	var digests []grant.Digest
	for _, name := range names {
		if d := grant.Digest(name); checkDigest(d) == nil {
			digests = append(digests, d)
		}
	}
	return digests, nil
}

// object checks what is read.
type object struct {
	f    vfs.File
	want grant.Digest
	sum  hash.Hash
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.f.Read(p)
	o.sum.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(o.sum.Sum(nil)) != string(o.want) {
		err = fmt.Errorf("%w: %s", ErrBadObject, o.want)
	}
	return n, err
}

func (o *object) Close() error { return o.f.Close() }

// reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
