package lockfile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// planted is a bug, and the tests that must fail when it is in the code.
type planted struct {
	name           string
	file, old, new string // file below the module's root
	pkg, run       string // tests that must catch it
}

const (
	pkgLockfile = "./lockfile"
	pkgExplore  = "./internal/explore"
)

// rowBugs are the bugs that the matrix's rows are shown to catch, by the name that the rows give them.
var rowBugs = []planted{
	{name: "moved lock left", file: "lockfile/move.go", old: "		sweep.Remove(l.s, moved) // what", new: "		// what"},
	{name: "live holder broken", file: "lockfile/status.go", old: "return v == proc.Dead", new: "return v != proc.Unknown"},
	{name: "broken by age", file: "lockfile/status.go", old: "return v == proc.Dead", new: "return v == proc.Dead || time.Since(r.info.ModTime) > StaleAfter"},
	{name: "dead holder kept", file: "lockfile/status.go", old: "return v == proc.Dead", new: "return v == 77"},
	{name: "unreadable lock broken", file: "lockfile/acquire.go", old: "	case r.lock == nil || r.lock.Token == token:\n", new: "	case r.lock == nil:\n		_, err := l.breakLock(r, true)\n		return true, err\n	case r.lock.Token == token:\n"},
	{name: "unknown holder broken", file: "lockfile/status.go", old: "return v == proc.Dead", new: "return v != proc.Alive"},
	{name: "age from acquiredAt alone", file: "lockfile/status.go", old: "ok && t.After(since)", new: "ok"},
	{name: "break without the claim", file: "lockfile/break.go", old: "	if !force {\n", new: "	if false {\n"},
	{name: "break without the confirm", file: "lockfile/break.go", old: "case !r.same(judged):", new: "case !r.same(judged) && false:"},
	{name: "no second class", file: "lockfile/publish.go", old: "	p.cls = noLinks\n	p.discard()\n	return false, nil\n", new: "	return false, err\n"},
	{name: "failed publish unlinks the lock", file: "lockfile/publish.go", old: "	if cerr := f.Close(); err == nil {\n		err = cerr\n	}\n	return err\n", new: "	if cerr := f.Close(); err == nil {\n		err = cerr\n	}\n	if err != nil {\n		p.s.FS.Remove(p.name)\n	}\n	return err\n"},
	{name: "release unlinks the name too", file: "lockfile/move.go", old: "	l.s.At(steps.renamed)\n", new: "	l.s.At(steps.renamed)\n	l.s.FS.Remove(l.name)\n"},
	{name: "sweep takes the lock", file: "internal/sweep/sweep.go", old: "		s.At(seam.SweepJudged)\n", new: "		s.At(seam.SweepJudged)\n		s.FS.Remove(path + format.LockSuffix)\n"},
	{name: "no lock is an error", file: "lockfile/unlock.go", old: "return Unlocked{State: State{Path: l.path, LockPath: l.name}}, nil", new: "return Unlocked{}, err"},
	{name: "claim left", file: "lockfile/break.go", old: "	defer sweep.Remove(s, claim)\n", new: ""},
	{name: "unlock does not ask", file: "lockfile/unlock.go", old: "	if !o.Force && !l.dead(r) {", new: "	if false {"},
	{name: "fence skipped", file: "lockfile/hold.go", old: "		if err := h.Fence(); err != nil {\n", new: "		if err := error(nil); err != nil {\n"},
	{name: "line without bounds", file: "lockfile/status.go", old: "		line += \" on \" + CapForDisplay(h.Hostname)\n", new: "		line += \" on \" + h.Hostname\n"},
	{name: "fence always passes", file: "lockfile/hold.go", old: "	lost := h.lost()\n", new: "	if true {\n		return nil\n	}\n	lost := h.lost()\n"},
	{name: "inode claims unknown", file: "internal/format/names.go", old: "case len(f) == 1 && digits(f[0]):", new: "case false:"},
	{name: "sweep without proof of death", file: "internal/sweep/sweep.go", old: "dead = v == proc.Dead", new: "dead = v != proc.Unknown"},
	{name: "claim name reused", file: "lockfile/break.go", old: "	self := l.s.Process.Self()\n", new: "	attempt = \"000000000000000000000000\"\n	self := l.s.Process.Self()\n"},
	{name: "pending files not swept", file: "internal/format/names.go", old: "		if len(f) != 3 {\n", new: "		if true {\n"},
	{name: "temp files not swept", file: "internal/format/names.go", old: "return owned(Temp, \"\", strings.Split(s, \"-\"))", new: "return Name{}, s == \"\""},
	{name: "claims not swept", file: "internal/format/names.go", old: "case len(f) == 4 && hexDigits(f[0], KeyLen):", new: "case false:"},
	{name: "broken files not swept", file: "internal/format/names.go", old: "return owned(Broken, \"\", f)", new: "return Name{}, false"},
	{name: "put-back forgotten", file: "lockfile/move.go", old: "	if l.cls != noLinks {\n		err := l.s.FS.Link", new: "	if true {\n		return nil\n	}\n	if l.cls != noLinks {\n		err := l.s.FS.Link"},
	{name: "commit forgotten", file: "internal/commit/commit.go", old: "s.FS.Rename(temp, t.Path)", new: "s.FS.Remove(temp)"},
}

