package kernlock

import "golang.org/x/sys/windows"

// recordPath is the file in which the holder of n's lock writes its record.
func recordPath(n *names) string { return n.lock + sidecarSuffix }

// onWine says whether this Windows is Wine, where two processes that append
// at once can write over each other.
func onWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}
