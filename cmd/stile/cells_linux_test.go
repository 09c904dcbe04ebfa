package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cells are the rows of the lock file's matrix that the tool shows in one situation each, under the names
// that docs/lock-matrix.md has for them. Kills are in TestDispatchKilledAtEveryCall.
var cells = map[string]func(*world){
	"free":                                    func(c *world) { c.whole(c.open("x")) },
	"live holder, short":                      cellLive,
	"live holder of any age":                  cellLive,
	"dead holder on this host":                cellDead,
	"empty or unreadable lock":                cellUnreadable,
	"holder on another host":                  cellOtherHost,
	"holder whose pid is reused":              cellReused,
	"skewed times":                            cellSkewed,
	"two breakers of one dead lock":           cellTwoBreakers,
	"breaker judged a lock since replaced":    cellJudgedReplaced,
	"breaker stalled with its claim":          cellBreakerStalled,
	"publish fails after its exclusive step":  cellPublishFails,
	"releaser stalled":                        cellReleaserStalled,
	"releaser resumes in a fence window":      cellReleaserInWindow,
	"sweeper stalled":                         cellSweeperStalled,
	"eight writers against a dead lock":       cellEight,
	"link fails":                              cellLinkFails,
	"unlock with no lock":                     cellUnlockNone,
	"unlock on a dead holder":                 cellUnlockDead,
	"unlock on a holder not provably dead":    cellUnlockRefused,
	"unlock force":                            cellUnlockForce,
	"lock lost under a holder":                cellLost,
	"board check with a held lock":            cellCheck,
	"board write after the lock is lost":      cellBoardWrite,
	"earlier leftovers of a dead owner":       cellEarlier,
	"leftovers of an owner not provably dead": cellLeftoversStay,
}

func TestDispatchCells(t *testing.T) {
	// One waits the whole ten seconds, while the others run.
	patient := newWorld(t, cellClasses[0])
	lock := patient.plant(os.Getpid(), thisHost(t))
	began := time.Now()
	waiting := patient.start("dispatch", "open", "--agent", "ada", "--task", "x")

	for name, test := range cells {
		t.Run(name, func(t *testing.T) {
			for _, class := range cellClasses {
				t.Run(class, func(t *testing.T) { test(newWorld(t, class)) })
			}
		})
	}

	waiting.exits(2)
	patient.oneLine("", waiting.stderr(), fmt.Sprintf("pid %d on ", os.Getpid()))
	if waited := time.Since(began); waited < 10*time.Second || !strings.Contains(waiting.stderr(), "waited 10 s") {
		t.Errorf("it ended after %v: %s", waited, waiting.stderr())
	}
	fileHolds(t, patient.lock(), lock)
}

// The page names the cells that are shown here, and no others.
func TestCellsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/lock-matrix.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`TestDispatchCells/([^/`]*)/").FindAllSubmatch(page, -1) {
		named[strings.ReplaceAll(string(m[1]), "_", " ")] = true
	}
	for name := range cells {
		if !named[name] {
			t.Errorf("the page does not say that the tool shows %q", name)
		}
		delete(named, name)
	}
	if len(named) > 0 {
		t.Errorf("the page names cells that are not there: %v", named)
	}
}