// otherBugs are caught by tests outside the matrix.
var otherBugs = []planted{
	{"release by unlink", "lockfile/hold.go", "	moved, err := h.moveAway()\n",
		"	if true {\n		return h.s.FS.Remove(h.name)\n	}\n	moved, err := h.moveAway()\n", pkgExplore, "TestEverySchedule/two_writers_and_a_forced"},
	{"break without the confirm", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgExplore, "TestEverySchedule/two_breakers"},
	{"break without the claim", "lockfile/break.go", "	if !force {\n", "	if false {\n", pkgExplore, "TestEverySchedule/two_breakers"},
	{"put-back by plain rename", "lockfile/move.go", "	if l.cls != noLinks {\n		err := l.s.FS.Link", "	if true {\n		return l.s.FS.Rename(moved, l.name)\n	}\n	if l.cls != noLinks {\n		err := l.s.FS.Link", pkgExplore, "TestEverySchedule/two_writers_and_a_forced"},
	{"fence skipped", "lockfile/hold.go", "		if err := h.Fence(); err != nil {\n", "		if err := error(nil); err != nil {\n", pkgExplore, "TestEverySchedule/two_writers_and_a_forced"},
	{"sweep without proof of death", "internal/sweep/sweep.go", "dead = v == proc.Dead", "dead = v != proc.Unknown", pkgExplore, "TestEverySchedule/two_writers,"},
	{"a neighbour's claim swept", "internal/seam/process.go", "return tag == p.tag()", "return true", pkgLockfile, "TestNeighbourNamespace"},
	{"own old lock not released", "lockfile/acquire.go", "case l.s.Process.TakeEnded(r.lock.Token):", "case false:", pkgExplore, "TestEverySchedule/two_writers_and_a_forced"},
	{"own old lock not released (library)", "lockfile/acquire.go", "case l.s.Process.TakeEnded(r.lock.Token):", "case false:", pkgLockfile, "TestOwnLockComesBack"},
	{"moved lock not checked", "lockfile/move.go", "case r.same(expected):", "case r.same(expected) || true:", pkgLockfile, "TestMatrix/(lock_lost|kill_at_release:mismatch)"},
	{"commit over a changed file", "lockfile/hold.go", "		return h.fresh()\n", "		return nil\n", pkgLockfile, "TestStale"},
	{"temp file not synced", "internal/commit/commit.go", "	if err == nil && t.Sync {", "	if false {", pkgLockfile, "TestPowerCut"},
	{"folder not synced", "internal/commit/commit.go", "	if t.Sync {\n", "	if false {\n", pkgLockfile, "TestPowerCut"},
	{"pending file not synced", "lockfile/publish.go", "	if err == nil && p.sync {", "	if false {", pkgLockfile, "TestPowerCut/hard_links"},
	{"temp file left after a refusal", "internal/commit/commit.go", "	if err := t.Fence(); err != nil {\n		sweep.Remove(s, temp)\n", "	if err := t.Fence(); err != nil {\n", pkgLockfile, "TestMatrix/kill_at_break:mismatch"},
	{"case 1: unknown holder broken", "lockfile/status.go", "return v == proc.Dead", "return v != proc.Alive", pkgLockfile, "TestCase01And02"},
	{"case 3: dead holder kept", "lockfile/status.go", "return v == proc.Dead", "return v == 77", pkgLockfile, "TestCase03"},
	{"case 5: unknown holder broken", "lockfile/status.go", "return v == proc.Dead", "return v != proc.Alive", pkgLockfile, "TestCase05"},
	{"case 6: age from acquiredAt alone", "lockfile/status.go", "ok && t.After(since)", "ok", pkgLockfile, "TestCase06"},
	{"case 7: fence and look skipped", "lockfile/hold.go", "		if err := h.Fence(); err != nil {\n			return err\n		}\n		return h.fresh()\n", "		return nil\n", pkgLockfile, "TestCase07"},
	{"case 8: broken by age", "lockfile/status.go", "return v == proc.Dead", "return v == proc.Dead || time.Since(r.info.ModTime) > StaleAfter", pkgLockfile, "TestCase08"},
	{"case 9: moved lock not checked", "lockfile/move.go", "case r.same(expected):", "case r.same(expected) || true:", pkgLockfile, "TestCase09"},
	{"case 11: break without the confirm", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgLockfile, "TestCase11"},
	{"case 12: release by unlink", "lockfile/hold.go", "	moved, err := h.moveAway()\n",
		"	if true {\n		return h.s.FS.Remove(h.name)\n	}\n	moved, err := h.moveAway()\n", pkgLockfile, "TestCase12"},
	{"case 13: pending file left", "lockfile/publish.go", "	if err := p.write(f); err != nil {\n		p.discard()\n", "	if err := p.write(f); err != nil {\n		p.pending = \"\"\n", pkgLockfile, "TestCase13"},
	{"case 21: errors taken for held", "lockfile/acquire.go", "			h, err := p.publish()\n", "			h, err := p.publish()\n			if err != nil {\n				err = ErrHeld\n			}\n", pkgLockfile, "TestCase21"},
	{"case 22: no second class", "lockfile/publish.go", "	p.cls = noLinks\n	p.discard()\n	return false, nil\n", "	return false, err\n", pkgLockfile, "TestCase22"},
	{"case 24: links followed", "internal/vfs/os_linux.go", "unix.O_NOFOLLOW", "0", pkgLockfile, "TestCase24OddLockPathsOnDisk"},
	{"case 24: types not looked at", "lockfile/find.go", "	if !r.info.Mode.IsRegular() {\n", "	if false {\n", pkgLockfile, "TestCase24OddLockPaths$"},
	{"case 25: unreadable lock broken", "lockfile/acquire.go", "	case r.lock == nil || r.lock.Token == token:\n", "	case r.lock == nil:\n		_, err := l.breakLock(r, true)\n		return true, err\n	case r.lock.Token == token:\n", pkgLockfile, "TestCase25"},
	{"case 35: break without the confirm", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgLockfile, "TestCase35"},
	{"write error dropped", "lockfile/publish.go", "	err := vfs.WriteAll(f, p.content)\n", "	var err error\n	vfs.WriteAll(f, p.content)\n", pkgLockfile, "TestFailEveryOperation"},
}

