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
	"path/filepath"
	"strings"

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
	if err := b.createObjects(kind); err != nil {
		return "", 0, err
	}
	sum, size := sha256.New(), int64(0)
	temp, err := s.pending(b.path(pendingName), 0o666, true, func(f vfs.File) error {
		size, err = io.CopyBuffer(io.MultiWriter(f, sum), &reader{ctx, r}, make([]byte, bufferSize))
		return err
	})
	if err != nil {
		return "", 0, fmt.Errorf("store an object of %s: %w", display.Text(container), err)
	}
	digest := grant.Digest(hex.EncodeToString(sum.Sum(nil)))
	if err := b.place(temp, dir, digest); err != nil {
		return "", 0, fmt.Errorf("store an object of %s: %w", display.Text(container), err)
	}
	return digest, size, nil
}

// createObjects makes the folders for a kind of objects. Their names are made durable once in a process, and again
// when they went missing.
func (b *box) createObjects(kind grant.Kind) error {
	if b.s.recall(b.name).objects[kind] && b.s.isFolder(b.objects(kind)) == nil {
		return nil
	}
	for _, d := range []string{b.path(objectsName), b.objects(kind)} {
		if err := b.s.mkdir(d, 0o777); err != nil {
			return err
		}
	}
	b.s.remember(b.name, func(m *memory) {
		made := map[grant.Kind]bool{kind: true} // never changed: others read it
		for k := range m.objects {
			made[k] = true
		}
		m.objects = made
	})
	return nil
}

// place moves a synced file to an object's name. What is there already has the same bytes, or is damaged: so
// replacing it takes nothing from anybody, and needs no hard links.
func (b *box) place(temp, dir string, digest grant.Digest) error {
	fsys := b.s.seams.FS
	name := dir + string(filepath.Separator) + string(digest)
	if b.whole(name, digest) {
		sweep.Remove(b.s.seams, temp)
		return fsys.SyncDir(dir) // whoever put it there may not have come to that
	}
	if info, err := fsys.Lstat(name); err == nil && !info.Mode.IsRegular() {
		sweep.Remove(b.s.seams, temp)
		return fmt.Errorf("%s: %w", display.Text(name), errOdd)
	}
	if err := fsys.Rename(temp, name); err != nil {
		sweep.Remove(b.s.seams, temp)
		return err
	}
	return fsys.SyncDir(dir)
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
	f, err := b.openObject(b.objects(kind)+string(filepath.Separator)+string(digest), digest)
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
