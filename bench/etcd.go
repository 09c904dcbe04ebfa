package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// buildEtcd builds the peer that is a module of its own.
func (b *bench) buildEtcd(tmp string) {
	if b.etcd = b.goBuild(tmp, "etcd", filepath.Join("peers", "etcd"), "."); b.etcd != "" {
		b.book.Machine.Versions = append(b.book.Machine.Versions, firstLine(b.etcd, "version"))
	}
}

// withEtcd is the bench with a server whose data lies in b's folder, for as long as work takes. Without a server work
// runs all the same: the contestant is named as missing.
func (b *bench) withEtcd(work func(*bench)) {
	there := *b
	if b.etcd != "" {
		stop, err := there.startEtcd()
		if err != nil {
			b.book.missing("etcd: %v", err)
		} else {
			defer stop()
		}
	}
	work(&there)
	b.seq = there.seq
}

func (b *bench) startEtcd() (stop func(), err error) {
	data, err := os.MkdirTemp(b.dir, "etcd-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.etcd, "server", data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stderr = &said
	in, ierr := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if err := errors.Join(ierr, oerr, cmd.Start()); err != nil {
		return nil, err
	}
	stop = func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		_ = os.RemoveAll(data)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		first, _, _ := strings.Cut(said.String(), "\n")
		return nil, errors.New("the server does not start: " + first)
	}
	b.etcdAt = strings.TrimSpace(line)
	return stop, nil
}
