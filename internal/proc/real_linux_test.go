package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sibling returns a holder's own record, written in new pid and mount namespaces that have their own
// /proc, together with its tag.
func sibling(t *testing.T) report {
	t.Helper()
	return inNamespaces(t, unix.CLONE_NEWPID|unix.CLONE_NEWNS, "mount-proc", order{}).report
}

func TestCase01SiblingPidNamespace(t *testing.T) {
	holder := sibling(t)
	if holder.Self.Host != Self().Host {
		t.Fatalf("host names differ: %q, %q", holder.Self.Host, Self().Host)
	}
	// Its number must not be one that happens to answer here: a wrong probe would then say alive.
	absent := holder.Self
	absent.PID = freePID(t)
	for _, h := range []Holder{holder.Self, absent} {
		if got := Judge(h, t.TempDir()); got != (Judgement{Unknown, OtherPIDNamespace}) {
			t.Errorf("holder %d in another pid namespace: %v", h.PID, got)
		}
	}
	// And from a second namespace, whose processes do not include that number either.
	judge := inNamespaces(t, unix.CLONE_NEWPID|unix.CLONE_NEWNS, "mount-proc", order{Judge: []Holder{absent}})
	if got := judge.Judgements[0]; got != (Judgement{Unknown, OtherPIDNamespace}) {
		t.Errorf("from a sibling namespace: %v", got)
	}
}

func TestCase02BothPidOneInSiblingNamespaces(t *testing.T) {
	holder := sibling(t)
	waiter := inNamespaces(t, unix.CLONE_NEWPID|unix.CLONE_NEWNS, "mount-proc", order{Judge: []Holder{holder.Self}})
	if holder.Self.PID != 1 || waiter.Self.PID != 1 {
		t.Fatalf("pids %d and %d, want 1 and 1", holder.Self.PID, waiter.Self.PID)
	}
	if got := waiter.Judgements[0]; got != (Judgement{Unknown, OtherPIDNamespace}) {
		t.Errorf("got %v", got)
	}
	if waiter.Initial || !waiter.Shows {
		t.Errorf("a new namespace with its own /proc: initial %v, shows us %v", waiter.Initial, waiter.Shows)
	}
	if holder.Tag == waiter.Tag || holder.Tag == HostTag() || waiter.Tag == HostTag() {
		t.Errorf("tags %s, %s and %s must differ", holder.Tag, waiter.Tag, HostTag())
	}
}

func TestCase03MachineRestarted(t *testing.T) {
	local, shared := t.TempDir(), "/proc"
	if ok, kind, err := FilesystemLocal(local); err != nil || !ok {
		t.Skipf("needs a temporary folder on a local filesystem: it is %s (%v)", kind, err)
	}
	// Everything is real but where we stand and which boot it is; the old pid now belongs to this test.
	f := system
	f.own = linux
	f.probe = func(int) answer { t.Error("pid of another boot probed"); return gone }
	h := Holder{PID: int64(os.Getpid()), Host: Self().Host, Proc: rec(boot(bootB))}
	if got := f.judge(h, local); got != (Judgement{Dead, Restarted}) {
		t.Errorf("on a local filesystem: %v", got)
	}
	for _, near := range []string{shared, filepath.Join(local, "absent"), ""} {
		if got := f.judge(h, near); got != (Judgement{Unknown, OtherBoot}) {
			t.Errorf("near %q: %v", near, got)
		}
	}
}

func TestCase04HiddenProcIsNotDeath(t *testing.T) {
	child := sleeper(t)
	reused := child.Self
	reused.Proc = &ID{BootID: reused.Proc.BootID, PidNS: reused.Proc.PidNS, TimeNS: reused.Proc.TimeNS, StartTime: 1}
	got := inNamespaces(t, unix.CLONE_NEWNS, "hidepid", order{
		Judge: []Holder{child.Self, {PID: child.Self.PID, Host: child.Self.Host}, reused},
		Stat:  []int64{child.Self.PID, 0},
	})
	if got.Stats[0] || !got.Stats[1] {
		t.Fatalf("start times to be had: of the holder %v, of itself %v; want false, true", got.Stats[0], got.Stats[1])
	}
	for i, j := range got.Judgements {
		if j != (Judgement{Alive, Permission}) {
			t.Errorf("record %d: %v", i, j)
		}
	}
}

