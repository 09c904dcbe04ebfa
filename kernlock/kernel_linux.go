package kernlock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/proc"
	"golang.org/x/sys/unix"
)

// kernelView is /proc/locks, read once, and what is needed to trust it.
type kernelView struct {
	locks   map[kernelFile]*kernelFacts
	initial bool              // all pids are shown, in our numbers
	mounts  map[uint64]string // mount id -> major:minor, as the kernel writes it
}

// kernelFile is a file as /proc/locks names it.
type kernelFile struct {
	dev string // major:minor, in hex
	ino uint64
}

// lookKernel reads the kernel's lists. A nil view answers "unknown".
func lookKernel() *kernelView {
	locks, err := listLocks(readLocks)
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return &kernelView{
		locks:   locks,
		initial: proc.InInitialPIDNamespace(),
		mounts:  parseMounts(mounts),
	}
}

// pieceSize is what the kernel gives of its list at once: a page, on systems
// with the smallest.
const pieceSize = 4 << 10

// listLocks reads the list of locks. A long one comes in pieces, and the
// kernel counts its way to the next from the beginning: a lock that is let go
// in between hides another, at the seam, that is held all the while. So a
// long list is read again with its seams elsewhere, and what any reading
// shows counts.
func listLocks(read func(first int) (b []byte, pieces int, err error)) (map[kernelFile]*kernelFacts, error) {
	var all map[kernelFile]*kernelFacts
	for _, first := range []int{pieceSize, pieceSize / 2, pieceSize / 4} {
		b, pieces, err := read(first)
		if err != nil {
			return nil, err
		}
		all = mergeLocks(all, parseLocks(b))
		if pieces <= 1 {
			break
		}
	}
	return all, nil
}

// readLocks reads /proc/locks, first bytes in the first piece, and says in
// how many pieces it came.
func readLocks(first int) (b []byte, pieces int, err error) {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	for size := first; ; size = pieceSize {
		b = slices.Grow(b, size)
		n, err := f.Read(b[len(b) : len(b)+size])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, pieces, nil
		}
		if err != nil {
			return nil, 0, err
		}
		pieces++
	}
}

// mergeLocks adds to one reading of the list what another shows.
func mergeLocks(all, more map[kernelFile]*kernelFacts) map[kernelFile]*kernelFacts {
	if all == nil {
		return more
	}
	for file, m := range more {
		a := all[file]
		if a == nil {
			all[file] = m
			continue
		}
		if a.state != KernelHeld {
			a.state, a.shared = m.state, m.shared
		}
		a.waiters = max(a.waiters, m.waiters)
		for _, pid := range m.pids {
			a.addPID(pid)
		}
	}
	return all
}

// addPID notes a holder, once: where one lock was let go between two pieces
// another may be missing, and where one was taken another is there twice.
func (k *kernelFacts) addPID(pid int) {
	if !slices.Contains(k.pids, pid) {
		k.pids = append(k.pids, pid)
	}
}

// parseLocks reads lines such as
//
//	12: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
//	12: -> FLOCK  ADVISORY  WRITE 4712 fe:00:131 0 EOF
//	13: OFDLCK ADVISORY  WRITE -1 fe:00:131 1099511627776 1099511627776
//
// in which an arrow marks one that waits. The third kind is our queue: its
// head waits in flock too and is counted there.
func parseLocks(b []byte) map[kernelFile]*kernelFacts {
	all := map[kernelFile]*kernelFacts{}
	numbered := map[kernelFile][]string{} // of those that wait
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		waits := len(f) > 1 && string(f[1]) == "->"
		if waits {
			f = f[1:]
		}
		if len(f) < 8 {
			continue
		}
		file, ok := parseKernelFile(string(f[5]))
		if !ok {
			continue
		}
		k := all[file]
		if k == nil {
			k = &kernelFacts{state: KernelFree}
			all[file] = k
		}
		switch kind := string(f[1]); {
		case waits && kind == "FLOCK":
			// A list that came in pieces can have one line twice.
			if pid := string(f[4]); pid == "0" || !slices.Contains(numbered[file], pid) {
				numbered[file] = append(numbered[file], pid)
				k.waiters++
			}
		case waits && kind == "OFDLCK" && string(f[6]) == queueOffset:
			k.waiters++ // these have no number to know them by
		case kind == "FLOCK":
			k.state = KernelHeld
			k.shared = string(f[3]) == "READ"
			// 0 is a process that this namespace cannot number.
			if pid, err := strconv.Atoi(string(f[4])); err == nil && pid > 0 {
				k.addPID(pid)
			}
		}
	}
	return all
}

