//go:build !unix && !windows

package proc

import "os"

// Without a probe, everything is Unknown here.

func ownIdentity() identity { return identity{} }

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func probe(int) answer { return unsupported }

func look(int) (sighting, bool) { return sighting{}, false }

func alone(int) bool { return false }

// StartTime is not known here.
func StartTime(int) (ticks uint64, ok bool) { return 0, false }

// ProcShowsUs is about Linux's /proc.
func ProcShowsUs() bool { return false }
