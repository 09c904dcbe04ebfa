package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// workload is one kind of work that every contestant does.
type workload struct {
	id    string
	title string
	what  string   // for the reader of the results
	bases []string // contestants whose first metric the others' is divided by
	run   func(*bench)
}

var workloads = []workload{
	{
		"cycle", "Uncontended cycle",
		"One process takes and releases a free lock, again and again: the median of 40 batches of a round. The processor time is of all of them.",
		[]string{"gofrs", "c-floor"}, (*bench).cycle,
	},
	{
		"handoff", "Handoff between two processes",
		"From just before the holder's release call to the return of the waiter's lock call in another process, which has waited 1 to 3 ms. Both stamps are CLOCK_MONOTONIC, through a mapped file.",
		[]string{"flock-go", "c-flock"}, (*bench).handoff,
	},
	{
		"wait", "A waiter of 5 s",
		"Processor time from before the lock call to its return (getrusage; for commands the scheduler's count between 0.3 s after the start and the release), and resident memory while waiting. All wait at once, each for a file of its own.",
		[]string{"flock-go"}, (*bench).wait,
	},
	{
		"contend", "Contending processes",
		"All go through one lock as fast as they can. The hold is nothing, or a nanosleep of 1 ms (about 1.06 ms with the timer's slack). Rates count the passages that ended in one window common to all; a wait that began in the window counts whole. \"of alone\" is the rate against one process of the same contestant alone, just before and just after, in the same round.",
		[]string{"gofrs", "flock-go"}, (*bench).contend,
	},
	{
		"run", "Run a command, whole process",
		"From posix_spawn to reaped, of the tool and of the command /bin/true under it.",
		[]string{"flock(1)"}, (*bench).runCommand,
	},
	{
		"kill", "Next holder after SIGKILL",
		"From the kill call on the holder to the return of the waiter's lock call.",
		[]string{"flock-go"}, (*bench).kill,
	},
}

const us = 1e3 // ns

func (b *bench) cycle() {
	n := b.pick(20000, 5000)
	who := []string{
		"kernlock", "kernlock+record", "kernlock-once", "kernlock+record-once",
		"gofrs", "lockedfile", "flock-go", "flock-go-kept", "c-flock", "c-floor", "c-floor+record",
	}
	b.rounds(b.pick(15, 5), who, func(id string) error {
		j, err := b.fresh("cycle", id)
		if err != nil {
			return err
		}
		defer b.discard(j)
		j.n = n
		w, err := b.startReady(j)
		if err != nil {
			return err
		}
		got, err := w.finish()
		if err != nil {
			return err
		}
		b.book.add("cycle", "", id, "time", "µs", got["ns"]/float64(n)/us)
		b.book.add("cycle", "", id, "cpu", "µs", got["cpu"]/float64(n)/us)
		b.book.add("cycle", "", id, "allocations", "", got["allocs"]/float64(n))
		return nil
	})
}

// rounds runs do for each contestant in turn, n times over. The first to go
// changes from round to round. A contestant that fails is named and left out
// of the later rounds.
func (b *bench) rounds(n int, who []string, do func(id string) error) {
	out := map[string]bool{}
	for r := range n {
		for i := range who {
			id := who[(i+r)%len(who)]
			if out[id] || !b.can(id) {
				continue
			}
			if err := do(id); err != nil {
				out[id] = true
				b.book.broken("%s: %v", id, err)
				b.logf("  %s: %v", id, err)
			}
		}
	}
}

func (b *bench) handoff() {
	n := b.pick(200, 60)
	who := []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "flock-go-kept", "c-flock"}
	b.rounds(b.pick(7, 3), who, func(id string) error {
		j, err := b.fresh("hand-over", id)
		if err != nil {
			return err
		}
		defer b.discard(j)
		j.n, j.room = n, n
		giver, err := b.startReady(j)
		if err != nil {
			return err
		}
		j.name, j.log = "take-over", j.page+".log"
		taker, err := b.startReady(j)
		if err != nil {
			giver.kill()
			return err
		}
		if _, err = taker.finish(); err != nil {
			giver.kill()
			return err
		}
		if _, err = giver.finish(); err != nil {
			return err
		}
		log, err := openLog(j.log, j.room)
		if err != nil {
			return err
		}
		defer log.close()
		hs, err := log.read()
		if err != nil {
			return err
		}
		var took []float64
		for _, h := range hs {
			if h.enter < h.ask {
				b.book.broken("handoff: %s: the waiter held before the holder let go", id)
			}
			took = append(took, float64(h.enter-h.ask))
		}
		slices.Sort(took)
		b.book.add("handoff", "", id, "p50", "µs", percentile(took, 50)/us)
		b.book.add("handoff", "", id, "p99", "µs", percentile(took, 99)/us)
		b.book.add("handoff", "", id, "max", "µs", percentile(took, 100)/us)
		return nil
	})
}

