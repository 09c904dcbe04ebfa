package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// StateDir is the user's folder for what must not lie in an estate: $XDG_STATE_HOME/stile, by default
// ~/.local/state/stile; on Windows %LocalAppData%\stile. Empty when there is no such place.
func StateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "stile")
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "stile")
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "stile")
}

// ErrNoState says that there is no folder for sessions and witnesses.
var ErrNoState = errors.New("no folder for sessions: set XDG_STATE_HOME")

const (
	witnessName  = "witness"
	sessionsName = "sessions"
)

// stateBox is a container's folder in a part of the user's state, made when it is not there. Only the user
// may look into it.
func (s *Store) stateBox(part, container string) (string, error) {
	if s.state == "" {
		return "", ErrNoState
	}
	if err := grant.CheckName(container); err != nil {
		return "", err
	}
	dir := filepath.Join(s.state, part, s.estate, container)
	if info, err := s.seams.FS.Lstat(dir); err == nil && info.Mode.IsDir() {
		return dir, nil
	}
	if err := s.mkdirAll(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// mkdirAll makes a folder and those above it that are missing. Those that are there may be reached by links:
// the user's own home is no estate.
func (s *Store) mkdirAll(dir string) error {
	if _, err := s.seams.FS.List(dir, "\x00"); err == nil {
		return nil
	}
	up := filepath.Dir(dir)
	if up == dir {
		return fmt.Errorf("make %s: there is no such volume", display.Text(dir))
	}
	if err := s.mkdirAll(up); err != nil {
		return err
	}
	return s.mkdir(dir, 0o700)
}

// createOnly makes a file that was not there, for the user alone, whole on the disk or gone.
func (s *Store) createOnly(name string, data []byte) error {
	f, err := s.seams.FS.Create(name, 0o600)
	if err != nil {
		return err
	}
	err = vfs.WriteAll(f, data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = s.seams.FS.SyncDir(filepath.Dir(name))
	}
	if err != nil {
		// It holds a secret that nobody was told of yet.
		return errors.Join(err, s.seams.FS.Remove(name))
	}
	return nil
}
