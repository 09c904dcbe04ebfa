package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var objectName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// What a landing is made of is on the disk before its page has a name, and the name before it is acknowledged: each
// file before it is moved to its place, each folder after. Whichever sync fails, once or with all that follow, the
// page gets no name, but for the sync of that name: then nobody knows, and the same landing finds out.
func TestLandingSyncsWhatItMakes(t *testing.T) {
	calls, _ := landingThatCannotSync(t, func(int, call) bool { return false })
	syncedInOrder(t, calls, slices.IndexFunc(calls, naming))
	for _, folder := range []string{"objects", "artifacts"} {
		if _, refused := landingThatCannotSync(t, func(_ int, c call) bool { return c.name == folder }); refused == nil {
			t.Errorf("%s is never synced", folder)
		}
	}
	failed := map[string]bool{} // what was synced first, from when on all failed
	for n := 0; ; n++ {
		_, refused := landingThatCannotSync(t, func(i int, _ call) bool { return i >= n })
		if refused == nil {
			break
		}
		name := shape(refused.name)
		if strings.HasSuffix(name, ".tried.json") {
			name = "the attempt"
		}
		failed[name] = true
	}
	for _, name := range []string{"new.tmp", "atlas", "the attempt", "pages"} {
		if !failed[name] {
			t.Errorf("the sync of %s never failed first: %v", name, failed)
		}
	}
}

// landingThatCannotSync lands a file while the syncs that fails chooses, by their number and name, do fail. It gives
// all calls, and the first sync that failed, if one did.
func landingThatCannotSync(t *testing.T, fails func(i int, c call) bool) (calls []call, refused *call) {
	t.Helper()
	p := &play{T: t, dir: atlas(t)}
	p.acquires("ada")
	p.file("map", "one")
	syncs := 0
	g := startGated(t, p.dir, func(g *gated, c call) answer {
		calls = append(calls, c)
		if c.nr != unix.SYS_FSYNC {
			return pass
		}
		if syncs++; !fails(syncs-1, c) {
			return pass
		}
		if g.errno = unix.EIO; refused == nil {
			refused = &c
		}
		return refuse
	}, "grant", "land", "atlas", "map", "--agent", "ada", "--json")
	code := g.wait()
	<-g.done
	if refused == nil {
		if code != 0 {
			t.Errorf("exit code %d: %s", code, g.stderr())
		}
		return calls, nil
	}
	named := refused.name == "pages"
	if code == 0 {
		t.Errorf("the sync of %s failed, and it landed: %v", refused.name, calls)
	}
	if !named && slices.ContainsFunc(calls, naming) {
		t.Errorf("the sync of %s failed, and the page got its name: %v", refused.name, calls)
	}
	after := p.prints("grant", "status", "atlas", "--json")
	if want := fmt.Sprintf(`"seq":%d`, map[bool]int{true: 1}[named]); !strings.Contains(after, want) {
		t.Errorf("the sync of %s failed: %s", refused.name, after)
	}
	if l := p.lands("ada", "map"); l.Replayed != named || l.Landing.N != 1 {
		t.Errorf("the sync of %s failed; again: %+v", refused.name, l)
	}
	p.register("map", "one")
	return calls, refused
}

// syncedInOrder checks the calls of a landing whose page gets its name by the call named.
func syncedInOrder(t *testing.T, calls []call, named int) {
	t.Helper()
	synced := func(name string, calls []call) bool {
		return slices.ContainsFunc(calls, func(c call) bool { return c.nr == unix.SYS_FSYNC && c.name == name })
	}
	objects, folders := 0, 0
	for i, c := range calls {
		switch {
		case c.nr == unix.SYS_MKDIRAT && (c.name == "objects" || c.name == "artifacts"):
			folders++
			if !synced(map[string]string{"objects": "atlas", "artifacts": "objects"}[c.name], calls[i:named]) {
				t.Errorf("%s is not synced before the page has its name: %v", c, calls)
			}
		case c.nr == unix.SYS_RENAMEAT && objectName.MatchString(c.to):
			objects++
			if !synced(c.name, calls[:i]) {
				t.Errorf("%s comes before its bytes are on disk: %v", c, calls)
			}
			if named < i || !synced("artifacts", calls[i:named]) {
				t.Errorf("the page has its name before that of %s is on disk: %v", c.to, calls)
			}
		}
	}
	if named < 0 || objects != 2 || folders != 2 || !synced(calls[named].name, calls[:named]) || !synced("pages", calls[named:]) {
		t.Errorf("%d objects, %d folders, named by call %d of %v", objects, folders, named, calls)
	}
}

// An artifact that is there already is no proof that it is on the disk: who lands it again syncs its folder, too.
func TestLandingSyncsWhatItFinds(t *testing.T) {
	p := &play{T: t, dir: atlas(t)}
	p.acquires("ada")
	p.lands("ada", p.file("map", "one"))
	var calls []call
	g := startGated(t, p.dir, func(_ *gated, c call) answer { calls = append(calls, c); return pass },
		"grant", "land", "atlas", filepath.Join(".", "map"), "--agent", "ada")
	g.exits(0)
	<-g.done
	named := slices.IndexFunc(calls, naming)
	if named < 0 || slices.ContainsFunc(calls, func(c call) bool { return objectName.MatchString(c.to) }) ||
		!slices.ContainsFunc(calls[:named], func(c call) bool { return c.nr == unix.SYS_FSYNC && c.name == "artifacts" }) {
		t.Errorf("%v", calls)
	}
}
