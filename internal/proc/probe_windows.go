package proc

import "golang.org/x/sys/windows"

const probeAccess = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE

// probe opens the process. One that has ended can still be opened while anybody holds a handle to it;
// its handle is then signalled.
func probe(pid int) answer {
	h, err := windows.OpenProcess(probeAccess, false, uint32(pid))
	switch err {
	case nil:
	case windows.ERROR_ACCESS_DENIED:
		return denied
	case windows.ERROR_INVALID_PARAMETER:
		return gone
	default:
		return noAnswer
	}
	defer windows.CloseHandle(h)
	if !names(h, pid) {
		return noAnswer
	}
	switch event, err := windows.WaitForSingleObject(h, 0); {
	case err == nil && event == windows.WAIT_OBJECT_0:
		return gone
	case err == nil && event == uint32(windows.WAIT_TIMEOUT):
		return exists
	}
	return noAnswer
}

// names reports that the handle is of pid itself: the system rounds a pid that is no multiple of four
// down, and opens a neighbour.
func names(h windows.Handle, pid int) bool {
	id, err := windows.GetProcessId(h)
	return err == nil && id == uint32(pid)
}

func look(pid int) (sighting, bool) {
	if pid < 1 {
		return sighting{}, false
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return sighting{}, false
	}
	defer windows.CloseHandle(h)
	if !names(h, pid) {
		return sighting{}, false
	}
	start, ok := creationTime(h)
	return sighting{start: start}, ok
}

func creationTime(h windows.Handle) (uint64, bool) {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return 0, false
	}
	t := uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime)
	return t, t != 0
}

// alone is never asked here: the probe itself tells an ended process.
func alone(int) bool { return false }
