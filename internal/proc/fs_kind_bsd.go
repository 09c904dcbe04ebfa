//go:build darwin || freebsd

package proc

import "golang.org/x/sys/unix"

func fsKind(fs *unix.Statfs_t) (name []byte, flags uint64) {
	return fs.Fstypename[:], uint64(fs.Flags)
}
