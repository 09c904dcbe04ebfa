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
	shows := ProcShowsUs()
	var noPID, noTime bool
	// Right in any /proc: "self" leads to us, and the link names the namespace, not the viewer's.
	me.PidNS, noPID = namespace("pid")
	me.TimeNS, noTime = namespace("time")
	me.onePIDSpace = noPID && shows
	me.oneClock = noTime && shows
	me.BootID = bootID()
	me.initial = shows && me.PidNS == initialPIDNS
	if start, ok := StartTime(os.Getpid()); ok {
		me.StartTime = start
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
// /proc is a real procfs, and it shows our own pid namespace.
func ProcShowsUs() bool {
	if !procIsReal() {
		return false
	}
	pid := strconv.Itoa(os.Getpid())
	if self, err := os.Readlink("/proc/self"); err != nil || self != pid {
		return false
	}
	// The numbers can agree by chance in the /proc of an outer namespace. There the status file lists
	// one number for each namespace down to ours.
	var buf [4096]byte
	n, err := readProc("/proc/self/status", buf[:])
	return err == nil && nsPIDsAgree(buf[:n], pid)
}

// nsPIDsAgree reports that a status file lists pid as our only number, or lists none, as kernels before
// 4.1 do.
func nsPIDsAgree(status []byte, pid string) bool {
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
