//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vfs

import "syscall"

func fillSys(info *Info, sys any) {
	if st, ok := sys.(*syscall.Stat_t); ok {
		info.Dev, info.Ino = uint64(st.Dev), uint64(st.Ino)
		info.UID, info.GID = int(st.Uid), int(st.Gid)
	}
}
