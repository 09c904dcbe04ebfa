package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// A lock leaves its name in one way only, whoever takes it away: it is renamed to a name of the
// mover's own, looked at there, and removed there if it is the right one. Between any look at the lock's
// own name and an unlink of that name a new holder could publish; nothing can come between here.

// moveSteps are the named steps of one kind of move.
type moveSteps struct {
	renamed, removed, mismatch, putBackOpened, putBack seam.Step
}

var (
	breakSteps = moveSteps{
		seam.BreakRenamed, seam.BreakRemoved, seam.BreakMismatch, seam.BreakPutBackOpened, seam.BreakPutBack,
	}
	releaseSteps = moveSteps{
		seam.ReleaseRenamed, seam.ReleaseRemoved, seam.ReleaseMismatch, seam.ReleasePutBackOpened, seam.ReleasePutBack,
	}
)

// moveAway renames whatever is under the lock's name to a name of this attempt's own.
func (l *lock) moveAway() (moved string, err error) {
	attempt, err := l.s.Attempt()
	if err != nil {
		return "", err
	}
	self, tag := l.identity()
	moved = format.Make(l.path, format.Broken, "", tag, self.PID, string(attempt[:]))
	err = l.s.FS.Rename(l.name, moved)
	if err != nil {
		// Only this attempt can have made the name: if it is there the move has happened, whatever
		// became of the answer.
		if _, lerr := l.s.FS.Lstat(moved); lerr == nil {
			err = nil
		}
	}
	return moved, err
}

// settle looks at a moved lock. The one expected is removed; any other is put back under the lock's
// name unless that is taken by now, when its holder's fence will find the loss.
func (l *lock) settle(moved string, expected *reading, steps moveSteps) (own bool, err error) {
	l.s.At(steps.renamed)
	r, err := l.read(moved, !expected.ended)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil // somebody removed our name; there is nothing to put back
	case err != nil:
		// It may be a live holder's. Linking it back needs no reading.
		return false, errors.Join(err, l.putBack(moved, steps))
	case r.same(expected):
		sweep.Remove(l.s, moved) // what cannot be removed is tried again at the next sweep
		l.s.At(steps.removed)
		return true, nil
	}
	return false, l.putBack(moved, steps)
}

// putBack gives a moved lock its name again, by exclusive create, and removes the moved name.
func (l *lock) putBack(moved string, steps moveSteps) error {
	l.s.At(steps.mismatch)
	err := l.returnLock(moved, steps)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	sweep.Remove(l.s, moved)
	if err != nil {
		return fmt.Errorf("put lock back: %w", err)
	}
	l.s.At(steps.putBack)
	return nil
}

func (l *lock) returnLock(moved string, steps moveSteps) error {
	if l.cls != noLinks {
		err := l.s.FS.Link(moved, l.name)
		if err == nil {
			l.cls = links
		}
		if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l.cls = noLinks
	}
	// Everything that can fail about the moved file comes before the name is taken: a lock left empty
	// is a block.
	from, err := l.s.FS.Open(moved)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	start, whole, err := vfs.ReadAll(from, format.MaxLock)
	if err != nil {
		return err
	}
	if len(start) == 0 {
		// Its maker has made the name and not yet written, and will write into the moved file: a copy
		// would stay empty under the lock's name, and block everybody. The maker's fence finds the loss.
		return nil
	}
	var rest io.Reader = bytes.NewReader(nil)
	if !whole {
		rest = from
	}
	to, err := l.s.FS.Create(l.name, info.Mode&0o666|0o600)
	if err != nil {
		return err
	}
	l.s.At(steps.putBackOpened)
	err = vfs.WriteAll(to, start)
	if err == nil {
		_, err = io.Copy(to, rest)
	}
	if err == nil {
		err = commit.Resemble(to, info)
	}
	if err == nil && l.sync {
		err = to.Sync()
	}
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	return err
}

// recover releases a lock that this process left behind, which the caller has just taken from the
// process's memory of ended holds.
func (l *lock) recover(r *reading) error {
	moved, err := l.moveAway()
	if errors.Is(err, fs.ErrNotExist) {
		l.s.Process.EndUnseen(r.lock.Token) // moved by somebody who may put it back once more
		return nil
	}
	if err != nil {
		l.s.Process.EndUnseen(r.lock.Token)
		return fmt.Errorf("release lock %s of an ended hold: %w", displayPath(l.name), err)
	}
	own, err := l.settle(moved, r, releaseSteps)
	if !own {
		l.s.Process.EndUnseen(r.lock.Token)
	}
	if err != nil {
		return fmt.Errorf("release lock %s of an ended hold: %w", displayPath(l.name), err)
	}
	return nil
}
