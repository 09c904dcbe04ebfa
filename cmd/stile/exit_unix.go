//go:build unix

package main

import (
	"errors"
	"syscall"
)

// classifySystem names what the system itself says.
func classifySystem(err error) *failure {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		return &failure{exit: exitNoFolder, code: "no_such_folder", hint: hintNoFolder}
	case syscall.EACCES, syscall.EPERM:
		return &failure{exit: exitPermission, code: "permission_denied", hint: hintPermission}
	case syscall.ENOSPC:
		return &failure{exit: exitNoSpace, code: "no_space", hint: hintNoSpace}
	case syscall.EDQUOT:
		return &failure{exit: exitNoSpace, code: "quota_exceeded", hint: hintNoSpace}
	case syscall.EROFS:
		return &failure{exit: exitNoSpace, code: "read_only_filesystem", hint: hintReadOnly}
	case syscall.EMFILE:
		return &failure{exit: exitResources, code: "too_many_open_files", hint: "this process may open no more files: see 'ulimit -n'"}
	case syscall.ENFILE:
		return &failure{exit: exitResources, code: "system_file_table_full", hint: "the whole system is out of open files"}
	case syscall.ENOLCK:
		return &failure{exit: exitResources, code: "no_locks_available", hint: "the system, or the file server, is out of locks"}
	case syscall.ENOMEM, syscall.EAGAIN:
		return &failure{exit: exitResources, code: "out_of_resources", hint: "out of memory or processes: see 'ulimit -u'"}
	case syscall.ENAMETOOLONG:
		return &failure{exit: exitUsage, code: "name_too_long", hint: "choose a shorter file name: the lock's own name is longer still"}
	case syscall.ELOOP, syscall.EISDIR:
		return &failure{exit: exitBadFile, code: "bad_lock_file", hint: "links that lead nowhere, and folders, cannot be lock files"}
	case syscall.ENOSYS, syscall.EOPNOTSUPP:
		return unsupported()
	}
	if errno == syscall.ENOTSUP { // on some systems another number than EOPNOTSUPP
		return unsupported()
	}
	return nil
}

func unsupported() *failure {
	return &failure{exit: exitUnavailable, code: "unsupported_filesystem", hint: "'stile doctor DIR' tests what a folder can do"}
}
