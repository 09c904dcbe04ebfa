//go:build riscv64 || loong64

package vfs

import "golang.org/x/sys/unix"

// sysRename: these machines never had renameat. The flags, its fifth argument, are always zero here.
const sysRename = unix.SYS_RENAMEAT2
