package proc

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// localFS are the filesystems that one system alone can have mounted for writing.
var localFS = map[string]bool{"NTFS": true, "ReFS": true, "exFAT": true, "FAT32": true, "FAT": true}

// FilesystemLocal reports whether path is on a volume known to be this machine's alone, and the kind of
// its filesystem, for people. One not on the list of local ones is not local.
func FilesystemLocal(path string) (local bool, fstype string, err error) {
	fail := func(err error) (bool, string, error) {
		return false, "", fmt.Errorf("look at filesystem of %q: %w", path, err)
	}
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fail(err)
	}
	// Of a path that is not there the system would name the volume all the same.
	if _, err := windows.GetFileAttributes(p); err != nil {
		return fail(err)
	}
	root := make([]uint16, windows.MAX_LONG_PATH)
	if err := windows.GetVolumePathName(p, &root[0], uint32(len(root))); err != nil {
		return fail(err)
	}
	kind := make([]uint16, windows.MAX_PATH+1)
	err = windows.GetVolumeInformation(&root[0], nil, 0, nil, nil, nil, &kind[0], uint32(len(kind)))
	if err != nil {
		return fail(err)
	}
	fstype = windows.UTF16ToString(kind)
	switch windows.GetDriveType(&root[0]) {
	case windows.DRIVE_FIXED, windows.DRIVE_REMOVABLE, windows.DRIVE_RAMDISK:
		return localFS[fstype], fstype, nil
	}
	return false, fstype, nil
}
