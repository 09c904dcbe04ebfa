//go:build unix

package kernlock

import (
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// straight says whether an absolute path is canonical as it stands: written without detours, through folders and
// no link, to a last element that is no link either, or is not there. It may say no of any path; then it costs a
// second look, a longer one. Of most it says yes, with one call for each element and one pass.
func straight(path string) bool {
	if len(path) < 2 || filepath.Clean(path) != path {
		return false
	}
	var st unix.Stat_t
	for i := 1; ; {
		n := strings.IndexByte(path[i:], '/')
		if n < 0 {
			break
		}
		i += n
		if unix.Lstat(path[:i], &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return false
		}
		i++
	}
	err := unix.Lstat(path, &st)
	return errors.Is(err, unix.ENOENT) || err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK
}
