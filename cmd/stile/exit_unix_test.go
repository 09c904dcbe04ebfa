//go:build unix

package main

import "syscall"

func systemErrors(wrap func(error) error) (tests []struct {
	err  error
	exit int
	code string
}) {
	for _, e := range []struct {
		err  error
		exit int
		code string
	}{
		{syscall.ENOENT, 66, "no_such_folder"},
		{syscall.ENOTDIR, 66, "no_such_folder"},
		{syscall.EACCES, 77, "permission_denied"},
		{syscall.EPERM, 77, "permission_denied"},
		{syscall.ENOSPC, 73, "no_space"},
		{syscall.EDQUOT, 73, "quota_exceeded"},
		{syscall.EROFS, 73, "read_only_filesystem"},
		{syscall.EMFILE, 71, "too_many_open_files"},
		{syscall.ENFILE, 71, "system_file_table_full"},
		{syscall.ENOLCK, 71, "no_locks_available"},
		{syscall.ENOMEM, 71, "out_of_resources"},
		{syscall.EAGAIN, 71, "out_of_resources"},
		{syscall.ENAMETOOLONG, 64, "name_too_long"},
		{syscall.ELOOP, 65, "bad_lock_file"},
		{syscall.EISDIR, 65, "bad_lock_file"},
		{syscall.ENOSYS, 69, "unsupported_filesystem"},
		{syscall.EOPNOTSUPP, 69, "unsupported_filesystem"},
		{syscall.ENOTSUP, 69, "unsupported_filesystem"},
		{syscall.EIO, 74, "io_error"},
		{syscall.ESTALE, 74, "io_error"},
	} {
		e.err = wrap(e.err)
		tests = append(tests, e)
	}
	return tests
}
