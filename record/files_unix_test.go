//go:build unix

package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// deadPID is the number of a process that has ended.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	must(t, cmd.Run())
	return cmd.Process.Pid
}

// A FIFO makes nobody wait, and is not written to.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(path, 0o600))
	is(t, Update(t.Context(), path, add("x"), UpdateOptions{}), ErrNotRegular)
	is(t, Append(t.Context(), path, []byte("1"), UpdateOptions{}), ErrNotRegular)
	is(t, AppendLine(t.Context(), path, []byte("1"), LineOptions{}), ErrNotRegular)
	only(t, dir, "fifo")
}

// A file that may not be read is a permission error, and gets no lock file.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, nil, 0o200))
	if os.Geteuid() == 0 {
		// Root reads everything, so it goes on as another user.
		must(t, os.Chmod(filepath.Dir(dir), 0o755))
		must(t, os.Chmod(dir, 0o777))
		asNobody(t)
	}
	is(t, Update(t.Context(), path, add("x"), UpdateOptions{}), os.ErrPermission)
	is(t, AppendLine(t.Context(), path, []byte("1"), LineOptions{}), os.ErrPermission)
	only(t, dir, "f")
}