var queueOffset = strconv.FormatInt(1<<40, 10)

func parseKernelFile(s string) (kernelFile, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return kernelFile{}, false
	}
	ino, err := strconv.ParseUint(s[i+1:], 10, 64)
	return kernelFile{dev: s[:i], ino: ino}, err == nil
}

// parseMounts reads the first and third field of mountinfo: the mount's id
// and its device, in decimal there.
func parseMounts(b []byte) map[uint64]string {
	all := map[uint64]string{}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 3 {
			continue
		}
		id, err := strconv.ParseUint(string(f[0]), 10, 64)
		major, minor, ok := strings.Cut(string(f[2]), ":")
		ma, err1 := strconv.ParseUint(major, 10, 32)
		mi, err2 := strconv.ParseUint(minor, 10, 32)
		if err != nil || !ok || err1 != nil || err2 != nil {
			continue
		}
		all[id] = fmt.Sprintf("%02x:%02x", ma, mi)
	}
	return all
}

// facts is what the kernel shows of the lock file at path. "Free" is said
// only where nothing can be hidden: in the initial pid namespace, and where
// the device that stat(2) gives is the one that the list uses (on btrfs and
// overlayfs they differ). A lock that is shown is held, whatever else is
// hidden.
func (v *kernelView) facts(path string) kernelFacts {
	if v == nil {
		return noFacts
	}
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_MNT_ID
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, want, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return noFacts
	}
	dev := fmt.Sprintf("%02x:%02x", st.Dev_major, st.Dev_minor)
	if v.mounts[st.Mnt_id] != dev {
		return noFacts
	}
	k := kernelFacts{state: KernelFree}
	if found := v.locks[kernelFile{dev: dev, ino: st.Ino}]; found != nil {
		k = *found
	}
	k.whole = v.initial
	if !v.initial {
		if k.state == KernelFree {
			k.state = KernelUnknown
		}
		k.waiters = -1
	}
	return k
}

// ownNamespace says whether the pid in r counts in our pid namespace. A
// record that does not say is taken to be from the initial one.
func ownNamespace(r *Record) bool {
	self := proc.Self()
	if r.Host != self.Host {
		return false
	}
	if r.Proc == nil || r.Proc.PidNS == 0 {
		return proc.InInitialPIDNamespace()
	}
	return self.Proc != nil && r.Proc.PidNS == self.Proc.PidNS
}

// processName is what a pid is called, safe to show.
func processName(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return display.Text(strings.TrimSuffix(string(b), "\n"))
}

// inheritors are the processes with a descriptor of the lock file at path
// that is locked by flock(2).
func inheritors(path string) []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !holdsDescriptor(pid, path) {
			continue
		}
		found = append(found, Process{PID: pid, Name: processName(pid)})
	}
	return found
}

func holdsDescriptor(pid int, path string) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if to, err := os.Readlink(dir + "/fd/" + fd.Name()); err != nil || to != path {
			continue
		}
		info, err := os.ReadFile(dir + "/fdinfo/" + fd.Name())
		if err == nil && bytes.Contains(info, []byte("FLOCK")) {
			return true
		}
	}
	return false
}
