package proc

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// filesystem is a kind of them. Lists of these need no work at the start of a program, as maps do.
type filesystem struct {
	magic uint32
	name  string
}

// localFS are the filesystems that one kernel alone can have mounted for writing. Not among them, though
// often local: FUSE, whose far end may be anything, and overlay and ecryptfs, which lie on another one.
var localFS = [...]filesystem{
	{unix.EXT4_SUPER_MAGIC, "ext2/3/4"}, // one number for the three
	{unix.XFS_SUPER_MAGIC, "xfs"},
	{unix.BTRFS_SUPER_MAGIC, "btrfs"},
	{unix.F2FS_SUPER_MAGIC, "f2fs"},
	{unix.TMPFS_MAGIC, "tmpfs"},
	{unix.RAMFS_MAGIC, "ramfs"},
	{unix.MSDOS_SUPER_MAGIC, "vfat"},
	{unix.EXFAT_SUPER_MAGIC, "exfat"},
	{unix.NILFS_SUPER_MAGIC, "nilfs2"},
	{unix.REISERFS_SUPER_MAGIC, "reiserfs"},
	{0x2FC12FC1, "zfs"},
	{0xCA451A4E, "bcachefs"},
	{0x3153464A, "jfs"},
	{0x7366746E, "ntfs3"},
	{0x24051905, "ubifs"},
	{0x482B, "hfsplus"},
}

// otherFS are names for messages. Being here decides nothing.
var otherFS = [...]filesystem{
	{unix.FUSE_SUPER_MAGIC, "fuse"},
	{unix.NFS_SUPER_MAGIC, "nfs"},
	{unix.SMB_SUPER_MAGIC, "smb"},
	{unix.SMB2_SUPER_MAGIC, "smb2"},
	{unix.CIFS_SUPER_MAGIC, "cifs"},
	{unix.CEPH_SUPER_MAGIC, "ceph"},
	{unix.AFS_SUPER_MAGIC, "afs"},
	{unix.CODA_SUPER_MAGIC, "coda"},
	{unix.V9FS_MAGIC, "9p"},
	{unix.OCFS2_SUPER_MAGIC, "ocfs2"},
	{unix.OVERLAYFS_SUPER_MAGIC, "overlay"},
	{unix.ECRYPTFS_SUPER_MAGIC, "ecryptfs"},
	{unix.PROC_SUPER_MAGIC, "proc"},
	{0x01161970, "gfs2"},
	{0x0BD00BD0, "lustre"},
	{0x47504653, "gpfs"},
}

// FilesystemLocal reports whether path is on a filesystem known to be this machine's alone, and the
// kind of the filesystem, for people. One not on the list of local ones is not local; FUSE never is.
func FilesystemLocal(path string) (local bool, fstype string, err error) {
	var fs unix.Statfs_t
	for {
		err = unix.Statfs(path, &fs)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return false, "", fmt.Errorf("look at filesystem of %q: %w", path, err)
	}
	local, fstype = kindOf(uint32(fs.Type))
	return local, fstype, nil
}

// kindOf takes 32 bits: the field is signed on some machines and wider on others.
func kindOf(magic uint32) (local bool, name string) {
	if name := nameIn(localFS[:], magic); name != "" {
		return true, name
	}
	if name := nameIn(otherFS[:], magic); name != "" {
		return false, name
	}
	return false, "0x" + strconv.FormatUint(uint64(magic), 16)
}

func nameIn(list []filesystem, magic uint32) string {
	for i := range list {
		if list[i].magic == magic {
			return list[i].name
		}
	}
	return ""
}
