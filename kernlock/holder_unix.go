//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/unix"
)

// holder reads the holder record through an open lock file.
func (f *lockFile) holder(*names) ([]byte, error) { return f.read(make([]byte, maxRecord)) }

// sample is the record as it is now, to be compared with a later one. It is
// kept undecoded: most waits end well and never look at it.
func (f *lockFile) sample(*names) []byte {
	b, err := f.read(make([]byte, keepSize))
	if err != nil {
		return nil
	}
	return b
}

// readHolder reads n's holder record without a lock file that is open. There
// is none when it returns an error that matches fs.ErrNotExist.
func readHolder(n *names) ([]byte, error) {
	fd, err := openRegular(n.lock, unix.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, errNotRegular):
		return nil, badLockFile(n, "it is no plain file")
	case err != nil:
		return nil, openError(n, err)
	}
	f := &lockFile{fd: fd}
	defer func() { _ = f.close() }()
	b, err := f.holder(n)
	if err != nil {
		return nil, fmt.Errorf("read lock file %s: %w", display.Text(n.lock), err)
	}
	return b, nil
}

var errNotRegular = errors.New("not a plain file")

// openRegular opens a plain file that exists, and nothing else: no link, and
// no FIFO whose other end could keep us waiting.
func openRegular(path string, flags int) (int, error) {
	fd, err := open(path, flags|openFlags, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
