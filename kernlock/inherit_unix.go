//go:build unix && !aix && !solaris

package kernlock

import (
	"errors"
	"fmt"
	"os"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/unix"
)

// Inherit makes every process that is started from now on inherit the lock,
// so that it outlives this process for as long as one of them runs. It is for
// programs that exist to run another; a program that starts processes for
// other reasons too would hand the lock to those as well.
//
// Release then lets go by closing alone: LOCK_UN would free the lock under
// those that inherited it. It writes released_at only when nothing holds the
// lock still, and otherwise returns a *StillHeldError.
func (l *Lock) Inherit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return l.lost("it was released")
	}
	if _, err := unix.FcntlInt(uintptr(l.f.fd), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("inherit lock %s: %w", display.Text(l.h.names.target), err)
	}
	l.inherited = true
	return nil
}

// Descriptor is the lock's file descriptor, for a program that hands it on
// by itself. It is valid until Release.
func (l *Lock) Descriptor() uintptr { return uintptr(l.f.fd) }

// releaseInherited closes our description of an inherited lock, and then
// finds out whether it was the last one: by taking the lock once more.
func (l *Lock) releaseInherited() error {
	n := &l.h.names
	queued := l.f.queueable && l.f.queued()
	again, openErr := openLockFile(n, &l.h.opts)
	if err := l.f.close(); err != nil {
		err = l.h.fail(err)
		if openErr == nil {
			err = errors.Join(err, again.close())
		}
		return err
	}
	if openErr != nil {
		return nil // we have let go; what is left is advisory
	}
	defer func() { _ = again.close() }()
	again.last = l.f.last

	// When others queue, the next holder is on its way in: it would only be
	// held up here, and it writes a record of its own.
	if !queued {
		if free, err := again.try(false); err == nil && free {
			if same, err := again.at(n.lock); err == nil && same && l.signed {
				l.signOff(again)
			}
			_ = again.unlock()
			return nil
		}
	}
	return l.stillHeld()
}

// stillHeld says who holds the lock that we let go of, if that is what was
// started under it. A new holder is no error.
func (l *Lock) stillHeld() error {
	n := &l.h.names
	facts := lookKernel().facts(n.lock)
	// The kernel shows a lock under the pid that took it: ours, as long as a
	// copy of our description lives.
	ours := facts.state == KernelUnknown
	for _, pid := range facts.pids {
		ours = ours || pid == os.Getpid()
	}
	if !ours {
		return nil
	}
	var left []Process
	for _, p := range inheritors(n.lock) {
		if p.PID != os.Getpid() {
			left = append(left, p)
		}
	}
	if facts.state == KernelUnknown && len(left) == 0 {
		return nil
	}
	return &StillHeldError{Target: n.target, Processes: left}
}
