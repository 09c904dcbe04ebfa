package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A worker is this binary (or the C floor) started again as
//
//	bench worker JOB CONTESTANT key=value …
//
// It prints "ready" when it may be let go, and its figures as "name value"
// lines at the end. The keys: path (what is locked), page and log (mapped
// files), room (of the log), n (how many times), hold (ns of nanosleep), id
// (which of the workers this is), command (what is run under the lock). Those
// in peers/ take the same, and modules (where npm has put its own) or server
// (where etcd listens).
type job struct {
	name, who, path, page, log string
	command                    string
	room, n, id                int
	hold                       int64
}

func parseJob(args []string) (job, error) {
	if len(args) < 2 {
		return job{}, fmt.Errorf("a worker needs a job and a contestant")
	}
	j := job{name: args[0], who: args[1]}
	for _, a := range args[2:] {
		k, v, _ := strings.Cut(a, "=")
		n, err := int64(0), error(nil)
		switch k {
		case "path":
			j.path = v
		case "page":
			j.page = v
		case "log":
			j.log = v
		case "command":
			j.command = v
		case "room", "n", "hold", "id":
			n, err = strconv.ParseInt(v, 10, 64)
		default:
			err = fmt.Errorf("unknown key %q", k)
		}
		if err != nil {
			return j, err
		}
		switch k {
		case "room":
			j.room = int(n)
		case "n":
			j.n = int(n)
		case "hold":
			j.hold = n
		case "id":
			j.id = int(n)
		}
	}
	return j, nil
}

func (j job) args() []string {
	return []string{
		j.name, j.who, "path=" + j.path, "page=" + j.page, "log=" + j.log,
		"room=" + strconv.Itoa(j.room), "n=" + strconv.Itoa(j.n), "hold=" + strconv.FormatInt(j.hold, 10),
		"id=" + strconv.Itoa(j.id), "command=" + j.command,
	}
}

func runWorker(args []string) error {
	j, err := parseJob(args)
	if err != nil {
		return err
	}
	c, _ := findContestant(j.who)
	page, err := openPage(j.page)
	if err != nil {
		return err
	}
	defer page.close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	ready := func() {
		fmt.Fprintln(out, "ready")
		out.Flush()
	}
	say := func(name string, v int64) { fmt.Fprintln(out, name, v) }
	switch {
	case c.doc != nil && (j.name == "doc" || j.name == "doc-once"):
		return workDoc(j, c.doc, page, ready, say)
	case c.line != nil && j.name == "lines":
		return workLines(j, c.line, page, ready, say)
	case j.name == "inside":
		return workInside(j, page)
	case c.open == nil:
		return fmt.Errorf("contestant %q does no %q here", j.who, j.name)
	}
	p, err := c.open(j.path)
	if err != nil {
		return err
	}
	switch j.name {
	case "cycle":
		return workCycle(j, p, ready, say)
	case "contend":
		return workContend(j, p, page, ready, say)
	case "hand-over":
		return workHandOver(j, p, page, ready)
	case "take-over":
		return workTakeOver(j, p, page, ready)
	case "hold":
		if err := p.lock(); err != nil {
			return err
		}
		ready()
		nap(int64(tooLong)) // the kill comes first
		runtime.KeepAlive(p)
		return nil
	case "wait":
		return workWait(p, page, ready, say)
	case "enter":
		return workEnter(j, p, page, ready)
	case "queue":
		return workQueue(j, p, page, ready)
	case "pause":
		return workPause(j, p, page, ready, say)
	case "second":
		return workSecond(j, p, page, ready)
	case "wrap":
		return workWrap(j, p, ready)
	}
	return fmt.Errorf("no job %q", j.name)
}

// batches is into how many parts the cycles are cut. The median part counts:
// one in which the machine did something else does not.
const batches = 40

// workCycle goes through a free lock n times.
func workCycle(j job, p passage, ready func(), say func(string, int64)) error {
	turn := func(n int) error {
		for range n {
			if err := p.lock(); err != nil {
				return err
			}
			if err := p.unlock(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := turn(max(j.n/10, 10)); err != nil {
		return err
	}
	ready()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := make([]float64, batches)
	c0 := cpu()
	for i := range took {
		t0 := mono()
		if err := turn(j.n / batches); err != nil {
			return err
		}
		took[i] = float64(mono() - t0)
	}
	c1 := cpu()
	runtime.ReadMemStats(&after)
	say("ns", int64(median(took))*batches)
	say("cpu", c1-c0)
	say("allocs", int64(after.Mallocs-before.Mallocs))
	return nil
}

// workContend goes through the lock from the gate's opening to the stop. The
// counter is stepped with plain loads and stores, as late as the hold allows:
// a second holder would lose a step.
func workContend(j job, p passage, page *sharedPage, ready func(), say func(string, int64)) error {
	log, err := openLog(j.log, j.room)
	if err != nil {
		return err
	}
	defer log.close()
	counter := page.word(wordCounter)
	ready()
	for page.load(wordGate) == 0 {
		nap(100_000)
	}
	gate, stop := page.load(wordGate), page.load(wordStop)
	for mono() < gate {
	}
	c0 := cpu()
	for {
		ask := mono()
		if ask >= stop {
			break
		}
		if err := p.lock(); err != nil {
			return err
		}
		enter := mono()
		seen := *counter
		if j.hold > 0 {
			nap(j.hold)
		}
		*counter = seen + 1
		leave := mono()
		if err := p.unlock(); err != nil {
			return err
		}
		log.add(hold{ask, enter, leave})
	}
	say("cpu", cpu()-c0)
	return nil
}

// workHandOver holds, sees to it that the other process has been waiting for
// a while, and lets go: n times.
func workHandOver(j job, p passage, page *sharedPage, ready func()) error {
	ready()
	for i := int64(1); i <= int64(j.n); i++ {
		if err := p.lock(); err != nil {
			return err
		}
		page.store(wordGot, 0)
		page.store(wordTurn, i)
		page.await(wordAsking, i, 50_000)
		// The waiter is before or in its lock call. Between 1 and 3 ms later
		// it waits, and a poller is at no particular point of its sleep.
		nap(1_000_000 + i*7919%200*10_000)
		page.store(wordFreed, mono())
		if err := p.unlock(); err != nil {
			return err
		}
		for page.load(wordGot) == 0 {
			nap(50_000)
		}
		page.await(wordTurn, -i, 50_000)
	}
	return nil
}

func workTakeOver(j job, p passage, page *sharedPage, ready func()) error {
	log, err := openLog(j.log, j.room)
	if err != nil {
		return err
	}
	defer log.close()
	ready()
	for i := int64(1); i <= int64(j.n); i++ {
		page.await(wordTurn, i, 50_000)
		page.store(wordAsking, i)
		if err := p.lock(); err != nil {
			return err
		}
		got := mono()
		freed := page.load(wordFreed)
		page.store(wordGot, got)
		log.add(hold{freed, got, got})
		if err := p.unlock(); err != nil {
			return err
		}
		page.store(wordTurn, -i)
	}
	return nil
}

// workWait waits for a held lock once.
func workWait(p passage, page *sharedPage, ready func(), say func(string, int64)) error {
	ready()
	for page.load(wordGate) == 0 {
		nap(5_000_000) // two hundred of them wait here
	}
	c0 := cpu()
	page.store(wordAsking, 1)
	if err := p.lock(); err != nil {
		return err
	}
	page.store(wordGot, mono())
	say("cpu", cpu()-c0)
	return p.unlock()
}
