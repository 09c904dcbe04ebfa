//go:build !windows && (!unix || aix || solaris)

package kernlock

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/stile-lock/stile/internal/display"
)

// lockFile has no form here: the system has no lock that its kernel frees
// when the holder dies and that two handles of one process contend for.
type lockFile struct {
	queueable, bare bool
	last            []byte
}

func openLockFile(n *names, _ *Options) (*lockFile, error) {
	return nil, fmt.Errorf("lock file %s: %w", display.Text(n.lock), ErrUnsupported)
}

func (*lockFile) try(bool) (bool, error)                { return false, ErrUnsupported }
func (*lockFile) unlock() error                         { return ErrUnsupported }
func (*lockFile) close() error                          { return nil }
func (*lockFile) adopt(*names, bool)                    {}
func (*lockFile) at(string) (bool, error)               { return false, ErrUnsupported }
func (*lockFile) holder(*names) ([]byte, error)         { return nil, ErrUnsupported }
func (*lockFile) sample(*names) []byte                  { return nil }
func (l *Lock) sign()                                   {}
func (l *Lock) signOff(*lockFile)                       {}
func (l *Lock) releaseInherited() error                 { return nil }
func appendIncident(string, *lockFile, *Incident) error { return ErrUnsupported }
func openPlain(string) (*os.File, error)                { return nil, fs.ErrNotExist }

func readHolder(n *names) ([]byte, error) {
	b, err := os.ReadFile(n.lock)
	return b[:min(len(b), maxRecord)], err
}

// Inherit is not offered here.
func (l *Lock) Inherit() error { return ErrUnsupported }

// Descriptor has no meaning here.
func (l *Lock) Descriptor() uintptr { return ^uintptr(0) }