func (b *bench) contend() {
	who := []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "c-flock"}
	long := time.Duration(b.pick(5000, 1500)) * time.Millisecond
	short := time.Duration(b.pick(1000, 300)) * time.Millisecond
	for _, hold := range []time.Duration{0, time.Millisecond} {
		b.rounds(b.pick(3, 1), who, func(id string) error {
			// Alone before and after, so that a machine that gets busier or
			// quieter meanwhile bears on both sides.
			before, err := b.crowd(id, 1, hold, short)
			if err != nil {
				return err
			}
			sizes := []int{2, 8, 32}
			crowds := make([]crowdResult, len(sizes))
			for i, n := range sizes {
				if crowds[i], err = b.crowd(id, n, hold, long); err != nil {
					return err
				}
			}
			after, err := b.crowd(id, 1, hold, short)
			if err != nil {
				return err
			}
			alone := (before.rate + after.rate) / 2
			for i, got := range crowds {
				n := sizes[i]
				kase := fmt.Sprintf("%d processes, hold %v", n, hold)
				b.book.add("contend", kase, id, "rate", "/s", got.rate)
				b.book.add("contend", kase, id, "of alone", "", got.rate/alone)
				b.book.add("contend", kase, id, "slowest/fastest", "", got.evenness)
				b.book.add("contend", kase, id, "Jain", "", got.jain)
				b.book.add("contend", kase, id, "wait p50", "ms", got.p50)
				b.book.add("contend", kase, id, "p99", "ms", got.p99)
				b.book.add("contend", kase, id, "max", "ms", got.max)
				b.book.add("contend", kase, id, "cpu a cycle", "µs", got.cpu)
				b.book.add("contend", kase, id, "lost or overlapped", "", float64(got.lost+got.overlaps))
				if got.lost+got.overlaps > 0 {
					b.book.broken("contend: %s: %s: %d steps lost, %d holds overlapped", id, kase, got.lost, got.overlaps)
				}
			}
			return nil
		})
	}
}

// crowdResult is what n processes did with one lock. Waits are in ms, cpu in
// µs a passage.
type crowdResult struct {
	rate, evenness, jain float64
	p50, p99, max, cpu   float64
	lost, overlaps       int
}

func (b *bench) crowd(id string, n int, hold_, long time.Duration) (crowdResult, error) {
	var r crowdResult
	j, err := b.fresh("contend", id)
	if err != nil {
		return r, err
	}
	defer b.discard(j)
	j.hold = int64(hold_)
	// No contestant passes more than once in a fifth of a microsecond; the
	// file has holes where nothing was written.
	j.room = int(long / 200)
	if hold_ > 0 {
		j.room = int(2*long/hold_) + 1000
	}
	page, err := openPage(j.page)
	if err != nil {
		return r, err
	}
	defer page.close()
	var ws []*worker
	var logs []string
	for i := range n {
		j.log = fmt.Sprintf("%s.%d", j.page, i)
		w, err := b.startReady(j)
		if err != nil {
			for _, w := range ws {
				w.kill()
			}
			return r, err
		}
		ws, logs = append(ws, w), append(logs, j.log)
	}
	gate := mono() + int64(20*time.Millisecond)
	stop := gate + int64(long)
	from := gate + int64(long)/10 // the first tenth warms up
	page.store(wordStop, stop)
	page.store(wordGate, gate)
	var spent float64
	for _, w := range ws {
		got, werr := w.finish()
		if werr != nil {
			err = werr
		}
		spent += got["cpu"]
	}
	if err != nil {
		return r, err
	}
	var all []hold
	var shares, waits []float64
	for _, path := range logs {
		log, err := openLog(path, j.room)
		if err != nil {
			return r, err
		}
		hs, err := log.read()
		log.close()
		if err != nil {
			return r, err
		}
		mine := 0
		for _, h := range hs {
			if h.leave >= from && h.leave < stop {
				mine++
			}
			if h.enter >= from {
				waits = append(waits, float64(h.enter-h.ask)/1e6)
			}
		}
		shares = append(shares, float64(mine))
		all = append(all, hs...)
	}
	var sum float64
	for _, s := range shares {
		sum += s
	}
	r.rate = sum / (float64(stop-from) / 1e9)
	r.evenness, r.jain = evenness(shares), jain(shares)
	slices.Sort(waits)
	r.p50, r.p99, r.max = percentile(waits, 50), percentile(waits, 99), percentile(waits, 100)
	r.cpu = spent / us / float64(len(all))
	r.lost = len(all) - int(*page.word(wordCounter))
	r.overlaps = overlaps(all)
	return r, nil
}

