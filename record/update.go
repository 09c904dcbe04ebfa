package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"time"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/kernlock"
)

// UpdateOptions are the choices of one change. The zero value takes the kernel lock, waiting as the
// policy mutation does, changes an existing file only, and syncs.
type UpdateOptions struct {
	// Lock is what guards the file; nil is KernelLock(kernlock.Options{}).
	Lock Lock
	// Create lets a missing file be made: it is then changed as if it were empty. Append needs no
	// leave to make one. The folder must exist.
	Create bool
	// IfChanged leaves the file alone, with its inode and times, when the new content is the old.
	IfChanged bool
	// NoSync leaves out every fsync. A change is then still whole or absent after a crash of the
	// process, but a power cut may lose it or, on some file systems, leave the file empty.
	NoSync bool
	// AfterWrite is called after the change has landed, in the hold. What it changes it must fence
	// itself, just before: hold.Fence. Its error is returned with ErrCommitted; the change stands and
	// is never repeated.
	AfterWrite func(ctx context.Context, hold Hold) error
	// Seams is for this module's own tests.
	Seams *seam.Set
}

// Update replaces the content of the file at path with what change makes of it, under its lock. When
// path is a symbolic link, the file it leads to is changed.
//
// change is called in the hold. It may be called again, with newer content, when the hold was lost
// before the change landed; so it must do nothing else that counts. Old is nil when there is no file.
// An error of change stops the update and is returned as it is.
//
// After a lost hold, or when somebody has changed the file without the lock since it was read, the whole
// of it runs again until the lock's timeout has passed since the start;
// then the error matches the lock's ErrLost, or says who holds the lock now. On any error that does
// not match ErrCommitted the file is as it was.
func Update(ctx context.Context, path string, change func(old []byte) ([]byte, error), o UpdateOptions) error {
	u, err := begin(path, o)
	if err != nil {
		return err
	}
	return u.run(ctx, func(h Hold) error {
		old, exists, err := u.read()
		if err != nil {
			return err
		}
		data, err := change(old)
		if err != nil {
			return err
		}
		if u.o.IfChanged && exists && bytes.Equal(old, data) {
			return nil
		}
		return u.commit(ctx, h, func(w io.Writer) error { return vfs.WriteAll(w, data) })
	})
}

// Rewrite is Update for content that need not fit into memory: change reads the old content from old
// and writes the new to w. What it writes lands when it returns nil, and goes nowhere otherwise. A
// missing file reads as an empty one.
func Rewrite(ctx context.Context, path string, change func(old io.Reader, w io.Writer) error, o UpdateOptions) error {
	u, err := begin(path, o)
	if err != nil {
		return err
	}
	return u.run(ctx, func(h Hold) error {
		err := u.commit(ctx, h, func(w io.Writer) error {
			old, err := u.open()
			if err != nil {
				return err
			}
			defer old.Close()
			u.s.At(seam.HoldRead)
			if !u.o.IfChanged || old.missing {
				return change(old, w)
			}
			return u.unlessSame(w, func(w io.Writer) error { return change(old, w) })
		})
		if errors.Is(err, errUnchanged) {
			return nil
		}
		return err
	})
}

var errUnchanged = errors.New("nothing has changed")

// unlessSame compares what fill writes with the present content, and fails with errUnchanged when they
// are the same.
func (u *update) unlessSame(w io.Writer, fill func(io.Writer) error) error {
	old, err := u.open()
	if err != nil {
		return err
	}
	defer old.Close()
	c := &comparer{w: w, old: old, same: true}
	if err := fill(c); err != nil {
		return err
	}
	same, err := c.ended()
	if err == nil && same {
		err = errUnchanged
	}
	return err
}

// comparer writes through, and compares.
type comparer struct {
	w    io.Writer
	old  io.Reader
	same bool
	buf  []byte
	err  error // of reading
}

func (c *comparer) Write(p []byte) (int, error) {
	if c.same {
		if len(c.buf) < len(p) {
			c.buf = make([]byte, len(p))
		}
		n, err := io.ReadFull(c.old, c.buf[:len(p)])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			c.err = err
		}
		c.same = err == nil && bytes.Equal(c.buf[:n], p)
	}
	return c.w.Write(p)
}

func (c *comparer) ended() (same bool, err error) {
	if c.err != nil || !c.same {
		return false, c.err
	}
	var one [1]byte
	_, err = io.ReadFull(c.old, one[:])
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err // the old content is longer, or cannot be read
}

// update is one change under way.
type update struct {
	o    UpdateOptions
	s    *seam.Set
	path string // resolved

	seen   sight      // the file as it was first read in the present hold
	past   []*oldFile // read, and closed after the hold
	lost   bool       // the present hold can land nothing: it was lost, or the file was changed under it
	landed bool       // the change is in the file
}

// begin checks what can be checked before a lock is taken, so that a slip leaves no lock file behind.
func begin(path string, o UpdateOptions) (*update, error) {
	if o.Lock == nil {
		o.Lock = KernelLock(kernlock.Options{})
	}
	u := &update{o: o, s: o.Seams.Or()}
	var err error
	if u.path, err = o.Lock.Resolve(path); err != nil {
		return nil, err
	}
	if _, base := vfs.Split(u.path); len(base)+format.LongestTemp > format.MaxNameLen {
		return nil, fmt.Errorf("change %s: %w: at most %d bytes", display.Text(u.path), kernlock.ErrNameTooLong,
			format.MaxNameLen-format.LongestTemp)
	}
	f, err := u.open()
	if err != nil {
		return nil, err
	}
	return u, f.Close()
}

