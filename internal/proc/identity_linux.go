package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// initialPIDNS is the inode number of the first pid namespace, fixed in the kernel's source.
const initialPIDNS = 0xEFFFFFFC

// ownIdentity reads this process from /proc. Each member that cannot be had is absent by itself.
func ownIdentity() identity {
	me := identity{ticksFromBoot: true}
	if !procIsReal() {
		return me
	}
	var noPID, noTime bool
	// Right in any /proc: "self" leads to us, and the link names the namespace, not the viewer's.
	me.PidNS, noPID = namespace("pid")
	me.TimeNS, noTime = namespace("time")
	var shows bool
	if me.PidNS == initialPIDNS {
		// Nothing lies outside the initial namespace, so no other /proc has a number for us; and the
		// status file, which every short-lived program would read here, costs as much as all the rest.
		shows = selfLink() == strconv.Itoa(os.Getpid())
	} else {
		shows = procShowsUs()
	}
	me.onePIDSpace = noPID && shows
	me.oneClock = noTime && shows
	me.BootID = bootID()
	me.initial = shows && me.PidNS == initialPIDNS
	if shows {
		if s, ok := readStat(os.Getpid()); ok {
			me.StartTime = s.start
		}
	}
	return me
}

// namespace returns the inode number of one of our namespaces. none says that the kernel has no
// namespaces of this kind, which is more than not being able to read it.
func namespace(kind string) (inode uint64, none bool) {
	link, err := os.Readlink("/proc/self/ns/" + kind)
	if errors.Is(err, unix.ENOENT) {
		_, err := os.Lstat("/proc/self/ns")
		return 0, err == nil
	}
	if err != nil {
		return 0, false
	}
	return parseNamespace(link, kind), false
}

// parseNamespace reads "pid:[4026531836]"; 0 when it is anything else.
func parseNamespace(link, kind string) uint64 {
	s, ok := strings.CutPrefix(link, kind+":[")
	s, closed := strings.CutSuffix(s, "]")
	n, err := strconv.ParseUint(s, 10, 64)
	if !ok || !closed || err != nil {
		return 0
	}
	return n
}

func bootID() string {
	var buf [64]byte
	n, err := readProc("/proc/sys/kernel/random/boot_id", buf[:])
	if err != nil {
		return ""
	}
	id := string(bytes.TrimSpace(buf[:n]))
	if !wholeBootID(id) {
		return ""
	}
	return id
}

func procIsReal() bool {
	var fs unix.Statfs_t
	return unix.Statfs("/proc", &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}

// ProcShowsUs reports whether /proc/PID is, for every pid, the process that a probe of that pid reaches:
// /proc is a real procfs (readProc sees to that), and it shows our own pid namespace.
func ProcShowsUs() bool {
	if own().initial {
		return selfLink() == strconv.Itoa(int(ownPID)) // see ownIdentity
	}
	return procShowsUs()
}

func procShowsUs() bool {
	var buf [4096]byte
	n, err := readProc("/proc/self/status", buf[:])
	return err == nil && showsPID(selfLink(), buf[:n], strconv.Itoa(os.Getpid()))
}

// selfLink is our pid as /proc shows it, or "".
func selfLink() string {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return ""
	}
	return self
}

// showsPID reports that a /proc whose self is the given one, with this status file, knows us as pid and by
// no other number. The /proc of an outer namespace can have the same number for us by chance; there the
// status file lists one for each namespace down to ours. Kernels before 4.1 list none.
func showsPID(self string, status []byte, pid string) bool {
	if self != pid {
		return false
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			f := bytes.Fields(rest)
			return len(f) == 1 && string(f[0]) == pid
		}
	}
	return true
}

// lastHost remembers the host name as a string, which is what costs.
var lastHost atomic.Pointer[string]

// hostName asks the kernel each time: the name may change while we run.
func hostName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	name := u.Nodename[:]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	if last := lastHost.Load(); last != nil && *last == string(name) {
		return *last
	}
	s := string(name)
	lastHost.Store(&s)
	return s
}
