package proc

import "golang.org/x/sys/unix"

func fsKind(fs *unix.Statfs_t) (name []byte, flags uint64) {
	return fs.F_fstypename[:], uint64(fs.F_flags)
}
