//go:build linux

package robustness

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// winePackages are the packages whose own tests, built for Windows, run under Wine.
//
// Wine proves LockFileEx (shared, exclusive, at once), release on the holder's death, hard links,
// exclusive create and process times. It proves nothing about mandatory reads of a locked byte, a replace
// over an open file, or the sync of a folder: those differ from Windows.
var winePackages = []string{"kernlock", "lockfile", "internal/vfs", "internal/proc", "internal/estate", "internal/follow", "dispatch", "grant/local", "register", "grant/session", "cmd/stile"}

// wineFewer is given to tests that Wine takes too long for: it makes a file in a millisecond.
var wineFewer = map[string]string{"register": "-rapid.checks=10"}

// wineCannot names the tests that Wine cannot pass though Windows would, as "package TestName", with the
// reason. They are left out by name; a reason that no longer holds is a line to delete.
var wineCannot = map[string]string{
	"kernlock TestReadersNeverFailAReplace": "Wine does not tell whether a file is open when another is moved over it",
	"internal/proc TestParentIsAnAncestor":  "the test's parent is a Linux process, which Windows programs cannot see",
	"internal/vfs TestOSLinks":              noLinks,
	"internal/vfs TestFolderFollowsNoLink":  noLinks,

	"register TestTreeOfLinks":                   noLinks,
	"register TestExportReplacesNoLink":          noLinks,
	"internal/estate TestCase34NoLinkIsFollowed": noLinks,
	"grant/local TestOddPages$/^dangling_link":   noLinks,
}

const noLinks = "Wine 8 reports success for a symbolic link and makes none"

// TestWine runs the Windows build's tests, each as a subtest with its own result.
func TestWine(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the Windows build is not run under Wine")
	}
	w := findWine(t).withPrefix(t)
	root := filepath.Dir(goEnv(t, "GOMOD"))
	overlay, err := writeOverlay(goEnv(t, "GOROOT"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range winePackages {
		t.Run(pkg, func(t *testing.T) {
			if !hasWindowsTests(t, root, pkg) {
				t.Logf("%s has no tests on Windows", pkg)
				return
			}
			events, rest, err := runUnderWine(t, w, overlay, root, pkg)
			replay(t, "under Wine", events)
			if err != nil && !t.Failed() {
				t.Errorf("the test binary ends with %v, though no test of it failed", err)
			}
			if t.Failed() {
				t.Logf("besides its tests' output:\n%s", rest)
			}
		})
	}
}

// hasWindowsTests tells whether pkg exists and has test files when built for Windows.
func hasWindowsTests(t *testing.T, root, pkg string) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(pkg))); os.IsNotExist(err) {
		return false
	}
	list := exec.Command("go", "list", "-e", "-f", "{{len .TestGoFiles}} {{len .XTestGoFiles}}", "./"+pkg)
	list.Dir, list.Env = root, append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list ./%s: %v", pkg, err)
	}
	return strings.TrimSpace(string(out)) != "0 0"
}

// runUnderWine builds the tests of ./pkg in the module at root for Windows, runs them, and returns their
// events and what was printed outside any test.
func runUnderWine(t *testing.T, w wine, overlay, root, pkg string) ([]testEvent, string, error) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), filepath.Base(pkg)+".test.exe")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", exe, "./"+pkg)
	build.Dir, build.Env = root, append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the Windows tests: %v\n%s", err, out)
	}
	args := []string{"tool", "test2json", "-p", pkg, w.loader, exe, "-test.v=test2json", "-test.timeout=2m"}
	if skip := leftOut(t, pkg); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	if fewer, ok := wineFewer[pkg]; ok {
		args = append(args, fewer)
	}
	cmd := w.command(t, "go", args...)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(pkg)) // go test runs tests in their package's folder
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	events, rest := decodeEvents(out)
	return events, rest + stderr.String(), err
}

func leftOut(t *testing.T, pkg string) string {
	t.Helper()
	var names []string
	for name, reason := range wineCannot {
		if p, test, _ := strings.Cut(name, " "); p == pkg {
			t.Logf("left out under Wine: %s: %s", test, reason)
			names = append(names, "^"+test+"$")
		}
	}
	return strings.Join(names, "|")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
