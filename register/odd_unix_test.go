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

func TestSocketsAndDevicesAreRefused(t *testing.T) {
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
		"device": func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "odd") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := make(filepath.Join(dir, name)); err != nil {
				if name == "device" && errors.Is(err, unix.EPERM) {
					t.Skip("only root makes devices")
				}
				t.Fatal(err)
			}
			if err := (&Tree{Links: true}).AddDir(dir); !errors.Is(err, ErrOdd) || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
		})
	}
}