// TestPlanted checks that the code still has each place that a bug is planted in, once. At night, or with
// STILE_PLANTED set, it puts each bug into the code, by an overlay, and runs the tests that must catch it.
func TestPlanted(t *testing.T) {
	for _, bug := range append(slices.Clone(rowBugs), otherBugs...) {
		code, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(bug.file)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(code), bug.old); n != 1 {
			t.Errorf("%s: %s has %q %d times", bug.name, bug.file, bug.old, n)
		}
	}
	if os.Getenv("STILE_PLANTED")+os.Getenv("STILE_NIGHTLY") != "" && runtime.GOOS != "windows" {
		plantAll(t)
	}
}

// plantAll builds the packages once for every bug.
func plantAll(t *testing.T) {
	for _, bug := range otherBugs {
		t.Run(bug.name, func(t *testing.T) {
			bug.caught(t, bug.plant(t, bug.pkg), bug.run)
		})
	}
	for _, bug := range rowBugs {
		t.Run(bug.name, func(t *testing.T) {
			binary := bug.plant(t, pkgLockfile)
			rows := 0
			for _, r := range matrix {
				if r.bug != bug.name {
					continue
				}
				rows++
				for _, class := range classes {
					if _, spared := spared[r.name+"/"+class]; !spared {
						run := "^TestMatrix$/^" + strings.ReplaceAll(r.name, " ", "_") + "$/^" + strings.ReplaceAll(class, " ", "_") + "$"
						bug.caught(t, binary, run)
					}
				}
			}
			if rows == 0 {
				t.Error("no row is said to catch it")
			}
		})
	}
}

// spared are the cells that their row's bug does not touch, each with the reason.
var spared = map[string]string{
	"kill at acquire:opened/hard links": "there is no such step",
}

// plant builds the package's tests with the bug in the code.
func (bug planted) plant(t *testing.T, pkg string) (binary string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, filepath.FromSlash(bug.file))
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(code), bug.old) {
		t.Fatalf("%s has no %q any more", bug.file, bug.old)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		changed: strings.Replace(string(code), bug.old, bug.new, 1), overlay: string(text),
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary = filepath.Join(dir, "planted.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", binary, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the bug does not build: %s", out)
	}
	return binary
}

// caught checks that the tests fail, and not for want of a test. A test that never ends has caught it too.
func (bug planted) caught(t *testing.T, binary, run string) {
	t.Helper()
	cmd := exec.Command(binary, "-test.failfast", "-test.timeout=20s", "-test.run="+run)
	if bug.pkg == pkgExplore {
		cmd.Args[2] = "-test.timeout=180s"
	}
	if bug.pkg == pkgExplore {
		cmd.Dir = t.TempDir() // where nothing is saved
	}
	cmd.Env = append(os.Environ(), "STILE_PLANTED=", "STILE_NIGHTLY=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("not caught by %s", run)
	} else if !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out") {
		t.Errorf("caught by nothing but this: %s", out)
	}
}
