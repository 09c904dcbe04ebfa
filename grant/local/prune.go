package local

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// keptSessions are how many of a container's sessions stay whose grant has ended without a release.
const keptSessions = 16

// Prune removes what the user's sessions of a container have left behind, given the number of a grant that has
// begun: sessions with a lower one, which has ended for ever, but for the last 16, and the locks of sessions that
// are gone. By number alone, never by age: a clock that was set takes nobody's session.
//
// Who comes with a session that went is refused all the same, and its landing kept; without being told how its
// grant ended. What cannot be removed is told to the log.
func (s *Store) Prune(container string, begun int64) {
	if err := s.prune(container, begun); err != nil {
		s.log.Warn("sessions not pruned", "container", display.Text(container), "error", err)
	}
}

func (s *Store) prune(container string, begun int64) error {
	all, err := s.Sessions(container)
	if err != nil || s.state == "" {
		return err
	}
	// One that never learned its number is its agent's to finish: it may hold the grant that has begun.
	ended := slices.DeleteFunc(all, func(x *Session) bool { return x.Grant == 0 || x.Grant >= begun })
	slices.SortFunc(ended, func(a, b *Session) int { return cmp.Compare(b.Grant, a.Grant) })
	for _, x := range ended[min(len(ended), keptSessions):] {
		err = errors.Join(err, s.Forget(x))
	}
	return errors.Join(err, s.pruneLocks(container))
}

// pruneLocks removes the locks of commands under sessions that are gone.
func (s *Store) pruneLocks(container string) error {
	dir := filepath.Join(s.state, sessionsName, s.estate, container)
	names, err := s.seams.FS.List(dir, "")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, name := range names {
		nonce, is := strings.CutSuffix(name, runSuffix+".lock")
		if !is || slices.Contains(names, nonce+sessionSuffix) {
			continue
		}
		files := []string{filepath.Join(dir, name)}
		for _, beside := range names { // on some systems the holder's record is a file of its own
			if strings.HasPrefix(beside, name+".") {
				files = append(files, filepath.Join(dir, beside))
			}
		}
		err = errors.Join(err, s.pruneLock(filepath.Join(dir, nonce+runSuffix), files))
	}
	return err
}

// pruneLock removes a lock and what is beside it, unless a command that outlived its session has it. It is held
// meanwhile, so that who opens it just now finds that it is no longer there.
func (s *Store) pruneLock(target string, files []string) error {
	lock, _, err := kernlock.TryAcquire(target, kernlock.Options{Operation: "prune"})
	if err != nil || lock == nil {
		return err
	}
	for _, name := range files {
		if rerr := s.seams.FS.Remove(name); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return errors.Join(err, lock.Release())
}
