//go:build unix

package register

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketsAndPipesAreRefused(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"fifo": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"socket": func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "odd") //nolint:usetesting // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := make(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := (&Tree{Links: true}).AddDir(dir); !errors.Is(err, ErrOdd) || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
		})
	}
}

func TestDevicesAreRefused(t *testing.T) {
	if err := (&Tree{}).AddAs("null", "/dev/null"); !errors.Is(err, ErrOdd) || !strings.Contains(err.Error(), "null") {
		t.Error(err)
	}
}
