package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// publisher makes one acquisition's lock appear under the lock's name, whole or not at all where the
// file system has hard links.
type publisher struct {
	*lock
	token   string
	content []byte    // as last written
	pending string    // the pending file; empty when there is none
	stamped time.Time // when content was stamped
}

// restamp is how old a pending file may get before it is made anew. acquiredAt says when the lock was
// published, and is shown in seconds.
const restamp = time.Second

// publish tries once to make the lock appear. A nil hold without an error means that the name is taken.
func (p *publisher) publish() (*Hold, error) {
	if p.cls != noLinks {
		done, err := p.publishByLink()
		if err != nil {
			return nil, fmt.Errorf("publish lock %s: %w", displayPath(p.name), err)
		}
		if done {
			return p.hold(), nil
		}
		if p.cls != noLinks {
			return nil, nil
		}
	}
	done, err := p.publishByCreate()
	if err != nil {
		return nil, fmt.Errorf("publish lock %s: %w", displayPath(p.name), err)
	}
	if done {
		return p.hold(), nil
	}
	return nil, nil
}

// publishByLink links a pending file with the content to the lock's name. When that shows that there
// are no hard links, it leaves the class at noLinks and no pending file.
func (p *publisher) publishByLink() (done bool, err error) {
	if p.pending != "" && p.s.Clock.Now().Sub(p.stamped) > restamp {
		p.discard()
	}
	if p.pending == "" {
		if err := p.writePending(); err != nil {
			return false, err
		}
	}
	err = p.s.FS.Link(p.pending, p.name)
	switch {
	case err == nil:
		p.cls = links
		p.discard()
		p.s.At(seam.AcquirePublished)
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, nil // proves nothing about the class
	case errors.Is(err, fs.ErrNotExist):
		return false, err // somebody took our pending file away, or the folder
	}
	p.cls = noLinks
	p.discard()
	return false, nil
}

func (p *publisher) writePending() error {
	attempt, err := p.s.Attempt()
	if err != nil {
		return err
	}
	self, tag := p.identity()
	name := format.Make(p.path, format.Pending, "", tag, self.PID, string(attempt[:]))
	p.pending = name // even if its creation fails, in case it was made all the same
	f, err := p.s.FS.Create(name, p.mode())
	if err != nil {
		p.discard()
		return err
	}
	if err := p.write(f); err != nil {
		p.discard()
		return err
	}
	p.s.At(seam.AcquirePending)
	return nil
}

// publishByCreate makes the lock by exclusive create and writes it then. If the writing fails, nothing
// is removed: by then the name may be a lock that replaced ours. What is left there is released by
// this process when it meets it again, if the content got that far, and otherwise is a block.
func (p *publisher) publishByCreate() (done bool, err error) {
	f, err := p.s.FS.Create(p.name, p.mode())
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.s.At(seam.AcquireOpened)
	if err := p.write(f); err != nil {
		p.s.Process.EndUnseen(p.token)
		return false, err
	}
	p.s.At(seam.AcquirePublished)
	return true, nil
}

// write stamps the content and writes it, syncs and closes.
func (p *publisher) write(f vfs.File) error {
	self, _ := p.identity()
	p.stamped = p.s.Clock.Now()
	var at [32]byte // it writes more digits of a second than stay
	content := format.Lock{
		PID: self.PID, Host: self.Host, Token: p.token, Proc: self.Proc,
		AcquiredAt: string(p.stamped.UTC().AppendFormat(at[:0], format.TimeFormat)),
	}
	p.content = content.Encode()
	err := vfs.WriteAll(f, p.content)
	if err == nil {
		err = p.dress(f)
	}
	if err == nil && p.sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// mode is what the lock file's permissions are to be: the guarded file's read and write bits. The
// holder itself must be able to read it back.
func (l *lock) mode() fs.FileMode {
	if !l.exists {
		return 0o600
	}
	return l.guarded.Mode&0o666 | 0o600
}

// dress gives a new lock file the mode and group it is to have.
func (l *lock) dress(f vfs.File) error {
	if !l.exists {
		return nil
	}
	return commit.Resemble(f, vfs.Info{Mode: l.mode(), UID: -1, GID: l.guarded.GID})
}

// owns reports whether a lock that was read is this acquisition's own. A link() that was interrupted
// after it had its effect, and then repeated, finds its own lock in the way.
func (p *publisher) owns(r *reading) bool { return r.lock != nil && r.lock.Token == p.token }

// discard removes the pending file, if there is one.
func (p *publisher) discard() {
	if p.pending != "" {
		sweep.Remove(p.s, p.pending) // what cannot be removed is tried again at the next sweep
		p.pending = ""
	}
}

func (p *publisher) hold() *Hold {
	p.discard()
	return &Hold{lock: p.lock, token: p.token, content: p.content}
}
