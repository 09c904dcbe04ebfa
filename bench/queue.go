package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// queues are who waits in a crowd, and how large a crowd at most: of the large programs a
// thousand would fill the memory, and of those that poll, the processors.
var queues = []struct {
	id    string
	most  int
	brief bool // in the quick run too
}{
	{"kernlock", 1000, false}, {"kernlock+record", 1000, true}, {"lockfile", 1000, true}, {"stile run", 1000, true},
	{"gofrs", 1000, false}, {"gofrs-ctx", 100, true}, {"c-flock", 1000, false}, {"lockedfile", 100, false},
	{"filelock", 100, false}, {"proper-lockfile", 10, false}, {"etcd", 100, true},
}

func (b *bench) waiters() {
	b.withEtcd(func(b *bench) {
		for _, n := range []int{10, 100, 1000} {
			for _, q := range queues {
				// The quick run has time for a few alone, and for one crowd of a thousand.
				if n > q.most || b.quick && (!q.brief || n > 100 && q.id != "kernlock+record") {
					continue
				}
				if q.id == "stile run" && b.stile == "" || q.id != "stile run" && !b.can(q.id) {
					continue
				}
				if err := b.waitersOnce(q.id, n); err != nil {
					b.book.broken("waiters: %s: %d waiters: %v", q.id, n, err)
				}
			}
		}
	})
}

// crowdOf is n processes that wait for one lock, in the order in which they came.
type crowdOf struct {
	pids    []int
	let     func()                // lets the holder go
	through func() ([]int, error) // waits for all, and says in which order they were served
}

func (b *bench) waitersOnce(id string, n int) error {
	settle := time.Duration(b.pick(1500, 400)) * time.Millisecond
	long := time.Duration(b.pick(1500, 600)) * time.Millisecond
	j, err := b.fresh("enter", id)
	if err != nil {
		return err
	}
	defer b.discard(j)
	var c crowdOf
	if id == "stile run" {
		c, err = b.toolCrowd(j, n)
	} else {
		c, err = b.libraryCrowd(j, n)
	}
	if err != nil {
		return err
	}
	nap(int64(settle))
	spent := func() (sum float64) {
		for _, pid := range c.pids {
			sum += scheduled(pid)
		}
		return sum
	}
	t0, c0 := mono(), spent()
	nap(int64(long))
	t1, c1 := mono(), spent()
	memory := 0.0
	for _, pid := range c.pids {
		rss, _ := resident(pid)
		memory = max(memory, rss)
	}
	let := mono()
	c.let()
	served, err := c.through()
	if err != nil {
		return err
	}
	kase := fmt.Sprintf("%d waiters", n)
	b.book.add("waiters", kase, id, "cores", "", (c1-c0)/float64(t1-t0))
	worst, mean := displaced(served)
	b.book.add("waiters", kase, id, "out of order by", "%", 100*worst)
	b.book.add("waiters", kase, id, "mean", "%", 100*mean)
	b.book.add("waiters", kase, id, "resident, largest", "MB", memory)
	b.book.add("waiters", kase, id, "all through after", "ms", float64(mono()-let)/1e6)
	return nil
}

// displaced is by how many places the waiters were served before or after their turn, at most and in the mean, as a part of
// all. served has the waiters by their place of arrival. One place is none: of two that came within the same moment
// nobody knows which was first.
func displaced(served []int) (worst, mean float64) {
	n := float64(len(served))
	for place, who := range served {
		if by := math.Abs(float64(place - who)); by > 1 {
			worst = max(worst, by/n)
			mean += by / n / n
		}
	}
	return worst, mean
}

