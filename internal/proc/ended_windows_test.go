package proc

import (
	"testing"

	"golang.org/x/sys/windows"
)

func TestEndedProcessWithAnOpenHandleIsDead(t *testing.T) {
	h, end := live(t)
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(h.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(handle)
	end()
	if _, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(h.PID)); err != nil {
		t.Fatalf("the handle does not keep the pid: %v", err)
	}
	if got := Judge(h, ""); got != (Judgement{Dead, NoSuchProcess}) {
		t.Errorf("got %v", got)
	}
}

func TestPidOfANeighbourIsNotTakenForIt(t *testing.T) {
	h, _ := live(t)
	h.PID++ // the system would open the process of h.PID
	if got := Judge(h, ""); got == (Judgement{Alive, Running}) || got == (Judgement{Dead, PIDReused}) {
		t.Errorf("got %v", got)
	}
}

func TestFolderIsOnANamedFilesystem(t *testing.T) {
	local, kind, err := FilesystemLocal(t.TempDir())
	if err != nil || local && !localFS[kind] {
		t.Errorf("%v, %q, %v", local, kind, err)
	}
	if _, _, err := FilesystemLocal(t.TempDir() + `\absent`); err == nil {
		t.Error("a path that is not there has a filesystem")
	}
}
