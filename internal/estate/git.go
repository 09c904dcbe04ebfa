package estate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// maxPointer bounds what is read of a file that names a folder.
const maxPointer = 64 << 10

// gitCommon gives the git common directory of the repository or worktree whose top dir is, or that dir
// itself is; "" when it is neither. It is found as git does it, without git.
func gitCommon(dir string) (string, error) {
	dot := filepath.Join(dir, ".git")
	is, err := os.Stat(dot)
	switch {
	case err == nil && is.IsDir():
		if isGitDir(dot) {
			return commonOf(dot)
		}
	case err == nil && is.Mode().IsRegular():
		text, err := pointer(dot)
		if err != nil {
			return "", err
		}
		gitDir, ok := strings.CutPrefix(text, "gitdir: ")
		if !ok || gitDir == "" {
			return "", fmt.Errorf("read %s: it does not say where the repository is", display.Text(dot))
		}
		return commonOf(below(dir, gitDir))
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return "", fmt.Errorf("search an estate: %w", err)
	}
	if isGitDir(dir) { // a bare repository, or the inside of one
		return commonOf(dir)
	}
	return "", nil
}

// isGitDir looks for what every git directory has; that of a worktree has a commondir in place of objects.
func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	for _, name := range []string{"objects", "commondir"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// commonOf gives the directory that the worktrees of a git directory share: itself, or where its
// commondir says.
func commonOf(gitDir string) (string, error) {
	text, err := pointer(filepath.Join(gitDir, "commondir"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = "."
	case err != nil:
		return "", err
	}
	common, err := filepath.EvalSymlinks(below(gitDir, text))
	if err != nil {
		return "", fmt.Errorf("search an estate: the git repository named in %s: %w", display.Text(gitDir), err)
	}
	return common, nil
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// pointer reads the one line of a file that names a folder.
func pointer(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	data, whole, err := vfs.ReadAll(f, maxPointer)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", display.Text(name), err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if !whole || strings.ContainsAny(text, "\x00\r\n") {
		return "", fmt.Errorf("read %s: it is not one line", display.Text(name))
	}
	return text, nil
}
