package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	journaled   = "ext4 with a journal"
	journalless = "ext4 without a journal"
	ownMounts   = "STILE_BENCH_OWN_MOUNTS"
	imageBytes  = 3 << 30
)

// inOwnMounts runs this program again, where it may, with mounts that nobody else sees: whatever becomes of the bench,
// they are gone with its last process. It says false when the program is to go on as it is.
func inOwnMounts() (code int, ran bool) {
	if os.Geteuid() != 0 || os.Getenv(ownMounts) != "" {
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	if cmd.Start() != nil { // it is not allowed here
		signal.Stop(stopped)
		return 0, false
	}
	go func() {
		for s := range stopped {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	return max(cmd.ProcessState.ExitCode(), 0), true
}

// mountOther makes an image with the kind of ext4 that the folder does not lie on, and mounts it. What the kinds are is in
// the tables' names.
func (b *bench) mountOther(tmp string) (unmount func()) {
	kind, options := journaled, "has_journal"
	if strings.HasPrefix(b.book.Machine.Filesystem, "ext4, journaled") {
		kind, options = journalless, "^has_journal"
	}
	unmount = func() {}
	if os.Getenv(ownMounts) == "" {
		b.book.missing("%s: a mounted image needs root and mounts of its own; run as root, or with -dir on such a file system", kind)
		return unmount
	}
	image, at := filepath.Join(tmp, "image"), filepath.Join(tmp, "other")
	f, err := os.Create(image)
	if err == nil {
		err = f.Truncate(imageBytes)
		_ = f.Close()
	}
	if err == nil {
		err = os.Mkdir(at, 0o700)
	}
	for _, argv := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-O", options, image}, {"mount", "-o", "loop", image, at},
	} {
		if err == nil {
			var out []byte
			if out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				err = fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(string(out)))
			}
		}
	}
	if err != nil {
		b.book.missing("%s: %v", kind, err)
		return unmount
	}
	b.other = place{kind, at}
	b.book.Machine.Other = "an image with " + kind + " on it"
	return func() { _ = exec.Command("umount", "-l", at).Run() }
}
