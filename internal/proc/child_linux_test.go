package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The test binary is its own helper: started with childEnv set to an order, it does as told, prints a
// report, and lives until its standard input ends.
const childEnv = "PROC_TEST_ORDER"

// order is what a child is to do.
type order struct {
	Role       string   // "", or "leader-exits"
	Setup      string   // see setUp
	Judge      []Holder // records to judge
	JudgeSelf  bool     // judge first its own record, as it is and without proc
	Stat       []int64  // pids whose start times to look up; 0 is its own
	AsPID      int      // be a process of this number: have one started, in a pid namespace of our own
	AncestorOf int      // the pid to ask IsAncestor about; 0 is its parent
}

// report is what a child has seen.
type report struct {
	Err           string
	Self          Holder
	Tag, TagAgain string
	Initial       bool
	Shows         bool
	Ancestor      bool
	Judgements    []Judgement
	Stats         []bool
	Starts        []uint64
}

func init() {
	if raw := os.Getenv(childEnv); raw != "" {
		// The main goroutine is still on the first thread, and stays there.
		runtime.LockOSThread()
		var o order
		if err := json.Unmarshal([]byte(raw), &o); err != nil {
			panic(err)
		}
		beChild(o)
	}
}

func beChild(o order) {
	if o.AsPID != 0 {
		startAs(o)
	}
	if o.Role == "leader-exits" {
		go func() {
			// Until the first thread is gone, as /proc shows it.
			for {
				if s, ok := readStat(os.Getpid()); ok && s.state == 'Z' {
					break
				}
				runtime.Gosched()
			}
			answerAndWait(o)
		}()
		// Not exit_group: this thread alone ends. A plain Syscall lets the scheduler do without it.
		_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
		panic("the first thread lives on")
	}
	answerAndWait(o)
}

// startAs runs the order in a child that gets the wanted number, unless a thread takes it first: the
// report tells.
func startAs(o order) {
	last := strconv.Itoa(o.AsPID - 1)
	o.AsPID = 0
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_, _ = os.FindProcess(os.Getpid()) // the first start of a process tries out pidfds with a child: have it done
	// The kernel takes this for the writer's namespace, whichever /proc it is written in.
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(last), 0); err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(report{Err: err.Error()})
		os.Exit(0)
	}
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func answerAndWait(o order) {
	r := report{}
	if err := setUp(o.Setup); err != nil {
		r.Err = err.Error()
	} else {
		r = observe(o)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func observe(o order) report {
	r := report{Self: Self(), Tag: HostTag(), TagAgain: HostTag(), Initial: InInitialPIDNamespace(), Shows: ProcShowsUs()}
	if o.AncestorOf == 0 {
		o.AncestorOf = os.Getppid()
	}
	r.Ancestor = IsAncestor(o.AncestorOf)
	if o.JudgeSelf {
		r.Judgements = append(r.Judgements, Judge(r.Self, "."))
		r.Judgements = append(r.Judgements, Judge(Holder{PID: r.Self.PID, Host: r.Self.Host}, "."))
	}
	for _, h := range o.Judge {
		r.Judgements = append(r.Judgements, Judge(h, "."))
	}
	for _, pid := range o.Stat {
		if pid == 0 {
			pid = r.Self.PID
		}
		start, ok := StartTime(int(pid))
		r.Stats, r.Starts = append(r.Stats, ok), append(r.Starts, start)
	}
	return r
}

// setUp changes the child's world before anything of the package is used.
func setUp(what string) error {
	private := func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }
	nobody := func() error { return errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)) }
	switch what {
	case "":
		return nil
	case "mount-proc":
		return errors.Join(private(), unix.Mount("proc", "/proc", "proc", 0, ""))
	case "hidepid":
		return errors.Join(private(), unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"), nobody())
	case "be-nobody":
		return nobody()
	case "cover-proc":
		// A folder made to look like it, claiming the initial namespace.
		self := strconv.Itoa(os.Getpid())
		return errors.Join(private(), unix.Mount("none", "/proc", "tmpfs", 0, ""),
			os.MkdirAll("/proc/"+self+"/ns", 0o755), os.Symlink(self, "/proc/self"),
			os.Symlink("pid:[4026531836]", "/proc/self/ns/pid"),
			os.WriteFile("/proc/self/stat", []byte(self+" (x) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 31337 4096 5\n"), 0o444),
			os.WriteFile("/proc/self/status", []byte("Pid:\t"+self+"\n"), 0o444))
	case "cover-boot-id":
		const boot = "/proc/sys/kernel/random/boot_id"
		f, err := os.CreateTemp("", "boot_id")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		fmt.Fprintln(f, bootB)
		return errors.Join(f.Close(), private(), unix.Mount(f.Name(), boot, "", unix.MS_BIND, ""))
	case "rename-host":
		Self()
		HostTag() // both have the old name now
		return unix.Sethostname([]byte("renamed"))
	}
	return fmt.Errorf("no set-up named %q", what)
}

// running is a child that has reported.
type running struct {
	report
	stop func() // ends its standard input, and so the child; it is still to be waited for
}

// startChild runs a child, through another command if one is given, and returns its report. It ends with
// the test.
func startChild(t *testing.T, o order, attr *syscall.SysProcAttr, through ...string) (*exec.Cmd, running) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	// By this name any user can run it, whatever folder it is in.
	argv := append(through, "/proc/self/exe")
	if len(through) > 0 {
		argv[len(argv)-1], err = os.Executable()
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw), raceExit)
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		if attr != nil && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)) {
			t.Skip("needs unshare: ", err)
		}
		t.Fatal(err)
	}
	r := running{stop: func() { in.Close() }}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if err := json.NewDecoder(out).Decode(&r.report); err != nil {
		t.Fatalf("read report of child: %v", err)
	}
	if r.Err != "" {
		if os.Getuid() != 0 {
			t.Skip("needs root: ", r.Err)
		}
		t.Fatal("set up child: ", r.Err)
	}
	return cmd, r
}

// inNamespaces runs a child in new namespaces.
func inNamespaces(t *testing.T, flags uintptr, setup string, o order) running {
	t.Helper()
	o.Setup = setup
	_, r := startChild(t, o, &syscall.SysProcAttr{Cloneflags: flags})
	return r
}

// sleeper is a child that has written its record and lives until the test ends.
func sleeper(t *testing.T) running {
	t.Helper()
	_, r := startChild(t, order{}, nil)
	return r
}

func ptr(p *byte) unsafe.Pointer { return unsafe.Pointer(p) }

func unwrapped(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}
