package main

import (
	"errors"

	"golang.org/x/sys/windows"
)

// classifySystem names what the system itself says.
func classifySystem(err error) *failure {
	var errno windows.Errno
	if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return &failure{exit: exitNoSpace, code: "no_space", hint: hintNoSpace}
	case windows.ERROR_DISK_QUOTA_EXCEEDED:
		return &failure{exit: exitNoSpace, code: "quota_exceeded", hint: hintNoSpace}
	case windows.ERROR_WRITE_PROTECT:
		return &failure{exit: exitNoSpace, code: "read_only_filesystem", hint: hintReadOnly}
	case windows.ERROR_TOO_MANY_OPEN_FILES:
		return &failure{exit: exitResources, code: "too_many_open_files"}
	case windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_INVALID_NAME:
		return &failure{exit: exitUsage, code: "name_too_long", hint: "choose a shorter, plain file name"}
	case windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION:
		return &failure{exit: exitUnavailable, code: "unsupported_filesystem", hint: "'stile doctor DIR' tests what a folder can do"}
	}
	return nil
}