func (b *bench) kill() {
	n := b.pick(50, 15)
	who := []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "c-flock"}
	b.rounds(b.pick(5, 3), who, func(id string) error {
		var took []float64
		for range n {
			t, err := b.killOnce(id)
			if err != nil {
				return err
			}
			took = append(took, t)
		}
		slices.Sort(took)
		b.book.add("kill", "", id, "p50", "µs", percentile(took, 50)/us)
		b.book.add("kill", "", id, "p90", "µs", percentile(took, 90)/us)
		b.book.add("kill", "", id, "max", "µs", percentile(took, 100)/us)
		return nil
	})
}

func (b *bench) killOnce(id string) (ns float64, err error) {
	j, err := b.fresh("hold", id)
	if err != nil {
		return 0, err
	}
	defer b.discard(j)
	page, err := openPage(j.page)
	if err != nil {
		return 0, err
	}
	defer page.close()
	holder, err := b.startReady(j)
	if err != nil {
		return 0, err
	}
	j.name = "wait"
	waiter, err := b.startReady(j)
	if err != nil {
		holder.kill()
		return 0, err
	}
	page.store(wordGate, 1)
	page.await(wordAsking, 1, 50_000)
	nap(int64(2*time.Millisecond) + int64(b.seq)*7919%200*10_000)
	early := page.load(wordGot) != 0
	t0 := mono()
	holder.kill()
	_, err = waiter.finish()
	if early {
		b.book.broken("kill: %s: the waiter held while the holder lived", id)
	}
	return float64(page.load(wordGot) - t0), err
}

