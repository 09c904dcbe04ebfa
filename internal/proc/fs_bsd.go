//go:build darwin || freebsd || openbsd

package proc

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// localFS are the filesystems that one kernel alone can have mounted for writing.
var localFS = map[string]bool{
	"apfs": true, "hfs": true, // darwin
	"ufs": true, "zfs": true, "msdosfs": true, // freebsd
	"ffs": true, "mfs": true, // openbsd
	"tmpfs": true, "msdos": true, "exfat": true,
}

// FilesystemLocal reports whether path is on a filesystem known to be this machine's alone, and the
// kind of the filesystem, for people. One not on the list of local ones is not local; FUSE never is.
func FilesystemLocal(path string) (local bool, fstype string, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return false, "", fmt.Errorf("look at filesystem of %q: %w", path, err)
	}
	name, flags := fsKind(&fs)
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	fstype = string(name)
	return localFS[fstype] && flags&unix.MNT_LOCAL != 0, fstype, nil
}
