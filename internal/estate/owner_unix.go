//go:build unix

package estate

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ownedByCaller keeps others' folders from being taken for the caller's: anybody may leave a .stile in a
// folder that all may write, and wait for somebody to work below it.
func ownedByCaller(is fs.FileInfo) error {
	st, ok := is.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("%w (number %d)", ErrForeign, st.Uid)
}
