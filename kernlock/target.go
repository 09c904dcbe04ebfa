package kernlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stile-lock/stile/internal/display"
)

const (
	lockSuffix      = ".lock"
	incidentsSuffix = ".incidents.jsonl"
	rotatedSuffix   = ".1"

	// maxName is the longest file name of every filesystem we name. One
	// with a lower limit answers ENAMETOOLONG itself.
	maxName = 255
)

// names are the paths that belong to one target. All are canonical.
type names struct {
	target string // what is guarded; need not exist
	lock   string // the lock file
	id     string // first 16 hex digits of SHA-256 of target
	record bool   // whether a holder record may be written into lock
}

func (n *names) incidents() string { return n.lock + incidentsSuffix }

// resolve makes target canonical: two names of one file are one lock.
func resolve(target string, exact bool) (names, error) {
	path, err := canonical(target)
	if err != nil {
		return names{}, err
	}
	n := names{target: path, lock: path + lockSuffix, record: true}
	if exact {
		// <x>.lock named exactly and x named as a target are one lock, so
		// they get one identity. Any other file may be somebody's data, and
		// an empty one is no invitation to write.
		n.lock = path
		n.target, n.record = strings.CutSuffix(path, lockSuffix)
		if strings.HasSuffix(n.target, string(filepath.Separator)) {
			n.target, n.record = path, false
		}
	}
	sum := sha256.Sum256([]byte(hashable(n.target)))
	n.id = hex.EncodeToString(sum[:8])

	longest := filepath.Base(n.lock) + incidentsSuffix + rotatedSuffix
	if len(longest) > maxName {
		return names{}, fmt.Errorf("%w: %d bytes for %q, at most %d", ErrNameTooLong,
			len(longest), display.Text(longest), maxName)
	}
	return n, nil
}

// canonical resolves every symbolic link of path, a dangling last one too.
// The last element need not exist; its folder must.
func canonical(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%w: empty target", ErrUsage)
	}
	if strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("%w: target holds a NUL byte", ErrUsage)
	}
	given := path
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", display.Text(given), err)
		}
		// Not filepath.Join: it would fold "link/.." before link is resolved.
		path = wd + string(filepath.Separator) + path
	}
	if straight(path) {
		return path, nil
	}
	for range 64 {
		whole, err := filepath.EvalSymlinks(path)
		if err == nil {
			if filepath.Dir(whole) == whole {
				return "", fmt.Errorf("%w: %s is a root folder, which has no place beside it for a lock",
					ErrUsage, display.Text(given))
			}
			return whole, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", resolveError(given, err)
		}
		path = trimSeparators(path)
		dir, base := filepath.Split(path)
		if base == "." || base == ".." {
			return "", resolveError(given, err)
		}
		parent, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", resolveError(given, err)
		}
		path = filepath.Join(parent, base)
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link: it does not exist yet
		}
		if !filepath.IsAbs(link) {
			link = parent + string(filepath.Separator) + link
		}
		path = link
	}
	return "", fmt.Errorf("resolve %s: too many links", display.Text(given))
}

func resolveError(given string, err error) error {
	return fmt.Errorf("resolve %s: %w", display.Text(given), withoutPath(err))
}

// withoutPath is what went wrong alone: the errors of package os repeat the
// path, unescaped.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func trimSeparators(path string) string {
	for len(path) > 1 && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	return path
}