func TestCase04ProcOfAnotherNamespaceIsNotDeath(t *testing.T) {
	// The namespace is new and /proc is the old one: every number in it belongs to somebody else. The
	// judge is pid 1, which in /proc is the machine's first process, with another start time.
	got := inNamespaces(t, unix.CLONE_NEWPID, "", order{JudgeSelf: true, Stat: []int64{1}})
	if got.Shows || got.Initial {
		t.Fatalf("/proc of another namespace: shows us %v, initial %v", got.Shows, got.Initial)
	}
	if got.Stats[0] {
		t.Error("a start time was taken from it")
	}
	for i, j := range got.Judgements {
		if j != (Judgement{Alive, Running}) {
			t.Errorf("record %d of a process that runs: %v", i, j)
		}
	}
	if len(got.Judgements) != 2 || got.Self.Proc.PidNS == 0 {
		t.Errorf("report %+v", got)
	}
	if got.Ancestor {
		t.Error("an ancestor was found in it")
	}
}

func TestCase04ProcShowsAnotherProcessUnderOurNumber(t *testing.T) {
	// The judge has, in its own namespace, the number that a child of this test has in /proc.
	outer := sleeper(t)
	o := order{AsPID: int(outer.Self.PID), JudgeSelf: true, Stat: []int64{outer.Self.PID}, AncestorOf: os.Getpid()}
	for range 20 {
		r := inNamespaces(t, unix.CLONE_NEWPID, "", o)
		if r.Self.PID != outer.Self.PID {
			continue // a thread took the number
		}
		if r.Shows || r.Initial || r.Ancestor || r.Stats[0] {
			t.Errorf("believed the other process: %+v", r.report)
		}
		for _, got := range r.Judgements {
			if got != (Judgement{Alive, Running}) {
				t.Errorf("got %v", got)
			}
		}
		return
	}
	t.Error("the number was taken each time")
}

func TestWithoutProcFilesystemNothingIsClaimed(t *testing.T) {
	got := inNamespaces(t, unix.CLONE_NEWNS, "cover-proc", order{JudgeSelf: true, Judge: []Holder{Self(), {PID: freePID(t)}}})
	if *got.Self.Proc != (ID{}) {
		t.Errorf("identity without /proc: %+v", *got.Self.Proc)
	}
	if got.Initial || got.Shows || got.Ancestor {
		t.Errorf("report %+v", got)
	}
	// Itself; itself without proc; this test with a whole proc; nobody without proc.
	want := []Judgement{{Unknown, PIDNamespaceUnknown}, {Alive, Running}, {Unknown, PIDNamespaceUnknown}, {Dead, NoSuchProcess}}
	if !reflect.DeepEqual(got.Judgements, want) {
		t.Errorf("judgements %v, want %v", got.Judgements, want)
	}
	if got.Tag == HostTag() || got.Tag == HostTagFor(Self().Host, &ID{}) || got.Tag != got.TagAgain {
		t.Errorf("tag %s, then %s: want one of its own", got.Tag, got.TagAgain)
	}
}

func TestCoveredBootIDIsAbsent(t *testing.T) {
	got := inNamespaces(t, unix.CLONE_NEWNS, "cover-boot-id", order{})
	if id := got.Self.Proc; id.BootID != "" || id.PidNS == 0 || id.StartTime == 0 {
		t.Errorf("identity %+v", *id)
	}
}

