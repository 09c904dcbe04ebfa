package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A gate stands between a process and the kernel: every call that changes a file waits until the test has
// said what becomes of it. So the tool as it is shipped, without a seam, is stopped, killed or told of an
// error at any step. It is a seccomp filter whose listener the test has.

// call is a call that waits at a gate.
type call struct {
	nr   int32
	pid  int
	name string // the last part of the path that it is about
	to   string // of a link or rename, the new name's last part
	id   uint64
}

func (c call) String() string {
	s := map[int32]string{
		unix.SYS_OPENAT: "create", unix.SYS_WRITE: "write", unix.SYS_FSYNC: "fsync", unix.SYS_MKDIRAT: "mkdir",
		unix.SYS_LINKAT: "link", unix.SYS_UNLINKAT: "unlink", unix.SYS_RENAMEAT: "rename",
	}[c.nr] + " " + shape(c.name)
	if c.to != "" {
		s += " to " + shape(c.to)
	}
	return s
}

// shape is a name without what is another in each run.
func shape(name string) string {
	for _, part := range []string{".pending-", ".claim-", ".broken-", ".tmp-"} {
		if head, _, ok := strings.Cut(name, part); ok {
			return head + strings.TrimSuffix(part, "-")
		}
	}
	return name
}

// answer is what becomes of a call.
type answer int

const (
	pass answer = iota
	hold        // until let says so
	kill        // the process, before the call is made
	refuse
)

// gated is a process behind a gate. decide is asked for each of its calls, by one goroutine.
type gated struct {
	*running
	listener int
	errno    unix.Errno // for refuse
	held     chan call
	done     chan struct{}
}

// startGated starts stile behind a gate.
func startGated(t *testing.T, dir string, decide func(*gated, call) answer, args ...string) *gated {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	r := startWith(t, dir, func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{theirs} }, "helper", append([]string{"filtered", "0", "gate", "stile"}, args...)...)
	r.alone = true
	_ = theirs.Close()
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	_ = ours.Close()
	if err != nil || n == 0 {
		t.Skipf("no seccomp listener to be had here: %v; %s", err, r.stderr())
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	g := &gated{running: r, listener: fds[0], held: make(chan call, 16), done: make(chan struct{})}
	go g.serve(decide)
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-g.done
		_ = unix.Close(g.listener)
	})
	return g
}

// notif and response are the kernel's structures.
type (
	notif struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		error int32
		flags uint32
	}
)

func (g *gated) serve(decide func(*gated, call) answer) {
	defer close(g.done)
	for {
		fds := []unix.PollFd{{Fd: int32(g.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return // nobody is behind the gate any more
		}
		var n notif
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(g.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			continue // killed meanwhile, or interrupted
		}
		c := g.about(&n)
		switch decide(g, c) {
		case pass:
			g.let(c)
		case refuse:
			g.respond(response{id: c.id, error: -int32(g.errno)})
		case kill:
			_ = g.cmd.Process.Kill()
		case hold:
			g.held <- c
		}
	}
}

// let lets a call pass.
func (g *gated) let(c call) {
	g.respond(response{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (g *gated) respond(r response) {
	for { // a signal to this process must not keep the other for good
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(g.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
		if e != unix.EINTR {
			return // or it has been killed
		}
	}
}

// stopped waits until a call is held.
func (g *gated) stopped() call {
	g.t.Helper()
	select {
	case c := <-g.held:
		return c
	case <-g.done:
		g.t.Fatalf("it ended without coming to the call; stderr: %s", g.stderr())
		return call{}
	}
}

func (g *gated) about(n *notif) call {
	c := call{nr: n.nr, pid: int(n.pid), id: n.id}
	switch n.nr {
	case unix.SYS_WRITE, unix.SYS_FSYNC:
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0]))
		if err == nil {
			c.name = filepath.Base(path)
		}
	case unix.SYS_RENAMEAT, unix.SYS_LINKAT:
		c.name, c.to = g.text(n, 1), g.text(n, 3)
	default:
		c.name = g.text(n, 1)
	}
	return c
}

// text reads a path's last part from the process.
func (g *gated) text(n *notif, arg int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 512)
	k, _ := f.ReadAt(b, int64(n.args[arg]))
	b, _, _ = bytes.Cut(b[:k], []byte{0})
	return filepath.Base(string(b))
}

// filtered ERRNO gate|plain CMD ARGS…: runs CMD with link() failing with ERRNO, unless that is 0, and
// behind a gate, whose listener it sends over descriptor 3.
func filtered(args []string) {
	errno, err := strconv.Atoi(args[0])
	must(err)
	path, err := exec.LookPath(args[2])
	must(err)
	runtime.LockOSThread() // the filter is this thread's, and what it becomes
	must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	gate := args[1] == "gate"
	program := filter(errno, gate)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var flags uintptr
	if gate {
		// No signal but a deadly one takes a call away from the test.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if e != 0 {
		must(e)
	}
	if gate {
		must(unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0))
		must(unix.Close(3))
	}
	must(syscall.Exec(path, args[2:], os.Environ()))
}

// filter is the program that the kernel runs for each call.
func filter(errno int, gate bool) []unix.SockFilter {
	const (
		nr    = 0 // where in the call's description
		arg0  = 16
		arg2  = 32
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		more  = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
		bit   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	p := []unix.SockFilter{{Code: load, K: nr}}
	if errno != 0 {
		p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_LINKAT, Jf: 1}, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	if gate {
		stop := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF}
		for _, n := range []uint32{unix.SYS_LINKAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_MKDIRAT, unix.SYS_FSYNC} {
			p = append(p, unix.SockFilter{Code: equal, K: n, Jf: 1}, stop)
		}
		p = append(p, // a write to a file: not to a standard stream, nor one of 8 bytes, which wakes a poller
			unix.SockFilter{Code: equal, K: unix.SYS_WRITE, Jf: 5},
			unix.SockFilter{Code: load, K: arg0}, unix.SockFilter{Code: more, K: 2, Jf: 5},
			unix.SockFilter{Code: load, K: arg2}, unix.SockFilter{Code: more, K: 8, Jf: 3}, stop,
			// the making of a file
			unix.SockFilter{Code: equal, K: unix.SYS_OPENAT, Jf: 3},
			unix.SockFilter{Code: load, K: arg2}, unix.SockFilter{Code: bit, K: unix.O_CREAT, Jf: 1}, stop)
	}
	return append(p, unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
}
