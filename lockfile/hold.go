package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// Hold is a lock that was acquired. Its methods may be called from several goroutines, but one commit
// at a time is all that makes sense.
type Hold struct {
	*lock
	token   string
	content []byte // the lock's bytes
	parent  context.Context

	mu     sync.Mutex
	state  holdState
	seen   *vfs.Info       // the guarded file as Read found it; nil when there is nothing to compare
	none   bool            // Read found no file
	ctx    context.Context // made on demand
	cancel context.CancelCauseFunc
}

type holdState uint8

const (
	holding  holdState = iota
	lostHold           // the fence found the lock gone, for good
	ended              // released, or lost and released
	unended            // released, but the lock could not be moved away
)

// Path is the guarded file, with links resolved.
func (h *Hold) Path() string { return h.path }

// LockPath is the lock file.
func (h *Hold) LockPath() string { return h.name }

// Token is what the lock file carries for this hold: 24 hex digits.
func (h *Hold) Token() string { return h.token }

// Read returns the guarded file's content, or an error matching fs.ErrNotExist when there is no file.
func (h *Hold) Read() ([]byte, error) {
	if err := h.live(); err != nil {
		return nil, err
	}
	data, info, err := h.readGuarded()
	h.mu.Lock()
	h.seen, h.none = info, errors.Is(err, fs.ErrNotExist)
	h.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", h.path, err)
	}
	h.s.At(seam.HoldRead)
	return data, err
}

func (h *Hold) readGuarded() ([]byte, *vfs.Info, error) {
	f, err := h.s.FS.Open(h.path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode.IsRegular() {
		return nil, nil, ErrNotRegular
	}
	// The size is where to start; io.ReadAll would double its way up to it.
	data := make([]byte, 0, info.Size+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, &info, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// fresh returns nil if the guarded file is the one that Read saw. A commit renames a new file over the
// old one, so any commit since then shows. The fence alone cannot see one that landed while the lock was
// away, if the lock has been put back since, nor that of a holder that was forced out after its own
// fence. Asked after the fence, it leaves of all these only a commit between this look and the rename.
func (h *Hold) fresh() error {
	h.mu.Lock()
	seen, none := h.seen, h.none
	h.mu.Unlock()
	if seen == nil && !none {
		return nil
	}
	is, err := h.s.FS.Lstat(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if none {
			return nil
		}
	case err != nil:
		return fmt.Errorf("look at %s: %w", h.path, err)
	case none:
	case is.Size == seen.Size && is.ModTime.Equal(seen.ModTime) && (h.cls != links || is.Ino == seen.Ino):
		// Without hard links a file system may well make up its inode numbers.
		return nil
	}
	return fmt.Errorf("commit %s: %w", h.path, ErrStale)
}

// Fence returns nil if the lock carries this hold's token now. An error that matches ErrLost means
// that it does not; it is then lost for good, even if the lock comes back: others may have committed
// in between. Any other error means that it could not be told. Whatever it is, do not commit.
func (h *Hold) Fence() error {
	if err := h.live(); err != nil {
		return err
	}
	r, err := h.read(h.name, false)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotLockFile):
	case err != nil:
		return fmt.Errorf("fence: %w", err)
	case r.same(h.reading()):
		return nil
	}
	lost := h.lost()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == holding {
		h.state = lostHold
		h.end(lost)
	}
	return lost
}

// reading is the lock as it should be found.
func (h *Hold) reading() *reading { return &reading{data: h.content, ended: true} }

func (h *Hold) live() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case holding:
		return nil
	case lostHold:
		return h.lost()
	}
	return fmt.Errorf("lock %s: %w", displayPath(h.name), ErrReleased)
}

// Commit replaces the guarded file's content, in one step, if the fence allows it and the file is still
// the one that Read saw, when Read was called. It keeps the file's permission bits and, where this process
// may, its owner and group; extended attributes are not kept.
//
// On any error but ErrNotDurable the file is as it was. Several commits under one hold are each fenced.
func (h *Hold) Commit(data []byte) error {
	return h.CommitFunc(func(w io.Writer) error {
		n, err := w.Write(data)
		if err == nil && n < len(data) {
			err = io.ErrShortWrite
		}
		return err
	})
}

// CommitFunc is Commit for content that fill writes. An error of fill stops the commit, and is
// returned.
func (h *Hold) CommitFunc(fill func(io.Writer) error) error {
	if err := h.live(); err != nil {
		return err
	}
	t := commit.Target{Seams: h.s, Path: h.path, Sync: h.sync, Fence: func() error {
		if err := h.Fence(); err != nil {
			return err
		}
		return h.fresh()
	}}
	err := t.Write(fill)
	if err == nil || errors.Is(err, ErrNotDurable) {
		h.mu.Lock()
		h.seen, h.none = nil, false // the file is our own now
		h.mu.Unlock()
	}
	return err
}

// heldKey finds the innermost hold in a context.
type heldKey struct{}

// Context returns a context, made from the one that Acquire was given, that ends with the hold: when
// Release is called, or when a fence finds the lock lost (context.Cause then matches ErrLost). Nothing
// watches the lock in between. Acquire with this context refuses the same file at once, with
// ErrReentry, where it would only ever wait for itself.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		ctx, cancel := context.WithCancelCause(h.parent)
		h.ctx, h.cancel = context.WithValue(ctx, heldKey{}, h), cancel
		if h.state != holding {
			cancel(ErrReleased)
		}
	}
	return h.ctx
}

// end ends the hold's context. The caller has the mutex.
func (h *Hold) end(cause error) {
	if h.cancel != nil {
		h.cancel(cause)
	}
}

// reentered reports whether ctx is, or comes from, the context of a live hold on the same lock.
func reentered(ctx context.Context, l *lock) bool {
	for {
		h, ok := ctx.Value(heldKey{}).(*Hold)
		if !ok {
			return false
		}
		if h.name == l.name && h.live() == nil {
			return true
		}
		ctx = h.parent
	}
}

// Release ends the hold. It never unlinks the lock's name: it moves the lock to a name of its own,
// checks that it is this hold's, and removes it there; another's is put back. So a Release stalled for
// any time, or called late, takes no other holder's lock away.
//
// An error that matches ErrLost means that the lock was not this hold's any more; what was committed
// before stands. After another error the lock may still be there. The hold has ended all the same, and
// the next Acquire in this process, or another Release, lets it go. Releasing again is otherwise
// without effect.
func (h *Hold) Release() error {
	h.mu.Lock()
	switch h.state {
	case ended:
		h.mu.Unlock()
		return nil
	case unended:
		if !h.s.Process.TakeEnded(h.token) { // an Acquire has let it go meanwhile
			h.state = ended
			h.mu.Unlock()
			return nil
		}
	}
	h.state = ended
	h.end(ErrReleased)
	h.mu.Unlock()

	moved, err := h.moveAway()
	if errors.Is(err, fs.ErrNotExist) {
		h.s.Process.EndUnseen(h.token)
		return h.lost()
	}
	if err != nil {
		return h.unended(err)
	}
	own, err := h.settle(moved, h.reading(), releaseSteps)
	if err != nil {
		return h.unended(err)
	}
	if !own {
		h.s.Process.EndUnseen(h.token)
		return h.lost()
	}
	return nil
}

// unended notes that the lock may still be there.
func (h *Hold) unended(err error) error {
	h.s.Process.EndUnseen(h.token)
	h.mu.Lock()
	h.state = unended
	h.mu.Unlock()
	return fmt.Errorf("release lock %s: %w", displayPath(h.name), err)
}