func TestHostNameMayChangeWhileRunning(t *testing.T) {
	got := inNamespaces(t, unix.CLONE_NEWUTS, "rename-host", order{Judge: []Holder{Self()}})
	if got.Self.Host != "renamed" || got.Tag != HostTagFor("renamed", nil) {
		t.Errorf("after the change: %q, %s", got.Self.Host, got.Tag)
	}
	if got.Judgements[0] != (Judgement{Unknown, OtherHost}) {
		t.Errorf("a record under the old name: %v", got.Judgements[0])
	}
}

func TestZombieWithoutOtherTasksIsDead(t *testing.T) {
	cmd, r := startChild(t, order{Role: "wait"}, nil)
	r.stop() // its standard input ends, and it exits; we do not collect it yet
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if got := Judge(r.Self, ""); got != (Judgement{Dead, Zombie}) {
		t.Errorf("zombie: %v", got)
	}
	four := Holder{PID: r.Self.PID, Host: r.Self.Host}
	if got := Judge(four, ""); got != (Judgement{Alive, Running}) {
		t.Errorf("zombie without proc: %v", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, h := range []Holder{r.Self, four} {
		if got := Judge(h, ""); got != (Judgement{Dead, NoSuchProcess}) {
			t.Errorf("collected: %v", got)
		}
	}
}

func TestZombieLeaderWithOtherTasksIsAlive(t *testing.T) {
	_, r := startChild(t, order{Role: "leader-exits"}, nil)
	s, ok := readStat(int(r.Self.PID))
	if !ok || s.state != 'Z' {
		t.Fatalf("leader's state is %q, want Z", s.state)
	}
	if got := Judge(r.Self, ""); got != (Judgement{Alive, Running}) {
		t.Errorf("got %v", got)
	}
}

func TestStartTimeTellsAReusedPid(t *testing.T) {
	child := sleeper(t)
	if got := Judge(child.Self, ""); got != (Judgement{Alive, Running}) {
		t.Fatalf("as recorded: %v", got)
	}
	ticks, ok := StartTime(int(child.Self.PID))
	if !ok || ticks != child.Self.Proc.StartTime {
		t.Errorf("start time %d, recorded %d", ticks, child.Self.Proc.StartTime)
	}
	for _, start := range []uint64{ticks - 1, ticks + 1, 1<<64 - 1} {
		h := child.Self
		id := *h.Proc
		id.StartTime = start
		h.Proc = &id
		if got := Judge(h, ""); got != (Judgement{Dead, PIDReused}) {
			t.Errorf("start time %d for %d: %v", start, ticks, got)
		}
		id.TimeNS++
		if got := Judge(h, ""); got != (Judgement{Alive, Running}) {
			t.Errorf("in another time namespace: %v", got)
		}
	}
}

func TestOtherTimeNamespaceDoesNotLookReused(t *testing.T) {
	child := sleeper(t)
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare: ", err)
	}
	shift := []string{path, "--time", "--boottime", "100000"}
	if out, err := exec.Command(path, append(shift[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("needs unshare --time: %v: %s", err, out)
	}
	_, r := startChild(t, order{Judge: []Holder{child.Self}, Stat: []int64{child.Self.PID}}, nil, shift...)
	if r.Self.Proc.TimeNS == child.Self.Proc.TimeNS || r.Starts[0] == child.Self.Proc.StartTime {
		t.Fatalf("not in a shifted time namespace: %+v", r)
	}
	if got := r.Judgements[0]; got != (Judgement{Alive, Running}) {
		t.Errorf("got %v", got)
	}
}

func TestPermissionDeniedIsAlive(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the child becomes another user")
	}
	four := Holder{PID: int64(os.Getpid()), Host: Self().Host}
	reused := Self()
	reused.Proc.StartTime++
	got := inNamespaces(t, 0, "be-nobody", order{Judge: []Holder{Self(), four, reused}})
	want := []Judgement{{Alive, Permission}, {Alive, Permission}, {Dead, PIDReused}}
	if !reflect.DeepEqual(got.Judgements, want) {
		t.Errorf("got %v, want %v", got.Judgements, want)
	}
}

func TestIdentityIsOurs(t *testing.T) {
	id := Self().Proc
	if raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil || id.BootID != strings.TrimSpace(string(raw)) {
		t.Errorf("boot id %q, want %q (%v)", id.BootID, raw, err)
	}
	for kind, got := range map[string]uint64{"pid": id.PidNS, "time": id.TimeNS} {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+kind, &st); err != nil || st.Ino != got {
			t.Errorf("%s namespace %d, want inode %d (%v)", kind, got, st.Ino, err)
		}
	}
	if !ProcShowsUs() {
		t.Error("/proc does not show us")
	}
	if want := id.PidNS == initialNS; InInitialPIDNamespace() != want {
		t.Errorf("initial namespace: %v, want %v", !want, want)
	}
	if InInitialPIDNamespace() && HostTag() != HostTagFor(Self().Host, nil) {
		t.Error("in the initial namespace the tag is not of the host name alone")
	}
}

func TestAncestors(t *testing.T) {
	if IsAncestor(os.Getpid()) || IsAncestor(0) || IsAncestor(-1) || IsAncestor(int(freePID(t))) {
		t.Error("itself, no pid or an absent one is an ancestor")
	}
	if !IsAncestor(os.Getppid()) {
		t.Error("the parent is none")
	}
	other := sleeper(t)
	if IsAncestor(int(other.Self.PID)) {
		t.Error("a child is an ancestor")
	}
	for _, tt := range []struct {
		pid  int
		want bool
	}{{os.Getpid(), true}, {os.Getppid(), true}, {int(other.Self.PID), false}} {
		_, r := startChild(t, order{AncestorOf: tt.pid}, nil)
		if r.Ancestor != tt.want {
			t.Errorf("%d seen from a child: %v, want %v", tt.pid, r.Ancestor, tt.want)
		}
	}
}

func TestFilesystemsKnownToBeLocal(t *testing.T) {
	for magic, want := range map[uint32]bool{
		0xEF53: true, 0x58465342: true, 0x9123683E: true, 0x01021994: true, // ext, xfs, btrfs, tmpfs
		0x65735546: false, 0x6969: false, 0xFF534D42: false, 0xFE534D42: false, // fuse, nfs, cifs, smb2
		0x01021997: false, 0x794C7630: false, 0x12345678: false, 0: false, // 9p, overlay, unheard of
	} {
		if got, name := kindOf(magic); got != want || name == "" {
			t.Errorf("%#x %s: local %v, want %v", magic, name, got, want)
		}
	}
	for _, l := range localFS {
		if name := nameIn(otherFS[:], l.magic); name != "" {
			t.Errorf("%s is on both lists", name)
		}
	}
	if local, kind, err := FilesystemLocal("/proc"); local || kind != "proc" || err != nil {
		t.Errorf("/proc: %v, %q, %v", local, kind, err)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	if local, _, err := FilesystemLocal(absent); local || !os.IsNotExist(unwrapped(err)) {
		t.Errorf("absent path: %v, %v", local, err)
	}
}

func TestRepeatedCallsAllocateLittle(t *testing.T) {
	Self()
	HostTag()
	if n := testing.AllocsPerRun(100, func() { Self() }); n > 2 {
		t.Errorf("Self allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { HostTag() }); n > 1 {
		t.Errorf("HostTag allocates %v times", n)
	}
}

func BenchmarkSelf(b *testing.B) {
	for b.Loop() {
		Self()
	}
}

func BenchmarkJudgeRunning(b *testing.B) {
	h := Self()
	for b.Loop() {
		Judge(h, "")
	}
}

// freePID returns a pid that no process has, and that none will get while this test runs: one above the
// kernel's largest.
func freePID(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n + 1
}
