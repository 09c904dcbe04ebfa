package main

import (
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

func (b *bench) kill() {
	b.kills("kill", []string{"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "c-flock"})
}

func (b *bench) kills(workload string, who []string) {
	n := b.pick(50, 15)
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
		b.book.add(workload, "", id, "p50", "µs", percentile(took, 50)/us)
		b.book.add(workload, "", id, "p90", "µs", percentile(took, 90)/us)
		b.book.add(workload, "", id, "max", "µs", percentile(took, 100)/us)
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
