//go:build unix || windows

package proc

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// What holds on every system with a probe, with a real child.

const liveEnv = "PROC_TEST_LIVE"

func TestMain(m *testing.M) {
	if os.Getenv(liveEnv) != "" {
		if err := json.NewEncoder(os.Stdout).Encode(Self()); err != nil {
			panic(err)
		}
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// live starts a child and returns its record. It ends with the test, or with end.
func live(t *testing.T) (h Holder, end func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), liveEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		in.Close()
		cmd.Wait()
	}
	t.Cleanup(end)
	if err := json.NewDecoder(out).Decode(&h); err != nil {
		t.Fatalf("read record of child: %v", err)
	}
	if h.PID != int64(cmd.Process.Pid) {
		t.Fatalf("child recorded pid %d, it is %d", h.PID, cmd.Process.Pid)
	}
	return h, end
}

func TestRunningIsAliveAndEndedIsDead(t *testing.T) {
	h, end := live(t)
	forms := []Holder{h, {PID: h.PID, Host: h.Host}, {PID: h.PID}}
	for _, h := range forms {
		if got := Judge(h, ""); got != (Judgement{Alive, Running}) {
			t.Errorf("running, %+v: %v", h, got)
		}
	}
	foreign := h
	foreign.Host += "x"
	if got := Judge(foreign, ""); got != (Judgement{Unknown, OtherHost}) {
		t.Errorf("on another host: %v", got)
	}
	end()
	for _, h := range forms {
		if got := Judge(h, ""); got != (Judgement{Dead, NoSuchProcess}) {
			t.Errorf("ended, %+v: %v", h, got)
		}
	}
	if got := Judge(foreign, ""); got != (Judgement{Unknown, OtherHost}) {
		t.Errorf("on another host: %v", got)
	}
}

func TestReusedPidIsDeadWhereStartTimesAreKept(t *testing.T) {
	h, _ := live(t)
	if h.Proc.StartTime == 0 {
		t.Skip("needs start times that hold still")
	}
	h.Proc.StartTime++
	if got := Judge(h, ""); got != (Judgement{Dead, PIDReused}) {
		t.Errorf("got %v", got)
	}
}

func TestSelfJudgedByItselfIsAlive(t *testing.T) {
	if got := Judge(Self(), ""); got != (Judgement{Alive, Running}) {
		t.Errorf("got %v", got)
	}
}

func TestParentIsAnAncestor(t *testing.T) {
	if IsAncestor(os.Getpid()) {
		t.Error("a process is its own ancestor")
	}
	if !IsAncestor(os.Getppid()) {
		t.Error("the parent is no ancestor")
	}
}
