// Package commit replaces a guarded file in one step: a temp file beside it, the fence, a rename.
// Both families of locks commit through it.
package commit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// ErrNotDurable says that the new content is in place, but the folder could not be synced after the rename, so a
// power cut may still bring the old content back.
var ErrNotDurable = errors.New("committed, but not known to be on disk")

// ErrNotRegular says that what is to be replaced is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Target is one guarded file under a hold.
type Target struct {
	Seams *seam.Set // complete
	Path  string    // canonical: its last element is no symlink
	Sync  bool      // make the commit survive a power cut
	// Fence is asked immediately before the rename. An error stops the commit.
	Fence func() error
}

// Write puts what fill writes in place of the guarded file. On any error but ErrNotDurable the file is
// as it was, and the temp file is gone or will be at this process's next sweep.
//
// The new file has the old one's permission bits and, where this process may, its owner and group; a
// new file has 0666 less the umask. Everything slow is done before the fence: between it and the
// rename lies no other call.
func (t *Target) Write(fill func(io.Writer) error) error {
	s := t.Seams
	old, err := s.FS.Lstat(t.Path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return fmt.Errorf("look at %s: %w", t.Path, err)
	}
	if !fresh && !old.Mode.IsRegular() {
		return fmt.Errorf("replace %s: %w", t.Path, ErrNotRegular)
	}
	attempt, err := s.Hex24()
	if err != nil {
		return err
	}
	temp := format.Make(t.Path, format.Temp, "", s.Process.Tag(), s.Process.Self().PID, attempt)
	if err := t.writeTemp(temp, fill, old, fresh); err != nil {
		return fmt.Errorf("write the new %s: %w", t.Path, err)
	}
	s.At(seam.CommitTempWritten)
	if err := t.Fence(); err != nil {
		sweep.Remove(s, temp)
		return err
	}
	s.At(seam.CommitFenced)
	if err := s.FS.Rename(temp, t.Path); err != nil {
		sweep.Remove(s, temp)
		return fmt.Errorf("replace %s: %w", t.Path, err)
	}
	s.At(seam.CommitRenamed)
	if t.Sync {
		dir, _ := vfs.Split(t.Path)
		if err := s.FS.SyncDir(dir); err != nil {
			return fmt.Errorf("replace %s: %w: %w", t.Path, ErrNotDurable, err)
		}
	}
	return nil
}

func (t *Target) writeTemp(temp string, fill func(io.Writer) error, old vfs.Info, fresh bool) error {
	// Until it has the old file's owner, nobody else may read what may be secret.
	perm := fs.FileMode(0o600)
	if fresh {
		perm = 0o666
	}
	f, err := t.Seams.FS.Create(temp, perm)
	if err != nil {
		sweep.Remove(t.Seams, temp) // in case it was made all the same
		return err
	}
	err = fill(f)
	if err == nil && !fresh {
		err = Resemble(f, old)
	}
	if err == nil && t.Sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		sweep.Remove(t.Seams, temp)
	}
	return err
}

// Resemble gives the new file f the permission bits, owner and group that like has. Owner and group
// are kept where this process may give them; a group that cannot be kept loses what its bits gave
// beyond what everybody has, and a setuid or setgid bit goes with the owner or group it was for.
func Resemble(f vfs.File, like vfs.Info) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	chowned := false
	if like.UID >= 0 && like.UID != is.UID {
		chowned = true
		if err := refusable(f.Chown(like.UID, -1)); err != nil {
			return err
		}
	}
	if like.GID >= 0 && like.GID != is.GID {
		chowned = true
		if err := refusable(f.Chown(-1, like.GID)); err != nil {
			return err
		}
	}
	if chowned {
		if is, err = f.Stat(); err != nil {
			return err
		}
	}
	const keep = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	mode := like.Mode & keep
	if is.UID != like.UID {
		mode &^= fs.ModeSetuid
	}
	if is.GID != like.GID {
		mode &^= fs.ModeSetgid
		mode &= ^fs.FileMode(0o070) | mode<<3&0o070
	}
	if is.Mode&keep == mode {
		return nil
	}
	return refusable(f.Chmod(mode))
}