// A holder that lives keeps its lock, however old; a writer that comes while it works waits, and both are
// there in the end.
func cellLive(c *world) {
	c.blocked(c.plant(os.Getpid(), thisHost(c.T)), fmt.Sprintf("pid %d on ", os.Getpid()))
	var e struct {
		Code, Hint string
		Holder     struct{ PID int }
	}
	out, _ := c.run(2, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0", "--json")
	if err := json.Unmarshal([]byte(out), &e); err != nil || e.Code != "lock_held" || e.Holder.PID != os.Getpid() ||
		e.Hint != "stile dispatch unlock --force --agent ada" {
		c.Errorf("%v: it says %s", err, out)
	}
	if err := os.Remove(c.lock()); err != nil {
		c.Fatal(err)
	}
	holder := c.gated(func(_ *gated, k call) answer {
		if k.String() == "create spawn-log.json.tmp" {
			return hold
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "holder")
	at := holder.stopped()
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(c.lock(), hourAgo, hourAgo); err != nil {
		c.Fatal(err)
	}
	lock := c.read(c.lock())
	c.run(2, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0.05")
	fileHolds(c.T, c.lock(), lock)
	waiter := c.start("dispatch", "open", "--agent", "ada", "--task", "waiter", "-w", "60")
	waiter.waits()
	holder.let(at)
	ids := []string{holder.id(), waiter.id()}
	c.whole(ids...)
}

// waits waits until the process waits for a lock: it then watches the folder.
func (r *running) waits() {
	r.t.Helper()
	until(r.t, "it waits for the lock", r.watches)
}

func (r *running) watches() bool {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.cmd.Process.Pid))
	return err == nil && slices.ContainsFunc(fds, func(fd string) bool {
		to, err := os.Readlink(fd)
		return err == nil && to == "anon_inode:inotify"
	})
}

// id is what an open prints, when it has ended with 0.
func (r *running) id() string {
	r.t.Helper()
	id, err := r.out.ReadString('\n')
	if r.exits(0); err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(id)
}

func cellDead(c *world) {
	var ids []string
	for _, host := range []string{thisHost(c.T), ""} {
		c.plant(deadPID(c.T), host)
		id, _ := c.run(0, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0")
		ids = append(ids, strings.TrimSpace(id))
	}
	c.whole(ids...)
}

func cellUnreadable(c *world) {
	for _, text := range []string{"", "{", "{\"pid\":\"1\"}", "\x00\xff", "[]"} {
		writeFile(c.T, c.lock(), text)
		hourAgo := time.Now().Add(-time.Hour)
		if err := os.Chtimes(c.lock(), hourAgo, hourAgo); err != nil {
			c.Fatal(err)
		}
		c.blocked(text, "nobody known: it is empty or unreadable")
		c.run(2, "dispatch", "unlock", "--agent", "ada")
		fileHolds(c.T, c.lock(), text)
		c.run(0, "dispatch", "unlock", "--force", "--agent", "ada")
		c.clean()
	}
	c.whole(c.open("x"))
}

func cellOtherHost(c *world) {
	c.blocked(c.plant(deadPID(c.T), "elsewhere"), "pid ")
}

// The pid answers, as somebody else's does that has it now.
func cellReused(c *world) {
	c.blocked(c.plant(1, thisHost(c.T)), "pid 1 on ")
}

func cellSkewed(c *world) {
	day := 24 * time.Hour
	for _, skew := range []struct {
		acquired, file time.Duration
		old            bool
	}{{day, -day, false}, {-day, day, false}, {day, day, false}, {-1000 * day, -1000 * day, true}} {
		now := time.Now()
		for _, pid := range []int{os.Getpid(), deadPID(c.T)} {
			text := fmt.Sprintf(`{"pid":%d,"hostname":%q,"token":"0123456789abcdef01234567","acquiredAt":%q}`, pid, thisHost(c.T),
				now.Add(skew.acquired).UTC().Format("2006-01-02T15:04:05.000Z"))
			writeFile(c.T, c.lock(), text)
			if err := os.Chtimes(c.lock(), now.Add(skew.file), now.Add(skew.file)); err != nil {
				c.Fatal(err)
			}
			code, want := 0, "agree"
			if skew.old {
				code, want = 2, "stile dispatch unlock: lock held by pid "
			}
			if out, _ := c.run(code, "board", "check"); !strings.Contains(out, want) {
				c.Errorf("%+v: check says %s", skew, out)
			}
			if pid == os.Getpid() {
				c.blocked(text, "pid ")
				continue
			}
			c.run(0, "dispatch", "open", "--agent", "ada", "--task", "x", "-w", "0")
			c.clean()
		}
	}
}

func cellEight(c *world) {
	trials := 25
	if testing.Short() {
		trials = 3
	}
	var ids []string
	for range trials {
		c.plant(deadPID(c.T), thisHost(c.T))
		var all []*running
		for i := range 8 {
			all = append(all, c.start("dispatch", "open", "--agent", "ada", "--task", fmt.Sprint("job ", i), "-w", "60"))
		}
		for _, r := range all {
			ids = append(ids, r.id())
		}
	}
	distinct := slices.Clone(ids)
	slices.Sort(distinct)
	if len(slices.Compact(distinct)) != 8*trials {
		c.Error("an id came twice")
	}
	c.whole(ids...)
}

// Two in a row, eight at once, and eight against a dead holder's lock.
func cellLinkFails(c *world) {
	errnos := []unix.Errno{unix.EPERM, unix.EOPNOTSUPP, unix.EXDEV}
	if c.links {
		errnos = errnos[:1]
	} else if c.errno == 0 {
		errnos = []unix.Errno{0} // the volume's own
	}
	c.links = false
	var ids []string
	for _, errno := range errnos {
		c.errno = errno
		ids = append(ids, c.open("one"), c.open("two"))
		for round := range 2 {
			if round > 0 {
				c.plant(deadPID(c.T), thisHost(c.T))
			}
			var all []*running
			for range 8 {
				all = append(all, c.start("dispatch", "open", "--agent", "ada", "--task", "x", "-w", "60"))
			}
			for _, r := range all {
				ids = append(ids, r.id())
			}
		}
	}
	c.whole(ids...)
}

func cellUnlockNone(c *world) {
	for _, args := range []string{"dispatch unlock --agent ada", "dispatch unlock", "dispatch unlock --force --agent ada"} {
		if out, stderr := c.run(0, strings.Fields(args)...); out == "" || stderr != "" {
			c.Errorf("%s says %q and %q", args, out, stderr)
		}
	}
	c.run(1, "dispatch", "unlock", "--no-such-flag")
	c.run(1, "dispatch", "unlock", "ada")
	c.whole()
}

func cellUnlockDead(c *world) {
	pid := deadPID(c.T)
	for _, agent := range [][]string{nil, {"--agent", "ada"}} {
		c.plant(pid, thisHost(c.T))
		out, _ := c.run(0, append([]string{"dispatch", "unlock"}, agent...)...)
		if !strings.Contains(out, fmt.Sprintf("pid %d on ", pid)) || !strings.Contains(out, "(dead)") {
			c.Errorf("unlock says %s", out)
		}
		c.clean()
	}
	c.whole(c.open("x"))
}

func cellUnlockRefused(c *world) {
	for _, holder := range []struct {
		pid  int
		host string
	}{{os.Getpid(), thisHost(c.T)}, {deadPID(c.T), "elsewhere"}, {1, thisHost(c.T)}} {
		lock := c.plant(holder.pid, holder.host)
		out, stderr := c.run(2, "dispatch", "unlock")
		if !strings.Contains(out, fmt.Sprintf("pid %d on %s", holder.pid, holder.host)) || !strings.Contains(stderr,
			"stile dispatch unlock --force --agent ada (only once the holder's process is gone or stuck, never while it is still running)") {
			c.Errorf("unlock says %s%s", out, stderr)
		}
		fileHolds(c.T, c.lock(), lock)
		onlyFiles(c.T, c.path(), "board", "spawn-log.json", "spawn-log.json.lock")
	}
}

// stoppedHolder is an open that has read the log and has not looked at its lock again.
func (c *world) stoppedHolder() (*gated, call) {
	c.Helper()
	stopped := false
	g := c.gated(func(_ *gated, k call) answer {
		if !stopped && k.String() == "create spawn-log.json.tmp" {
			stopped = true
			return hold
		}
		return pass
	}, "dispatch", "open", "--agent", "ada", "--task", "holder", "-w", "60")
	return g, g.stopped()
}

func cellUnlockForce(c *world) {
	holder, at := c.stoppedHolder()
	if out, _ := c.run(0, "dispatch", "unlock", "--force"); !strings.Contains(out, fmt.Sprintf("pid %d on ", holder.cmd.Process.Pid)) ||
		!strings.HasSuffix(out, "removed\n") {
		c.Errorf("unlock says %s", out)
	}
	contender := c.open("contender")
	holder.let(at)
	id := holder.id()
	if got := c.logged(); !slices.Equal(got, []string{c.first, contender, id}) {
		c.Errorf("the log has %v", got)
	}
	c.whole(contender, id)
}

// The holder goes on while another holds: it does not commit, and lets the newer lock be.
func cellLost(c *world) {
	holder, at := c.stoppedHolder()
	c.run(0, "dispatch", "unlock", "--force")
	newer, newerAt := c.stoppedHolder()
	lock := c.read(c.lock())
	holder.let(at)
	holder.waits()
	fileHolds(c.T, c.lock(), lock)
	if got := c.logged(); len(got) != 1 {
		c.Errorf("it committed: %v", got)
	}
	newer.let(newerAt)
	id := newer.id()
	c.whole(id, holder.id())
}

func cellCheck(c *world) {
	lock := c.plant(os.Getpid(), thisHost(c.T))
	want := fmt.Sprintf("stile dispatch unlock: lock held by pid %d on ", os.Getpid())
	out, _ := c.run(2, "board", "check")
	var asJSON struct {
		Problems []struct{ Kind, Message string }
	}
	text, _ := c.run(2, "board", "check", "--json")
	if err := json.Unmarshal([]byte(text), &asJSON); err != nil || len(asJSON.Problems) != 1 {
		c.Fatalf("%v: %s", err, text)
	}
	var hook struct {
		Output struct{ AdditionalContext string } `json:"hookSpecificOutput"`
	}
	text, _ = c.run(0, "board", "check", "--hook-envelope")
	if err := json.Unmarshal([]byte(text), &hook); err != nil {
		c.Fatalf("%v: %s", err, text)
	}
	for _, line := range []string{strings.TrimSuffix(out, "\n"), asJSON.Problems[0].Message, hook.Output.AdditionalContext} {
		if !strings.HasPrefix(line, want) || !strings.Contains(line, "for 60 min") || !strings.HasSuffix(line, "never while it is still running") {
			c.Errorf("it says %s", line)
		}
	}
	fileHolds(c.T, c.lock(), lock)
	onlyFiles(c.T, c.path(), "board", "spawn-log.json", "spawn-log.json.lock")
	now := time.Now()
	if err := os.Chtimes(c.lock(), now, now); err != nil {
		c.Fatal(err)
	}
	if out, _ := c.run(0, "board", "check", "--hook-envelope"); out != "" {
		c.Errorf("a young lock is told: %s", out)
	}
	c.run(0, "board", "check")
}
