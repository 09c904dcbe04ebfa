package lockfile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

var nameShape = regexp.MustCompile(
	`^log(\.tmp|\.lock\.(pending|broken|claim-[0-9a-f]{16}))-[0-9a-f]{8}-[0-9]+-([0-9a-f]{24})$`)

func testUniqueNames(w *world) {
	w.dies(66)
	seen := map[string]int{}
	kinds := map[string]bool{}
	fsys := vfstest.Wrap(classFS(w.class), func(op vfstest.Op) error {
		name := op.Name
		if op.Kind == "rename" {
			name = op.New
		}
		if op.Kind != "create" && op.Kind != "rename" {
			return nil
		}
		base := filepath.Base(name)
		if base == "log" || base == "log.lock" {
			return nil
		}
		m := nameShape.FindStringSubmatch(base)
		if m == nil {
			w.t.Errorf("made %q", base)
			return nil
		}
		seen[m[3]]++
		kinds[strings.SplitN(m[1], "-", 2)[0]] = true
		return nil
	})
	for range 3 {
		w.plant("log.lock", lockOf(66, testHost))
		w.update(w.actorFS(7, fsys), "a")
	}
	for attempt, n := range seen {
		if n != 1 {
			w.t.Errorf("attempt %s made %d names", attempt, n)
		}
	}
	for _, kind := range []string{".tmp", ".lock.pending", ".lock.broken", ".lock.claim"} {
		if !kinds[kind] {
			w.t.Errorf("no %s name was made", kind)
		}
	}
}

// earlier is what earlier builds leave when they die: the first and the second shape.
func earlier(pid int64, host string) map[string]string {
	tag := proc.HostTagFor(host, nil)
	return map[string]string{
		"log.lock.claim-123456":                                           strings.Replace(lockOf(pid, host), fmt.Sprintf(`,"hostname":%q`, host), "", 1),
		fmt.Sprintf("log.lock.broken-%d-0a1b2c", pid):                     "x",
		fmt.Sprintf("log.tmp-%d-0a1b2c3d", pid):                           "x",
		"log.lock.claim-h0123456789abcdef":                                lockOf(pid, host),
		fmt.Sprintf("log.lock.pending-%s-%d-0123456789ab", tag, pid):      "x",
		fmt.Sprintf("log.lock.broken-%s-%d-1700000000000-0a1b", tag, pid): "x",
		fmt.Sprintf("log.tmp-%s-%d-0a1b2c3d", tag, pid):                   "x",
		fmt.Sprintf("log.lock.claim-0123456789abcdef-%s-%d-aa", tag, pid): "x",
		fmt.Sprintf("log.lock.broken-%s-%d-00112233445566aa", tag, pid):   "x",
		fmt.Sprintf("log.tmp-%s-%d-00112233445566778899aabb", tag, pid):   "x",
		fmt.Sprintf("log.lock.pending-%s-%d-0011223344556677", tag, pid):  "x",
		fmt.Sprintf("log.lock.claim-ffff456789abcdef-%s-%d-ab", tag, pid): "x",
		fmt.Sprintf("log.lock.broken-%s-%d-1700000000001-ffff", tag, pid): "x",
	}
}

func testEarlierDead(w *world) {
	w.dies(7)
	for _, lock := range []string{"", lockOf(7, ""), lockOf(7, testHost)} {
		for name, content := range earlier(7, testHost) {
			w.plant(name, content)
		}
		if lock != "" {
			w.plant("log.lock", lock)
		}
		o := w.actor(8)
		o.Timeout = -1
		w.update(o, "a")
		w.only("log")
	}
}

func testLeftoversStay(w *world) {
	// Names that no build makes, however like them they look, are nobody's business.
	keep := map[string]string{
		"log.lock.claim-h0123456789abcde0": "not json", "log.lock.claim-99": "", "log.lock.claim-98": `{"pid":"7"}`,
		"log.tmp": "x", "log.tmp-": "x", "log.tmp-7": "x", "log.tmp-007-aa": "x", "log.tmp-7-zz": "x",
		"log.lock.pending-7-aa": "x", "log.lock.broken-7-aa-1-2-3": "x", "log.tmp-7-AA": "x", "log2.tmp-7-aa": "x",
		"log.lock.claim-0123-aaaaaaaa-7-aa": "x", "log.lock.broken--7-aa": "x", "log.bak": "x",
		"log.tmp-99999999999999999999-aa": "x",
	}
	w.dies(7)
	for name, content := range earlier(6, testHost) { // alive
		keep[name] = content
	}
	for name, content := range earlier(7, "elsewhere") { // pid 7 is dead here, and not theirs
		if strings.Contains(name, proc.HostTagFor("elsewhere", nil)) || strings.Contains(name, "claim-h") {
			keep[name] = content
		}
	}
	var names []string
	for name, content := range keep {
		w.plant(name, content)
		names = append(names, name)
	}
	o := w.actor(8)
	o.Timeout = -1
	w.update(o, "a")
	w.update(o, "b")
	w.records("a", "b")
	slices.Sort(names)
	w.only(append([]string{"log"}, names...)...)
	for name, content := range keep {
		if got := w.read(name); got != content {
			w.t.Errorf("%s is now %q", name, got)
		}
	}
}

func testSweeperStalled(w *world) {
	w.dies(7)
	dead := "log.tmp-" + proc.HostTagFor(testHost, nil) + "-7-00112233445566778899aabb"
	live := "log.tmp-" + proc.HostTagFor(testHost, nil) + "-6-00112233445566778899aabb"
	w.plant(dead, "x")
	w.plant(live, "x")
	hook, reached, resume := stall(seam.SweepJudged)
	o, waiting := waits(onStep(w.actor(8), hook))
	done := in(func() error { return update(w.t.Context(), w.path, o, "sweeper") })
	<-reached
	w.update(w.actor(9), "other")
	h, err := Acquire(w.t.Context(), w.path, w.actor(10))
	w.nil(err)
	before := w.read("log.lock")
	resume()
	select {
	case <-waiting: // it has swept, and waits for the live lock, which it has not touched
	case err := <-done:
		w.t.Fatalf("the sweeper did not wait: %v", err)
	}
	w.nil(addRecord(h, "holder"))
	if got := w.read("log.lock"); got != before {
		w.t.Error("the sweeper touched a live lock")
	}
	w.nil(h.Release())
	w.nil(finish(waiting, done))
	w.records("sweeper", "other", "holder")
	w.only("log", live)
}
