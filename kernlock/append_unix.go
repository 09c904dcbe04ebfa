//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/unix"
)

// appendIncident adds one row to the incidents file at path. It takes no
// lock that anyone waits for, opens nothing that can make it wait, and
// leaves whole what was there.
func appendIncident(path string, lock *lockFile, in *Incident) error {
	row, err := canonicalJSON(in)
	if err != nil {
		return fmt.Errorf("encode incident: %w", err)
	}
	err = appendRow(path, lock, append(row, '\n'))
	if err != nil {
		return fmt.Errorf("append incident to %s: %w", display.Text(path), err)
	}
	return nil
}

func appendRow(path string, lock *lockFile, row []byte) error {
	for range 8 {
		fd, err := openIncidents(path, lock)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		if err == nil && st.Nlink > 1 {
			// One of its names may be of a file that is no incidents file.
			err = errors.New("it has several hard links")
		}
		if err == nil && st.Size >= maxIncidents && rotate(fd, path, &st) {
			// The row belongs in the new file.
			_ = unix.Close(fd)
			continue
		}
		if err == nil {
			err = appendWhole(fd, st.Size, row)
		}
		return errors.Join(err, unix.Close(fd))
	}
	return errors.New("rotated again and again")
}

// openIncidents opens the incidents file for reading and appending, making
// it with the mode and group of the lock file.
func openIncidents(path string, lock *lockFile) (int, error) {
	const flags = unix.O_RDWR | unix.O_APPEND
	for {
		fd, err := openRegular(path, flags)
		if !errors.Is(err, fs.ErrNotExist) {
			return fd, err
		}
		fd, err = open(path, flags|unix.O_CREAT|unix.O_EXCL|openFlags, 0o600)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return -1, err
		}
		var st, own unix.Stat_t
		if unix.Fstat(lock.fd, &st) == nil && unix.Fstat(fd, &own) == nil {
			uid, gid := -1, -1
			if os.Geteuid() == 0 && st.Uid != own.Uid {
				uid = int(st.Uid)
			}
			if st.Gid != own.Gid {
				gid = int(st.Gid)
			}
			if uid >= 0 || gid >= 0 {
				_ = unix.Fchown(fd, uid, gid)
			}
			_ = unix.Fchmod(fd, uint32(st.Mode)&0o666)
		}
		return fd, nil
	}
}

// appendWhole writes row with one call. A last line that a crash or a full
// disk left unfinished is closed first, so that it spoils no other.
func appendWhole(fd int, size int64, row []byte) error {
	var last [1]byte
	if size > 0 {
		if n, err := unix.Pread(fd, last[:], size-1); err == nil && n == 1 && last[0] != '\n' {
			row = append([]byte{'\n'}, row...)
		}
	}
	for {
		n, err := unix.Write(fd, row)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n < len(row):
			return fmt.Errorf("short write: %w", unix.ENOSPC)
		}
		return nil
	}
}

// rotate makes the full incidents file <path>.1 and says whether path is now
// another file. Of several waiters that find it full, the one that locks this
// very file may rename it, and only while path still names it: otherwise the
// second would push the first one's fresh file over the full one.
func rotate(fd int, path string, full *unix.Stat_t) bool {
	if flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false // another is at it; this row still goes into the full file
	}
	defer func() { _ = flock(fd, unix.LOCK_UN) }()
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Ino != full.Ino || st.Dev != full.Dev {
		return true
	}
	return unix.Rename(path, path+rotatedSuffix) == nil
}
