package proc

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStatFileOfAnyCommandName(t *testing.T) {
	const tail = " S 41 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 31337 4096 5\n"
	for _, name := range []string{"sh", "a b", "a) R 9 (b", ")", "((", "a\nb", "", "12 (x) S 1"} {
		got, ok := parseStat([]byte("42 ("+name+")"+tail), 42)
		if want := (stat{'S', 41, 31337}); !ok || got != want {
			t.Errorf("name %q: %+v %v", name, got, ok)
		}
	}
	whole := "42 (sh)" + tail
	for _, bad := range []string{"", "42", "42 (sh", "42 )sh(" + tail, "(sh)" + tail, "43 (sh)" + tail, "x (sh)" + tail,
		"42(sh)" + tail, "42 (sh) SS" + tail[2:], "42 (sh) S x" + tail[5:], whole[:strings.Index(whole, "31337")+3],
		strings.Replace(whole, "31337", "-7", 1), strings.Replace(whole, "31337", "99999999999999999999", 1)} {
		if got, ok := parseStat([]byte(bad), 42); ok {
			t.Errorf("%q gives %+v", bad, got)
		}
	}
	// And a real one: the name of a thread is whatever it asks for.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := os.ReadFile("/proc/thread-self/comm")
	if err != nil {
		t.Skip("needs /proc/thread-self: ", err)
	}
	set := func(s string) { // no error to check: a name that does not stick fails below
		p, _ := unix.BytePtrFromString(s)
		_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(ptr(p)), 0)
	}
	set("a) Z 1\n(b c")
	defer set(strings.TrimSpace(string(old)))
	raw, err := os.ReadFile("/proc/thread-self/stat")
	if err != nil || !strings.Contains(string(raw), "(a) Z 1\n(b c)") {
		t.Fatalf("name did not stick: %q, %v", raw, err)
	}
	if s, ok := parseStat(raw, unix.Gettid()); !ok || s.state != 'R' || s.ppid != os.Getppid() {
		t.Errorf("%q gives %+v %v", raw, s, ok)
	}
}

func TestStatusOfAnOuterNamespaceIsNoticed(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nPid:\t7\nNSpid:\t7\nThreads:\t1\n": true,
		"Name:\tx\nPid:\t7\nNSpid:\t7\t7\n":           false, // one number by chance, two namespaces
		"Name:\tx\nPid:\t7\nNSpid:\t7\t1\n":           false,
		"Name:\tx\nPid:\t7\nNSpid:\t8\n":              false,
		"Name:\tx\nPid:\t7\nNSpid:\n":                 false,
		"Name:\tx\nPid:\t7\n":                         true, // an old kernel
	} {
		if got := showsPID("7", []byte(status), "7"); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}

func TestSelfOfAnOldOuterProcIsNoticed(t *testing.T) {
	if showsPID("9", []byte("Pid:\t9\n"), "7") { // a kernel that lists no numbers
		t.Error("another number for us went unnoticed")
	}
}

func TestClimbStopsWhereThePidWentToAnother(t *testing.T) {
	read := func(family map[int]stat) func(int) (stat, bool) {
		return func(pid int) (stat, bool) { s, ok := family[pid]; return s, ok }
	}
	for _, tt := range []struct {
		name   string
		family map[int]stat
		to     int
		want   bool
	}{
		{"parent", map[int]stat{50: {ppid: 40, start: 9}, 40: {ppid: 1, start: 8}}, 40, true},
		{"same tick", map[int]stat{50: {ppid: 40, start: 9}, 40: {ppid: 1, start: 9}}, 40, true},
		{"hidden parent", map[int]stat{50: {ppid: 40, start: 9}}, 40, true},
		{"beyond a hidden parent", map[int]stat{50: {ppid: 40, start: 9}, 30: {ppid: 1}}, 30, false},
		{"parent's number went to a younger one", map[int]stat{50: {ppid: 40, start: 9}, 40: {ppid: 30, start: 10}, 30: {start: 1}}, 40, false},
		{"beyond a younger one", map[int]stat{50: {ppid: 40, start: 9}, 40: {ppid: 30, start: 10}, 30: {start: 1}}, 30, false},
		{"ring", map[int]stat{50: {ppid: 40, start: 9}, 40: {ppid: 50, start: 9}}, 7, false},
		{"own parent", map[int]stat{50: {ppid: 50, start: 9}}, 7, false},
		{"parent outside the namespace", map[int]stat{50: {ppid: 0, start: 9}}, 0, false},
	} {
		if got := climb(50, tt.to, read(tt.family)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestNamespaceLinks(t *testing.T) {
	for link, want := range map[string]uint64{
		"pid:[4026531836]": 4026531836, "pid:[]": 0, "pid:[1": 0, "time:[5]": 0, "pid:[-1]": 0, "": 0, "pid:[1]x": 0,
	} {
		if got := parseNamespace(link, "pid"); got != want {
			t.Errorf("%q: %d, want %d", link, got, want)
		}
	}
}
