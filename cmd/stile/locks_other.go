//go:build (!unix && !windows) || aix || solaris

package main

import (
	"errors"
	"io"
	"os"
)

func tryLock(*os.File, string) (bool, error) { return false, errors.ErrUnsupported }

func tryFolderSync(string) (bool, string) { return false, "not tested on this system" }

func openShared(name string) (io.ReadCloser, error) { return os.Open(name) }
