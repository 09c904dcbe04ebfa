package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is what the figures depend on. It names no host and no path.
type machine struct {
	CPU        string   `json:"cpu"`
	Cores      int      `json:"cores"`
	Kernel     string   `json:"kernel"`
	Filesystem string   `json:"filesystem"`
	Other      string   `json:"other,omitempty"` // a second file system
	LoadBefore string   `json:"load_before"`
	LoadAfter  string   `json:"load_after"`
	Versions   []string `json:"versions"`
}

func (m machine) String() string {
	where := "\"disk\" is " + m.Filesystem
	if m.Other != "" {
		where += ", and there is " + m.Other
	}
	return fmt.Sprintf("%s, %d cores; Linux %s; %s; load before %s, after %s", m.CPU, m.Cores, m.Kernel, where, m.LoadBefore, m.LoadAfter)
}

func lookAround(dir string) machine {
	m := machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), LoadBefore: load(), Filesystem: filesystem(dir)}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel, _, _ = strings.Cut(unix.ByteSliceToString(u.Release[:]), "-")
	}
	m.Versions = append(m.Versions, runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/gofrs/flock", "github.com/rogpeppe/go-internal", "golang.org/x/sys", "github.com/mattn/go-sqlite3", "modernc.org/sqlite", "go.etcd.io/bbolt":
				m.Versions = append(m.Versions, d.Path+" "+d.Version)
			}
		}
	}
	m.Versions = append(m.Versions, firstLine("cc", "--version"), firstLine("flock", "--version"), "node "+firstLine("node", "--version"))
	return m
}

func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return name + " absent"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// load is the run queue averaged over 1, 5 and 15 minutes.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(data))
	if err != nil || len(f) < 3 {
		return "unknown"
	}
	return strings.Join(f[:3], " ")
}

// filesystem names the type of what dir lies on, and for ext4 whether it
// keeps a journal, which decides what a rename or a sync costs.
func filesystem(dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "unknown"
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown"
	}
	kind, source, longest := "unknown", "", -1
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 2 {
			continue
		}
		at := l[4]
		if (dir == at || at == "/" || strings.HasPrefix(dir, at+"/")) && len(at) >= longest {
			kind, source, longest = r[0], r[1], len(at)
		}
	}
	if kind == "ext4" {
		if real, err := filepath.EvalSymlinks(source); err == nil {
			source = real
		}
		if jbd, _ := filepath.Glob("/proc/fs/jbd2/" + filepath.Base(source) + "-*"); len(jbd) > 0 {
			return "ext4, journaled"
		}
		return "ext4 without a journal"
	}
	return kind
}
