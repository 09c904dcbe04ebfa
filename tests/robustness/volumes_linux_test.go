package robustness

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// volume is a file system that tests of other packages are run on, for real.
type volume struct {
	name  string
	kind  int64 // as statfs says it
	links bool  // whether link() works there
	mount func(t *testing.T, dir string)
}

var volumes = []volume{
	{"tmpfs", unix.TMPFS_MAGIC, true, mountTmpfs},
	{"ext4", unix.EXT4_SUPER_MAGIC, true, mountExt4},
	{"exFAT", unix.FUSE_SUPER_MAGIC, false, mountExFAT},
}

func mountTmpfs(t *testing.T, dir string) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("mount is not permitted here: %v", err)
	}
}

func mountExt4(t *testing.T, dir string) {
	device := loopDevice(t, need(t, "mkfs.ext4"), "-q", "-F", "-O", "has_journal", "-J", "size=4")
	if err := unix.Mount(device, dir, "ext4", 0, ""); err != nil {
		t.Skipf("mount is not permitted here: %v", err)
	}
}

func mountExFAT(t *testing.T, dir string) {
	mount := need(t, "mount.exfat-fuse")
	device := loopDevice(t, need(t, "mkfs.exfat"))
	if out, err := exec.Command(mount, device, dir).CombinedOutput(); err != nil {
		t.Skipf("FUSE cannot mount here: %v: %s", err, out)
	}
}

// loopDevice makes a file system in a file, as the command says, and returns a loop device on it.
func loopDevice(t *testing.T, mkfs string, args ...string) string {
	t.Helper()
	losetup := need(t, "losetup")
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, append(args, image)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", mkfs, err, out)
	}
	out, err := exec.Command(losetup, "--find", "--show", image).Output()
	if err != nil {
		t.Skipf("no loop device to be had here: %v", err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v: %s", device, err, out)
		}
	})
	return device
}

// mounted mounts the volume, for as long as the test runs, and checks that it is what it is to be.
func (v volume) mounted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	v.mount(t, dir)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH)))
		}
	})
	var is unix.Statfs_t
	if err := unix.Statfs(dir, &is); err != nil || is.Type != v.kind {
		t.Fatalf("the file system is %#x, %v; want %#x", is.Type, err, v.kind)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, link); (err == nil) != v.links || err != nil && !errors.Is(err, syscall.EPERM) {
		t.Fatalf("link(): %v", err)
	}
	return dir
}

// onVolumes is what is run on volumes.
var onVolumes = []struct {
	pkg string
	run string
	// without is left out where there are no hard links; nor are there symbolic links, FIFOs, sparse files or modes
	// there. Of these, go test takes the first that fits a part of the name: whole tests stand first.
	without string
	args    []string // besides
	linked  bool     // also where there are hard links; else its own tests have run there
}{
	{
		"lockfile", "^(TestMatrix|TestCase.*|TestOwnLockComesBack|TestReleaseFails|TestLossIsForGood|TestStale)$",
		"^TestCase24OddLockPathsOnDisk$|^TestCase25HugeLock$|/^hard_links$|/./^hard_links$", nil, true,
	},
	// What is left out runs in memory, or goes over time that matters elsewhere only.
	{
		"grant/local",
		"^(TestStore|TestHistories|TestOddPages|TestNewerPage|TestDamagedObject|TestPendingFolderMissing|TestGapBlocks|" +
			"TestRestoreUnderARunningProcess|TestWitness.*|TestInLine|TestLine.*|TestSession|TestAttempt|TestFence.*|TestNested.*)$",
		"/^hard_links$|^TestOddPages$/^dangling_link$|^TestOddPages$/^wrong_revision$", nil, true,
	},
	// What lands, and what comes back, whatever it is called.
	{
		"register",
		"^(TestLandAndRead|TestLandAManifest|TestLandingKilledAtEveryOperation|TestNothingToLand|TestSameLandingTwice|TestRefused.*|" +
			"TestOther.*|TestDiscard|TestDamage.*|TestExport.*|TestDisplace|TestCollect|TestCollectRefuses|TestCollectWaits|" +
			"TestTreeOf.*|TestFileThatChanges|TestFencedCommand|TestReproduction)$",
		"^TestExportReplacesNoLink$|^TestTreeOfLinks$|/^hard_links$", []string{"-rapid.checks=25"}, false,
	},
}

