package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is the part of /proc/PID/stat that we use.
type stat struct {
	state byte
	ppid  int
	start uint64
}

// parseStat reads one stat file of the process pid. The second field, the command name, is whatever the
// process chose, spaces, parentheses and newlines included; nothing after it holds a parenthesis, so
// the last one ends it. A file cut short is no evidence.
func parseStat(b []byte, pid int) (stat, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open {
		return stat{}, false
	}
	if n, err := strconv.Atoi(string(b[:open-1])); err != nil || n != pid || b[open-1] != ' ' {
		return stat{}, false
	}
	const first, ppid, start = 3, 4, 22 // field numbers in proc(5); first follows the name
	f := bytes.Fields(b[end+1:])
	// One field more than we need, so that the last one read is known to be whole.
	if len(f) < start-first+2 || len(f[0]) != 1 {
		return stat{}, false
	}
	s := stat{state: f[0][0]}
	var err error
	if s.ppid, err = strconv.Atoi(string(f[ppid-first])); err != nil {
		return stat{}, false
	}
	if s.start, err = strconv.ParseUint(string(f[start-first]), 10, 64); err != nil {
		return stat{}, false
	}
	return s, true
}

// readStat reads the stat file of pid. It is for callers that know that /proc shows our own namespace.
func readStat(pid int) (stat, bool) {
	var buf [1024]byte
	n, err := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return stat{}, false
	}
	return parseStat(buf[:n], pid)
}

// readProc fills buf from a file of /proc. It fails on a file of any other filesystem: container tools
// cover single files of /proc with their own.
func readProc(path string, buf []byte) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return 0, err
	}
	if fs.Type != unix.PROC_SUPER_MAGIC {
		return 0, unix.ENOTSUP
	}
	n := 0
	for n < len(buf) {
		m, err := retry(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil {
			return 0, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// StartTime returns when the process pid of our own namespace began, in the unit of ID.StartTime; false
// when that cannot be seen, which never means that there is no such process.
func StartTime(pid int) (ticks uint64, ok bool) {
	s, ok := look(pid)
	return s.start, ok
}

// look reads what /proc shows of pid, provided that it shows our own namespace: in another one the
// number belongs to another process.
func look(pid int) (sighting, bool) {
	if pid < 1 || !ProcShowsUs() {
		return sighting{}, false
	}
	s, ok := readStat(pid)
	return sighting{start: s.start, zombie: s.state == 'Z'}, ok
}

// alone reports that pid has no task but its first. A process whose first thread has exited looks like a
// zombie while its other threads run on, and they may be in the middle of a write.
func alone(pid int) bool {
	own := strconv.Itoa(pid)
	names, err := readNames("/proc/" + own + "/task")
	return err == nil && len(names) == 1 && names[0] == own
}

func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// IsAncestor reports whether pid is the parent of this process, or the parent's parent, and so on. False
// when it cannot be known. A process is not its own ancestor.
func IsAncestor(pid int) bool {
	if pid < 1 || !ProcShowsUs() {
		return false
	}
	at := os.Getpid()
	child, ok := readStat(at)
	// Parents end and their pids go to others while we climb. No ancestor is younger than its
	// descendant, so a younger one ends the climb; the bound is for a chain that such changes bend.
	for range 10_000 {
		if !ok || child.ppid < 1 || child.ppid == at {
			return false
		}
		at = child.ppid
		parent, seen := readStat(at)
		if seen && parent.start > child.start {
			return false
		}
		if at == pid {
			return true
		}
		child, ok = parent, seen
	}
	return false
}
