// Package sweep removes what dead processes left beside a guarded file. It goes by proof of death
// alone, never by age.
package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// Dir removes each name beside the guarded file at path, in any shape that any build has made, whose
// recorded owner is provably dead, and what this process itself could not remove earlier. Names whose
// owner is alive, elsewhere or unknown stay; they block nothing.
//
// Such a name is unique to one attempt of its dead owner, so however long this process is stalled
// between its judgement and the removal, it removes that file or nothing.
func Dir(s *seam.Set, path string) error {
	dir, base := vfs.Split(path)
	for _, name := range s.Process.TakeLitter(dir) {
		Remove(s, name)
	}
	names, err := s.FS.List(dir, base+".")
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	judge := NewJudge(s, dir)
	for _, name := range names {
		n, ok := format.Parse(name, base)
		if !ok {
			continue
		}
		full := dir + string(filepath.Separator) + name
		if n.InContent {
			ok = judge.deadByContent(full)
		} else {
			ok = judge.Dead(n)
		}
		if !ok {
			continue
		}
		s.At(seam.SweepJudged)
		err := s.FS.Remove(full)
		// In a sticky folder another user's leftovers are not ours to remove, and block nobody.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("sweep %s: %w", full, err)
		}
	}
	return nil
}

// Remove takes away a name that this process made in this attempt. If it cannot, the name is
// remembered and tried again at the next sweep. That is no error: such a name blocks nobody but, when it
// is a claim, the breaking of one lock, and that until the next sweep.
func Remove(s *seam.Set, name string) {
	if err := s.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Process.Litter(name)
	}
}

// Judge says which owners of names are dead. It asks once for each pid, since in a crowd every writer
// sees the names of all the others.
type Judge struct {
	s     *seam.Set
	near  string
	self  proc.Holder
	known map[int64]bool
}

// NewJudge returns a judge of names in the folder dir.
func NewJudge(s *seam.Set, dir string) *Judge { return &Judge{s: s, near: dir} }

// Dead reports whether the owner in a name is provably dead.
func (j *Judge) Dead(n format.Name) bool {
	if n.InContent || !j.s.Process.Owns(n.Tag) {
		return false
	}
	if j.known == nil {
		j.self, j.known = j.s.Process.Self(), map[int64]bool{}
	}
	if n.PID == j.self.PID {
		return false // our own pid answers
	}
	dead, ok := j.known[n.PID]
	if !ok {
		v := j.s.Judge(proc.Holder{PID: n.PID, Host: j.self.Host}, j.near).Verdict
		dead = v == proc.Dead
		j.known[n.PID] = dead
	}
	return dead
}

// Corpse reports whether the owner in a name has ended and only waits for its parent. Dead goes by the
// probe, which a corpse answers; to see one costs more, so only who is kept waiting by a name asks. A name
// does not say when its owner began: if the corpse is another's, that owner is gone as well.
func (j *Judge) Corpse(n format.Name) bool {
	self := j.s.Process.Self()
	if n.InContent || n.PID == self.PID || self.Proc == nil || self.Proc.PidNS == 0 || !j.s.Process.Owns(n.Tag) {
		return false
	}
	here := &proc.ID{PidNS: self.Proc.PidNS}
	return j.s.Judge(proc.Holder{PID: n.PID, Host: self.Host, Proc: here}, j.near).Verdict == proc.Dead
}

// deadByContent judges a claim of an earlier build, whose content is that of the lock it was made for.
func (j *Judge) deadByContent(name string) bool {
	f, err := j.s.FS.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode.IsRegular() {
		return false
	}
	data, whole, err := vfs.ReadAll(f, format.MaxLock)
	if err != nil || !whole {
		return false
	}
	l, err := format.ParseLock(data)
	if err != nil || l.Host == "" && !j.s.Process.Owns("") {
		return false
	}
	return j.s.Judge(proc.Holder{PID: l.PID, Host: l.Host, Proc: l.Proc}, j.near).Verdict == proc.Dead
}