// TestOnRealVolumes runs the lock file's matrix, the eight writers among it, the local store's conformance and
// histories, landings and their export, and what else goes by what a file system does, on file systems of both classes.
func TestOnRealVolumes(t *testing.T) {
	if testing.Short() {
		t.Skip("short: no file systems are made")
	}
	for _, what := range onVolumes {
		binary := testsOf(t, what.pkg)
		for _, v := range volumes {
			if v.links && !what.linked {
				continue
			}
			t.Run(what.pkg+"/"+v.name, func(t *testing.T) {
				dir := v.mounted(t)
				args := append([]string{"-test.run=" + what.run}, what.args...)
				if !v.links {
					args = append(args, "-test.skip="+what.without)
				}
				events, rest, err := runOn(t, binary, what.pkg, dir, args...)
				replay(t, "on "+v.name, events)
				if err != nil && !t.Failed() {
					t.Errorf("the test binary ends with %v, though no test of it failed", err)
				}
				if t.Failed() {
					t.Logf("besides its tests' output:\n%s", rest)
				}
			})
		}
	}
}

// TestDispatchOnRealVolumes runs what the tool shows of the matrix, and its death at every call, where there are no
// hard links for real. Where there are, its own tests run already.
func TestDispatchOnRealVolumes(t *testing.T) {
	if testing.Short() {
		t.Skip("short: no file systems are made")
	}
	binary := testsOf(t, "cmd/stile")
	for _, v := range volumes {
		if v.links {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			events, rest, err := runOn(t, binary, "cmd/stile", v.mounted(t), "-test.run=^(TestDispatchCells|TestDispatchKilledAtEveryCall)$",
				"-test.skip=/./^hard_links$|/^hard_links$")
			replay(t, "on "+v.name, events)
			if err != nil && !t.Failed() {
				t.Errorf("the test binary ends with %v, though no test of it failed", err)
			}
			if t.Failed() {
				t.Logf("besides its tests' output:\n%s", rest)
			}
		})
	}
}

// TestVolumeIsUsed: the tests do run where they are told to. In a folder that is not there they fail.
func TestVolumeIsUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the tests are not built once more")
	}
	for pkg, run := range map[string][2]string{"lockfile": {"TestMatrix", "free"}, "grant/local": {"TestNewerPage", ""}, "register": {"TestDiscard", ""}} {
		filter := "-test.run=^" + run[0] + "$/^" + run[1]
		events, _, err := runOn(t, testsOf(t, pkg), pkg, filepath.Join(t.TempDir(), "none"), filter)
		if r := results(events).child(run[0]); err == nil || r.verdict() != "fail" {
			t.Errorf("%s in a folder that is not there: %s, %v", pkg, r.verdict(), err)
		}
	}
}

// testsOf builds the tests of a package.
func testsOf(t *testing.T, pkg string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), filepath.Base(pkg)+".test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, "./"+pkg)
	build.Dir = filepath.Dir(goEnv(t, "GOMOD"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// runOn runs a package's tests, in its folder, on the volume at dir, and returns their events and what was printed
// outside any test.
func runOn(t *testing.T, binary, pkg, dir string, args ...string) ([]testEvent, string, error) {
	t.Helper()
	run := []string{binary}
	if pkg == "register" { // its tests have no files that belong elsewhere; the go command has
		run = []string{"env", "TMPDIR=" + dir, binary}
	}
	args = append(append([]string{"tool", "test2json"}, run...), append([]string{"-test.v=test2json", "-test.timeout=2m"}, args...)...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(filepath.Dir(goEnv(t, "GOMOD")), filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "STILE_TEST_DIR="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	events, rest := decodeEvents(out)
	return events, rest + stderr.String(), err
}