func (b *bench) libraryCrowd(j job, n int) (c crowdOf, err error) {
	page, err := openPage(j.page)
	if err != nil {
		return c, err
	}
	holder, err := b.startReady(j)
	if err != nil {
		return c, err
	}
	var ws []*worker
	end := func() {
		holder.kill()
		for _, w := range ws {
			w.kill()
		}
	}
	for page.entered(0) == 0 {
		nap(100_000)
	}
	j.name, j.room = "queue", 1
	for i := range n {
		j.id, j.log = i, fmt.Sprintf("%s.%d", j.page, i)
		w, err := b.startReady(j)
		if err != nil {
			end()
			return c, err
		}
		ws = append(ws, w)
		c.pids = append(c.pids, w.cmd.Process.Pid)
		nap(2_000_000) // it asks now, the next one later: so there is an order
	}
	let := int64(0)
	c.let = func() {
		let = mono()
		holder.kill()
	}
	c.through = func() ([]int, error) {
		defer page.close()
		var all []hold
		for i, w := range ws {
			if _, werr := w.finish(); werr != nil && err == nil {
				err = werr
			}
			log, lerr := openLog(fmt.Sprintf("%s.%d", j.page, i), 1)
			if lerr != nil {
				return nil, lerr
			}
			hs, lerr := log.read()
			log.close()
			if lerr == nil && len(hs) != 1 {
				lerr = fmt.Errorf("waiter %d was served %d times", i, len(hs))
			}
			if lerr != nil {
				return nil, errors.Join(err, lerr)
			}
			all = append(all, hs...)
		}
		if err != nil {
			return nil, err
		}
		if got := *page.word(wordCounter); got != int64(n) {
			b.book.broken("waiters: %s: %d of %d steps are there", j.who, got, n)
		}
		if over := overlaps(slices.Clone(all)); over > 0 {
			b.book.broken("waiters: %s: %d waiters: %d holds overlapped", j.who, n, over)
		}
		if early := slices.MinFunc(all, func(a, b hold) int { return cmp.Compare(a.enter, b.enter) }); early.enter < let {
			b.book.broken("waiters: %s: %d waiters: one held while the holder lived", j.who, n)
		}
		return ranks(all), nil
	}
	return c, nil
}

// ranks gives the order of service in places of arrival.
func ranks(all []hold) []int {
	arrival := slices.Clone(all)
	slices.SortFunc(arrival, func(a, b hold) int { return cmp.Compare(a.ask, b.ask) })
	byEnter := make([]int, len(arrival))
	for i := range byEnter {
		byEnter[i] = i
	}
	slices.SortFunc(byEnter, func(a, b int) int { return cmp.Compare(arrival[a].enter, arrival[b].enter) })
	return byEnter
}

// toolCrowd has the tool itself wait. Each command adds its number to a file.
func (b *bench) toolCrowd(j job, n int) (c crowdOf, err error) {
	list := j.path + ".served"
	run := func(command string) (*exec.Cmd, error) {
		cmd := exec.Command(b.stile, "run", "-w", "600", j.path, "-c", command)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd, cmd.Start()
	}
	let := j.path + ".let"
	holder, err := run(`: >` + list + `; while ! [ -e ` + let + ` ]; do sleep 0.01; done`)
	if err != nil {
		return c, err
	}
	for {
		if _, err := os.Stat(list); err == nil {
			break
		}
		nap(1_000_000)
	}
	var all []*exec.Cmd
	for i := range n {
		cmd, err := run(`echo ` + strconv.Itoa(i) + ` >>` + list)
		if err != nil {
			return c, err
		}
		all = append(all, cmd)
		c.pids = append(c.pids, cmd.Process.Pid)
		nap(6_000_000) // time to get into the line
	}
	c.let = func() {
		if st, err := os.Stat(list); err == nil && st.Size() > 0 {
			b.book.broken("waiters: stile run: %d waiters: one ran while the holder did", n)
		}
		_ = os.WriteFile(let, nil, 0o600)
	}
	c.through = func() (served []int, err error) {
		err = holder.Wait()
		for _, cmd := range all {
			err = errors.Join(err, cmd.Wait())
		}
		data, rerr := os.ReadFile(list)
		for _, f := range strings.Fields(string(data)) {
			k, cerr := strconv.Atoi(f)
			err = errors.Join(err, cerr)
			served = append(served, k)
		}
		if err = errors.Join(err, rerr); err == nil && len(slices.Compact(slices.Sorted(slices.Values(served)))) != n {
			err = fmt.Errorf("%s: %d of %d were served", filepath.Base(list), len(served), n)
		}
		return served, err
	}
	return c, nil
}
