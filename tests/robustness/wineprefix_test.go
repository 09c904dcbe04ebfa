//go:build linux

package robustness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Go's runtime takes its random numbers from bcryptprimitives.dll, which Wine 8 lacks. This is a library
// of that name whose one export is forwarded to the function of advapi32 that does the same.
const (
	forwarderSource = "\t.text\n\t.globl\tDllMain\nDllMain:\n\tmovl\t$1, %eax\n\tret\n"
	forwarderDef    = "LIBRARY bcryptprimitives.dll\nEXPORTS\n\tProcessPrng = advapi32.SystemFunction036\n"
	mingwPrefix     = "x86_64-w64-mingw32-"
)

// wine is a Wine installation with a prefix of our own, in which Go programs run.
type wine struct {
	loader, server string
	prefix         string
}

// findWine skips the test, naming what is missing, unless the tools are there.
func findWine(t *testing.T) wine {
	t.Helper()
	// Debian keeps the 64-bit loader off the path; elsewhere it is a command.
	w := wine{loader: firstCommand("/usr/lib/wine/wine64", "wine64"), server: firstCommand("/usr/lib/wine/wineserver", "wineserver")}
	missing := []string{}
	if w.loader == "" || w.server == "" {
		missing = append(missing, "wine64")
	}
	if firstCommand(mingwPrefix+"as") == "" || firstCommand(mingwPrefix+"ld") == "" {
		missing = append(missing, "binutils-mingw-w64-x86-64")
	}
	if len(missing) > 0 {
		t.Skipf("the Windows build is not run: not installed: %s", strings.Join(missing, ", "))
	}
	return w
}

func firstCommand(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// environ is the environment of a program under w. Wine must neither look for a display nor ask to
// install the add-ons that only .NET and browser programs need.
func (w wine) environ() []string {
	env := []string{}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DISPLAY=") && !strings.HasPrefix(kv, "WINE") {
			env = append(env, kv)
		}
	}
	return append(env, "WINEPREFIX="+w.prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree=;mshtml=;winemenubuilder.exe=")
}

// command is a command under w, in a process group of its own that ends with the test.
func (w wine) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = w.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// withPrefix returns w with a prefix that holds the forwarder. Making one takes ten seconds and 700 MB, so it is
// kept in the user's cache under a key of all that went into it, and shared by whoever runs these tests.
func (w wine) withPrefix(t *testing.T) wine {
	t.Helper()
	version, err := exec.Command(w.loader, "--version").Output()
	if err != nil {
		t.Fatalf("ask %s for its version: %v", w.loader, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	cache = filepath.Join(cache, "stile-wine")
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", w.loader, version, forwarderSource, forwarderDef))
	kept := filepath.Join(cache, fmt.Sprintf("prefix-%x", key[:8]))
	if _, err := os.Stat(kept); err == nil {
		w.prefix = kept
		return w
	}

	// Made under another name and renamed when whole: a run that is cut off leaves no half a prefix behind
	// that a later one would trust.
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	//nolint:usetesting // beside the name it gets, and kept under that
	if w.prefix, err = os.MkdirTemp(cache, "new-"); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(w.prefix)
	for _, cmd := range []*exec.Cmd{w.command(t, w.loader, "wineboot", "--init"), w.command(t, w.server, "--wait")} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make a Wine prefix: %v: %v\n%s", cmd.Args, err, out)
		}
	}
	buildForwarder(t, filepath.Join(w.prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll"))
	if err := os.Rename(w.prefix, kept); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		t.Fatal(err)
	}
	w.prefix = kept
	return w
}

func buildForwarder(t *testing.T, dll string) {
	t.Helper()
	dir := t.TempDir()
	source, def, object := filepath.Join(dir, "f.s"), filepath.Join(dir, "f.def"), filepath.Join(dir, "f.o")
	for name, text := range map[string]string{source: forwarderSource, def: forwarderDef} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range []*exec.Cmd{
		exec.Command(mingwPrefix+"as", "-o", object, source),
		exec.Command(mingwPrefix+"ld", "-shared", "-s", "-e", "DllMain", "-o", dll, object, def),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build bcryptprimitives.dll: %v: %v\n%s", cmd.Args, err, out)
		}
	}
}
