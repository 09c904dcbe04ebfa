package lockfile

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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

var plantedBugs = []planted{
	{"release by unlink", "lockfile/hold.go", "	moved, err := h.moveAway()\n",
		"	if true {\n		return h.s.FS.Remove(h.name)\n	}\n	moved, err := h.moveAway()\n", pkgExplore, "TestForced/three"},
	{"release by unlink (rows)", "lockfile/hold.go", "	moved, err := h.moveAway()\n",
		"	if true {\n		return h.s.FS.Remove(h.name)\n	}\n	moved, err := h.moveAway()\n", pkgLockfile, "TestMatrix/lock_lost"},
	{"break without the confirm", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgExplore, "TestEverySchedule/two_breakers"},
	{"break without the confirm (rows)", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgLockfile, "TestMatrix/breaker_judged"},
	{"break without the claim", "lockfile/break.go", "	if !force {\n", "	if false {\n", pkgExplore, "TestEverySchedule/two_breakers"},
	{"break without the claim (rows)", "lockfile/break.go", "	if !force {\n", "	if false {\n", pkgLockfile, "TestMatrix/(two_breakers|breaker_stalled)"},
	{"put-back by plain rename", "lockfile/move.go", "	if l.cls != noLinks {\n		err := l.s.FS.Link", "	if true {\n		return l.s.FS.Rename(moved, l.name)\n	}\n	if l.cls != noLinks {\n		err := l.s.FS.Link", pkgExplore, "TestForced/two_writers"},
	{"fence skipped", "lockfile/hold.go", "		if err := h.Fence(); err != nil {\n", "		if err := error(nil); err != nil {\n", pkgExplore, "TestForced/two_writers"},
	{"fence skipped (rows)", "lockfile/hold.go", "		if err := h.Fence(); err != nil {\n", "		if err := error(nil); err != nil {\n", pkgLockfile, "TestMatrix/lock_lost"},
	{"sweep without proof of death", "internal/sweep/sweep.go", "dead = v == proc.Dead", "dead = v != proc.Unknown", pkgExplore, "TestEverySchedule/two_writers"},
	{"sweep without proof of death (rows)", "internal/sweep/sweep.go", "dead = v == proc.Dead", "dead = v != proc.Unknown", pkgLockfile, "TestMatrix/leftovers_of"},
	{"claim name reused", "lockfile/break.go", "	self := l.s.Process.Self()\n", "	attempt = \"000000000000000000000000\"\n	self := l.s.Process.Self()\n", pkgLockfile, "TestMatrix/names_unique"},
	{"a neighbour's claim swept", "internal/seam/process.go", "return tag == p.tag()", "return true", pkgLockfile, "TestNeighbourNamespace"},
	{"own old lock not released", "lockfile/acquire.go", "case l.s.Process.TakeEnded(r.lock.Token):", "case false:", pkgExplore, "TestForced/two_writers"},
	{"own old lock not released (library)", "lockfile/acquire.go", "case l.s.Process.TakeEnded(r.lock.Token):", "case false:", pkgLockfile, "TestOwnLockComesBack"},
	{"moved lock not checked", "lockfile/move.go", "case r.same(expected):", "case r.same(expected) || true:", pkgLockfile, "TestMatrix/(lock_lost|kill_at_release:mismatch)"},
	{"commit over a changed file", "lockfile/hold.go", "		return h.fresh()\n", "		return nil\n", pkgLockfile, "TestStale"},
	{"temp file not synced", "internal/commit/commit.go", "	if err == nil && t.Sync {", "	if false {", pkgLockfile, "TestPowerCut"},
	{"folder not synced", "internal/commit/commit.go", "	if t.Sync {\n", "	if false {\n", pkgLockfile, "TestPowerCut"},
	{"pending file not synced", "lockfile/publish.go", "	if err == nil && p.sync {", "	if false {", pkgLockfile, "TestPowerCut/hard_links"},
	{"live holder broken", "lockfile/status.go", "l.judge(r).Verdict == proc.Dead", "l.judge(r).Verdict != proc.Unknown", pkgLockfile, "TestMatrix/live_holder"},
	{"unknown holder broken", "lockfile/status.go", "l.judge(r).Verdict == proc.Dead", "l.judge(r).Verdict != proc.Alive", pkgLockfile, "TestMatrix/holder_on_another_host"},
	{"failed publish unlinks the lock", "lockfile/publish.go", "		p.s.Process.EndUnseen(p.token)\n", "		p.s.FS.Remove(p.name)\n", pkgLockfile, "TestMatrix/publish_fails"},
	{"temp file left after a refusal", "internal/commit/commit.go", "	if err := t.Fence(); err != nil {\n		sweep.Remove(s, temp)\n", "	if err := t.Fence(); err != nil {\n", pkgLockfile, "TestMatrix/kill_at_break:mismatch"},
	{"claim left", "lockfile/break.go", "	defer sweep.Remove(s, claim)\n", "", pkgLockfile, "TestMatrix/unlock_on_a_dead"},
	{"write error dropped", "lockfile/publish.go", "	err := vfs.WriteAll(f, p.content)\n", "	var err error\n	vfs.WriteAll(f, p.content)\n", pkgLockfile, "TestFailEveryOperation"},
	{"unlock removes what it did not show", "lockfile/break.go", "case !r.same(judged):", "case !r.same(judged) && false:", pkgLockfile, "TestMatrix/unlock_force"},
	{"no such thing as ENOTSUP", "lockfile/publish.go", "	p.cls = noLinks\n	p.discard()\n	return false, nil\n", "	return false, err\n", pkgLockfile, "TestMatrix/(free|link_fails)"},
	{"line without bounds", "lockfile/status.go", "		line += \" on \" + CapForDisplay(h.Hostname)\n", "		line += \" on \" + h.Hostname\n", pkgLockfile, "TestMatrix/board_check"},
}

// TestPlanted puts each bug into the code, by an overlay, and runs the tests that must catch it. It
// builds the packages once for every bug, so it runs only when asked for.
func TestPlanted(t *testing.T) {
	if os.Getenv("STILE_PLANTED") == "" {
		t.Skip("set STILE_PLANTED=1")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, bug := range plantedBugs {
		t.Run(bug.name, func(t *testing.T) {
			file := filepath.Join(root, filepath.FromSlash(bug.file))
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(code), bug.old); n < 1 {
				t.Fatalf("%s has no %q any more", bug.file, bug.old)
			}
			dir := t.TempDir()
			changed := filepath.Join(dir, "changed.go")
			overlay := filepath.Join(dir, "overlay.json")
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
			cmd := exec.Command("go", "test", "-vet=off", "-failfast", "-timeout=120s", "-overlay="+overlay, "-run="+bug.run, bug.pkg)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "STILE_PLANTED=")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("not caught by %s %s", bug.pkg, bug.run)
			}
			if !strings.Contains(string(out), "--- FAIL") {
				t.Fatalf("caught by nothing but this: %s", out)
			}
		})
	}
}
