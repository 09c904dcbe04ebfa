//go:build unix && !linux && !aix && !solaris

package main

import (
	"errors"
	"os"
)

func setOFD(*os.File) error { return errors.ErrUnsupported }
