package vfs

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of a lock file's cycle that take a path. Package unix copies each path to the heap, seven in
// a cycle; here it is copied to the stack.

// cpath is a path as the kernel takes it, ended by a zero byte.
type cpath [512]byte

// of returns the path in c, or on the heap when it is longer.
func (c *cpath) of(name string) (*byte, error) {
	if len(name) >= len(c) {
		return unix.BytePtrFromString(name)
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, unix.EINVAL
	}
	copy(c[:], name)
	return &c[0], nil
}

// here is the folder that relative paths start from.
var here = unix.AT_FDCWD

// The loops are those of again, written out: only in the argument list of the call itself does the
// compiler keep a pointer that was made a number in its place.

func openAt(name string, flags int, perm uint32) (fd int, err error) {
	var c cpath
	p, err := c.of(name)
	if err != nil {
		return -1, err
	}
	for {
		fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(p)),
			uintptr(flags|unix.O_LARGEFILE), uintptr(perm), 0, 0)
		if e == 0 {
			return int(fd), nil
		}
		if e != unix.EINTR {
			return -1, e
		}
	}
}

func linkAt(oldname, newname string) error { return twoPaths(unix.SYS_LINKAT, oldname, newname) }

func renameAt(oldname, newname string) error { return twoPaths(sysRename, oldname, newname) }

// twoPaths makes a call that takes folder and path twice, and then flags: none.
func twoPaths(call uintptr, oldname, newname string) error {
	var c, d cpath
	from, err := c.of(oldname)
	if err != nil {
		return err
	}
	to, err := d.of(newname)
	if err != nil {
		return err
	}
	for {
		_, _, e := unix.Syscall6(call, uintptr(here), uintptr(unsafe.Pointer(from)),
			uintptr(here), uintptr(unsafe.Pointer(to)), 0, 0)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}

func unlinkAt(name string) error {
	var c cpath
	p, err := c.of(name)
	if err != nil {
		return err
	}
	for {
		_, _, e := unix.Syscall(unix.SYS_UNLINKAT, uintptr(here), uintptr(unsafe.Pointer(p)), 0)
		if e == 0 {
			return nil
		}
		if e != unix.EINTR {
			return e
		}
	}
}
