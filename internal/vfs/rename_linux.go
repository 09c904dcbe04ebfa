//go:build !riscv64 && !loong64

package vfs

import "golang.org/x/sys/unix"

const sysRename = unix.SYS_RENAMEAT