func (b *bench) wait() {
	who := []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "c-flock"}
	type command struct {
		id   string
		args []string
	}
	var cmds []command
	if b.flock != "" {
		cmds = append(cmds, command{"flock(1)", []string{b.flock, "LOCK", "true"}})
	}
	if b.stile != "" {
		cmds = append(cmds, command{"stile run", []string{b.stile, "run", "-w", "60", "TARGET", "true"}})
	}
	if b.bare != "" {
		cmds = append(cmds, command{"bare Go run", []string{b.bare, "LOCK", "/bin/true"}})
	}
	const long = 5 * time.Second
	for range b.pick(3, 1) {
		type waiting struct {
			id   string
			fd   int
			pid  int
			w    *worker
			cmd  *exec.Cmd
			j    job
			page *sharedPage
			cpu0 float64
		}
		var all []*waiting
		hold := func(id string) (*waiting, error) {
			j, err := b.fresh("wait", id)
			if err != nil {
				return nil, err
			}
			x := &waiting{id: id, j: j}
			if x.page, err = openPage(j.page); err != nil {
				return nil, err
			}
			x.fd, err = unix.Open(j.path+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
			if err == nil {
				err = rawLock(x.fd)
			}
			return x, err
		}
		for _, id := range who {
			if !b.can(id) {
				continue
			}
			x, err := hold(id)
			if err == nil {
				x.w, err = b.startReady(x.j)
			}
			if err != nil {
				b.book.broken("wait: %s: %v", id, err)
				continue
			}
			x.pid = x.w.cmd.Process.Pid
			x.page.store(wordGate, 1)
			all = append(all, x)
		}
		for _, c := range cmds {
			x, err := hold(c.id)
			if err == nil {
				args := slices.Clone(c.args)
				for i, a := range args {
					args[i] = strings.NewReplacer("LOCK", x.j.path+".lock", "TARGET", x.j.path).Replace(a)
				}
				x.cmd = exec.Command(args[0], args[1:]...)
				err = x.cmd.Start()
			}
			if err != nil {
				b.book.broken("wait: %s: %v", c.id, err)
				continue
			}
			x.pid = x.cmd.Process.Pid
			all = append(all, x)
		}
		nap(int64(300 * time.Millisecond))
		for _, x := range all {
			x.cpu0 = scheduled(x.pid)
		}
		nap(int64(long))
		for _, x := range all {
			rss, anon := resident(x.pid)
			spent := scheduled(x.pid) - x.cpu0
			early := x.page.load(wordGot) != 0
			_ = unix.Close(x.fd)
			var err error
			if x.w != nil {
				var got map[string]float64
				if got, err = x.w.finish(); err == nil {
					spent = got["cpu"]
				}
			} else {
				err = x.cmd.Wait()
			}
			if early {
				err = fmt.Errorf("it did not wait")
			}
			x.page.close()
			b.discard(x.j)
			if err != nil {
				b.book.broken("wait: %s: %v", x.id, err)
				continue
			}
			b.book.add("wait", "", x.id, "cpu", "ms", spent/1e6)
			b.book.add("wait", "", x.id, "resident", "MB", rss)
			b.book.add("wait", "", x.id, "of it its own", "MB", anon)
		}
	}
}

// scheduled is the processor time of all threads of pid, in ns, as the
// scheduler counts it.
func scheduled(pid int) float64 {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	sum := math.NaN()
	for _, t := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		if err != nil {
			continue
		}
		if f := strings.Fields(string(data)); len(f) > 0 {
			if n, err := strconv.ParseFloat(f[0], 64); err == nil {
				if math.IsNaN(sum) {
					sum = 0
				}
				sum += n
			}
		}
	}
	return sum
}

// resident is VmRSS of pid in MB, and the anonymous part of it: what no other
// process shares.
func resident(pid int) (rss, anon float64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			rss = n / 1024
		case "RssAnon:":
			anon = n / 1024
		}
	}
	return rss, anon
}

func (b *bench) runCommand() {
	if b.spawn == "" {
		b.book.missing("run: needs the C spawn loop")
		return
	}
	j, err := b.fresh("run", "")
	if err != nil {
		b.book.broken("run: %v", err)
		return
	}
	defer b.discard(j)
	ids := []string{"no lock"}
	args := []string{strconv.Itoa(b.pick(200, 60)), "--next", "/bin/true"}
	if b.flock != "" {
		ids = append(ids, "flock(1)")
		args = append(args, "--next", b.flock, j.path+".lock", "/bin/true")
	}
	if b.bare != "" {
		ids = append(ids, "bare Go run")
		args = append(args, "--next", b.bare, j.path+".lock", "/bin/true")
	}
	if b.stile != "" {
		ids = append(ids, "stile run")
		args = append(args, "--next", b.stile, "run", j.path, "/bin/true")
	}
	for range b.pick(5, 2) {
		var errs bytes.Buffer
		cmd := exec.Command(b.spawn, args...)
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			b.book.broken("run: %v: %s", err, strings.TrimSpace(errs.String()))
			return
		}
		took := make([][]float64, len(ids))
		for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
			for i, f := range strings.Fields(sc.Text()) {
				ns, _ := strconv.ParseFloat(f, 64)
				took[i] = append(took[i], ns)
			}
		}
		for i, id := range ids {
			slices.Sort(took[i])
			b.book.add("run", "", id, "median", "ms", percentile(took[i], 50)/1e6)
			b.book.add("run", "", id, "p10", "ms", percentile(took[i], 10)/1e6)
			b.book.add("run", "", id, "p90", "ms", percentile(took[i], 90)/1e6)
		}
	}
}
