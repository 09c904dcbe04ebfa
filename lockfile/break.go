package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// outcome is what became of a lock that was to be broken.
type outcome uint8

const (
	nothing outcome = iota // it is still there; another breaker has it, or an error came
	broken                 // moved away and removed
	gone                   // it was not there any more
	changed                // it was another by then, and is left or put back
)

// breakLock removes the lock that was judged, and no other. Without force the judged lock must still
// be of a dead holder when it is confirmed, and only one breaker of a lock goes on at a time: each
// claims it, then lists the claims. Of two whose claims overlap, the later to list sees the other's.
// An error matching ErrBusy names the breaker that is there.
func (l *lock) breakLock(judged *reading, force bool) (outcome, error) {
	s := l.s
	s.At(seam.BreakJudged)
	claim, err := l.claim(judged.key())
	if err != nil {
		return nothing, fmt.Errorf("break lock %s: %w", displayPath(l.name), err)
	}
	defer sweep.Remove(s, claim)
	if !force {
		if err := l.alone(judged.key(), claim); err != nil {
			return nothing, err
		}
	}
	s.At(seam.BreakClaimed)

	r, err := l.read(l.name, !judged.ended)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone, nil
	case errors.Is(err, ErrNotLockFile):
		return changed, nil
	case err != nil:
		return nothing, fmt.Errorf("break lock %s: %w", displayPath(l.name), err)
	case !r.same(judged):
		return changed, nil
	case !force && !l.dead(judged):
		return changed, nil
	}
	s.At(seam.BreakConfirmed)

	moved, err := l.moveAway()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone, nil
	case err != nil:
		return nothing, fmt.Errorf("break lock %s: %w", displayPath(l.name), err)
	}
	own, err := l.settle(moved, judged, breakSteps)
	if err != nil {
		return nothing, fmt.Errorf("break lock %s: %w", displayPath(l.name), err)
	}
	if !own {
		return changed, nil
	}
	return broken, nil
}

// claim makes this breaker's claim. Its name says whose it is; its content is for people.
func (l *lock) claim(key string) (name string, err error) {
	attempt, err := l.s.Hex24()
	if err != nil {
		return "", err
	}
	self := l.s.Process.Self()
	name = format.Make(l.path, format.Claim, key, l.s.Process.Tag(), self.PID, attempt)
	content, err := json.Marshal(struct {
		PID      int64  `json:"pid"`
		Hostname string `json:"hostname"`
		At       string `json:"at"`
	}{self.PID, self.Host, l.s.Clock.Now().UTC().Format(format.TimeFormat)})
	if err != nil {
		return "", err
	}
	f, err := l.s.FS.Create(name, 0o600)
	if err == nil {
		err = vfs.WriteAll(f, content)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		sweep.Remove(l.s, name)
		return "", err
	}
	return name, nil
}

// alone removes the claims of dead breakers on the lock with this key, and returns an ErrBusy for one
// that is not provably dead. Claims of earlier builds count for nothing: no breaker looks at them now.
func (l *lock) alone(key, mine string) error {
	names, err := l.s.FS.List(l.dir, l.base+format.LockSuffix+"."+string(format.Claim)+"-"+key+"-")
	if err != nil {
		return fmt.Errorf("break lock %s: %w", displayPath(l.name), err)
	}
	judge := sweep.NewJudge(l.s, l.dir)
	_, mineBase := vfs.Split(mine)
	for _, base := range names {
		n, ok := format.Parse(base, l.base)
		if !ok || base == mineBase {
			continue
		}
		if !judge.Dead(n) && !judge.Corpse(n) {
			where := "on this host"
			if !l.s.Process.Owns(n.Tag) {
				where = "on another host or in another pid namespace"
			}
			return fmt.Errorf("%w: pid %d %s has claimed it", ErrBusy, n.PID, where)
		}
		// Its name is unique to its dead maker, so nothing can make it again.
		name := l.dir + string(filepath.Separator) + base
		if err := l.s.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("break lock %s: remove a dead claim: %w", displayPath(l.name), err)
		}
	}
	return nil
}
