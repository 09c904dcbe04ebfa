package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

// lockFileStatus is the JSON of a lock of the lock file family.
type lockFileStatus struct {
	Path     string          `json:"path"`
	LockPath string          `json:"lock_path"`
	Locked   bool            `json:"locked"`
	Holder   *lockFileHolder `json:"holder"`
}

// lockFileHolder is the process that a lock file names. What is only for people is cleaned; the rest is
// as it stands in the file.
type lockFileHolder struct {
	PID        int64   `json:"pid"`
	Hostname   string  `json:"hostname"`
	AcquiredAt string  `json:"acquired_at"`
	State      string  `json:"state"`
	Reason     string  `json:"reason"`
	AgeSeconds float64 `json:"age_seconds"`
}

// stateWord is the JSON word for a holder's state.
func stateWord(s lockfile.HolderState) string {
	if s == lockfile.OtherHost {
		return "other_host"
	}
	return string(s)
}

func lockFileStatusOf(s lockfile.State) lockFileStatus {
	out := lockFileStatus{Path: s.Path, LockPath: s.LockPath, Locked: s.Locked}
	if s.Locked {
		h := s.Holder
		out.Holder = &lockFileHolder{
			PID: h.PID, Hostname: h.Hostname, AcquiredAt: h.AcquiredAt, State: stateWord(h.State),
			Reason: h.Reason, AgeSeconds: h.Age.Seconds(),
		}
	}
	return out
}

// lockFileOf gives the status of a file's lock if that is one of the lock file family: by its content,
// or by lying under an estate's agents, where an unreadable one is of this family too.
func lockFileOf(report *kernlock.Report) (lockfile.State, bool) {
	if report.Content != kernlock.ContentOther && estate.Of(report.Target) == "" {
		return lockfile.State{}, false
	}
	s, err := lockfile.Status(report.Target, lockfile.Options{})
	return s, err == nil
}

// surveyLockFiles visits the lock files in dir and below, in path order. What cannot be read there has
// been told of by the survey of kernel locks.
func surveyLockFiles(ctx context.Context, dir string, visit func(lockfile.State)) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		target, ok := strings.CutSuffix(path, ".lock")
		if ctx.Err() != nil || err != nil || !ok || !d.Type().IsRegular() || d.Name() == ".lock" {
			return ctx.Err()
		}
		s, err := lockfile.Status(target, lockfile.Options{})
		// A target that is a link has its lock elsewhere.
		if err != nil || !s.Locked || s.LockPath != path {
			return nil //nolint:nilerr // a kernel lock's file, or gone since
		}
		if s.Holder.State != lockfile.Unreadable || estate.Of(s.Path) != "" {
			visit(s)
		}
		return nil
	})
}

func printLockFile(w io.Writer, s lockfile.State) {
	line := func(name, text string) { fmt.Fprintf(w, "%-12s %s\n", name, text) }
	line("target", display.Text(s.Path))
	if !s.Locked {
		line("lock file", display.Text(s.LockPath)+" (not there)")
		line("held by", "nobody")
		return
	}
	line("lock file", display.Text(s.LockPath)+" (of the lock file family)")
	line("held by", s.Holder.String())
	switch s.Holder.State {
	case lockfile.Dead:
		line("", "the next writer breaks it by itself")
	case lockfile.Alive:
	default:
		line("", "to clear it once its process is known to be gone: stile unlock --force "+display.Text(s.Path))
	}
}

func lockFileRow(base string, s lockfile.State) []string {
	row := []string{relativeTo(base, s.Path), "lock file", "unreadable", "-", "-", span(s.Holder.Age), "-", "-"}
	if s.Holder.State != lockfile.Unreadable {
		row[2] = fmt.Sprintf("%d (%s)", s.Holder.PID, s.Holder.State)
	}
	return row
}

func relativeTo(base, path string) string {
	if rel, err := filepath.Rel(base, path); err == nil && !strings.HasPrefix(rel, "..") {
		path = rel
	}
	return display.Text(path)
}