// run does body under a hold, and again under a fresh one when its fence has found the hold lost.
func (u *update) run(ctx context.Context, body func(Hold) error) error {
	deadline := u.s.Clock.Now().Add(u.o.Lock.Timeout())
	wait := u.o.Lock.Timeout()
	for {
		err := u.once(ctx, body, wait)
		if !u.lost { // also when it has landed: the fence was asked before
			return err
		}
		if wait = deadline.Sub(u.s.Clock.Now()); wait <= 0 {
			return err
		}
	}
}

func (u *update) once(ctx context.Context, body func(Hold) error, wait time.Duration) error {
	u.lost, u.seen = false, sight{}
	defer u.closePast()
	h, err := u.o.Lock.Acquire(ctx, u.path, wait)
	if err != nil {
		return err
	}
	held := true
	defer func() {
		if held { // body has panicked
			_ = h.Release()
		}
	}()
	if err = u.sweep(); err == nil {
		err = body(h)
	}
	held = false
	rerr := h.Release()
	switch {
	case rerr == nil || isLost(rerr):
		// What a lost hold committed before stands; what it did not was refused by the fence.
	case u.landed:
		rerr = committed(rerr)
		return errors.Join(err, rerr)
	default:
		return errors.Join(err, rerr)
	}
	return err
}

// sweep removes what dead writers left beside the file. A lock file's Acquire has done it already.
func (u *update) sweep() error {
	if _, ok := u.o.Lock.(lockFile); ok {
		return nil
	}
	err := sweep.Dir(u.s, u.path)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a folder that may be written and not listed
	}
	return err
}

// commit puts what fill writes in place of the file.
func (u *update) commit(ctx context.Context, h Hold, fill func(io.Writer) error) error {
	t := commit.Target{Seams: u.s, Path: u.path, Sync: !u.o.NoSync, Fence: func() error {
		err := h.Fence()
		if err == nil {
			err = u.fresh()
		}
		u.lost = isLost(err) || errors.Is(err, ErrStale)
		return err
	}}
	err := t.Write(fill)
	if err != nil && !errors.Is(err, ErrNotDurable) {
		return err
	}
	u.landed = true
	err = committed(err)
	if u.o.AfterWrite != nil {
		err = errors.Join(err, committed(u.o.AfterWrite(ctx, h)))
	}
	return err
}

// sight is what a file looked like.
type sight struct {
	taken   bool
	missing bool
	info    vfs.Info
}

func (u *update) saw(s sight) {
	if s.taken = true; !u.seen.taken {
		u.seen = s
	}
}

// fresh returns nil if the file is the one that was read. Every commit renames a new file over the old
// one, so any since then shows: that of a program without the lock, and that of a holder who was forced
// out behind its own fence. Asked after the fence, it leaves of all these only a commit between this
// look and the rename.
func (u *update) fresh() error {
	if !u.seen.taken {
		return nil
	}
	is, err := u.s.FS.Lstat(u.path)
	old := u.seen.info
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if u.seen.missing {
			return nil
		}
	case err != nil:
		return err
	case !u.seen.missing && is.Size == old.Size && is.ModTime.Equal(old.ModTime) && is.Ino == old.Ino:
		return nil
	}
	return fmt.Errorf("change %s: %w", display.Text(u.path), ErrStale)
}

// oldFile is the file to be changed, open for reading; or the emptiness where there is none.
type oldFile struct {
	vfs.File
	size    int64
	missing bool
}

func (f *oldFile) Read(p []byte) (int, error) {
	if f.missing {
		return 0, io.EOF
	}
	return f.File.Read(p)
}

func (f *oldFile) Close() error {
	if f.missing {
		return nil
	}
	return f.File.Close()
}

// open opens the file, if it is a plain one that may be read.
func (u *update) open() (*oldFile, error) {
	info, err := u.s.FS.Lstat(u.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && u.o.Create:
		u.saw(sight{missing: true})
		return &oldFile{missing: true}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("change %s: %w", display.Text(u.path), ErrNoFile)
	case err != nil:
		return nil, err
	case !info.Mode.IsRegular():
		return nil, fmt.Errorf("change %s: %w but %s", display.Text(u.path), ErrNotRegular, kindOf(info.Mode))
	}
	f, err := u.s.FS.Open(u.path)
	if err != nil {
		return nil, err
	}
	// It may have been replaced since; what is open now is what counts.
	if info, err = f.Stat(); err == nil && !info.Mode.IsRegular() {
		err = fmt.Errorf("change %s: %w but %s", display.Text(u.path), ErrNotRegular, kindOf(info.Mode))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	u.saw(sight{info: info})
	return &oldFile{File: f, size: info.Size}, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// finish ends the reading of a file. Where it can be replaced while it is open, it is closed after the hold:
// the last close of a replaced file is what frees its blocks, and others need not wait for that.
func (u *update) finish(f *oldFile) {
	if runtime.GOOS == "windows" {
		_ = f.Close() // it was only read
		return
	}
	u.past = append(u.past, f)
}

func (u *update) closePast() {
	for _, f := range u.past {
		_ = f.Close()
	}
	u.past = nil
}

// read returns the file's content, nil when there is no file.
func (u *update) read() (data []byte, exists bool, err error) {
	f, err := u.open()
	if err != nil {
		return nil, false, err
	}
	defer u.finish(f)
	if !f.missing {
		if data, err = readWhole(f, f.size); err != nil {
			return nil, false, err
		}
	}
	u.s.At(seam.HoldRead)
	return data, !f.missing, nil
}

// readWhole reads to the end. The size is where to start: io.ReadAll would double its way up to it.
func readWhole(r io.Reader, size int64) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
