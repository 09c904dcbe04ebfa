package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// wrapped kills the program that holds a lock for its command, and sees whether another comes in while the command runs.
func (b *bench) wrapped() {
	b.withEtcd(func(b *bench) {
		for _, w := range []struct {
			id       string
			argv     []string      // of a program that wraps, before the command; none for a worker
			patience time.Duration // longer than its locks need to become stale
		}{
			{"stile run", []string{b.stile, "run", "TARGET"}, time.Second},
			{"stile run -o", []string{b.stile, "run", "-o", "TARGET"}, time.Second},
			{"flock(1)", []string{b.flock, "LOCK"}, time.Second},
			{"flock(1) -o", []string{b.flock, "-o", "LOCK"}, time.Second},
			{"gofrs", nil, time.Second},
			{"lockedfile", nil, time.Second},
			{"filelock", nil, time.Second},
			{"proper-lockfile", nil, 6 * time.Second},
			{"etcd", nil, 6 * time.Second},
		} {
			if len(w.argv) > 0 && w.argv[0] == "" || len(w.argv) == 0 && !b.can(w.id) {
				continue
			}
			for range b.pick(3, 1) {
				got, err := b.wrapOnce(w.id, w.argv, w.patience)
				if err != nil {
					b.book.broken("wrapped: %s: %v", w.id, err)
					break
				}
				b.book.add("wrapped", "", w.id, "second entered", "", got.second)
				b.book.add("wrapped", "", w.id, "after the kill", "ms", got.afterKill)
				b.book.add("wrapped", "", w.id, "after the command", "ms", got.afterEnd)
				if got.second > 0 && !strings.HasSuffix(w.id, " -o") { // who says -o asks for it
					b.book.broken("wrapped: %s: a second command ran beside the first, whose wrapper had been killed", w.id)
				}
			}
		}
	})
}

type wrap struct {
	second              float64 // 1 when it ran beside the first
	afterKill, afterEnd float64 // ms to the second's start, NaN when it does not apply
}

// wrapper is a running wrapper.
type wrapper struct {
	kill func()
	wait func() error
}

func (b *bench) startWrapper(id string, argv []string, j job, inside []string) (w wrapper, err error) {
	if len(argv) == 0 {
		j.name, j.who, j.command = "wrap", id, "exec "+strings.Join(inside, " ")
		x, err := b.start(j)
		if err != nil {
			return w, err
		}
		return wrapper{x.kill, func() error { _, err := x.finish(); return err }}, nil
	}
	var args []string
	for _, a := range argv[1:] {
		args = append(args, strings.NewReplacer("LOCK", j.path+".lock", "TARGET", j.path).Replace(a))
	}
	cmd := exec.Command(argv[0], append(args, inside...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return wrapper{func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, cmd.Wait}, cmd.Start()
}

func (b *bench) wrapOnce(id string, argv []string, patience time.Duration) (got wrap, err error) {
	j, err := b.fresh("inside", "command")
	if err != nil {
		return got, err
	}
	defer b.discard(j)
	page, err := openPage(j.page)
	if err != nil {
		return got, err
	}
	defer page.close()
	defer page.store(wordStop, 1)
	start := func(n int) (wrapper, error) {
		j.id = n
		inside := append([]string{b.self, "worker"}, j.args()...)
		return b.startWrapper(id, argv, j, inside)
	}
	comes := func(n int, patience time.Duration) bool {
		for until := mono() + int64(patience); page.entered(n) == 0; nap(200_000) {
			if mono() > until {
				return false
			}
		}
		return true
	}
	first, err := start(0)
	if err != nil {
		return got, err
	}
	if !comes(0, 10*time.Second) {
		first.kill()
		return got, errors.New("the command never ran")
	}
	killed := mono()
	first.kill()
	second, err := start(1)
	if err != nil {
		return got, err
	}
	early := comes(1, patience)
	page.store(wordStop, 1)
	if !early && !comes(1, 30*time.Second) {
		second.kill()
		return got, errors.New("the second never ran, with the first one's command gone")
	}
	if err := second.wait(); err != nil {
		return got, fmt.Errorf("the second: %w", err)
	}
	for page.asked(0) == 0 {
		nap(200_000)
	}
	left, entered := page.asked(0), page.entered(1)
	got.afterKill = float64(entered-killed) / 1e6
	got.afterEnd = max(float64(entered-left)/1e6, 0)
	if entered < left {
		got.second = 1
	}
	return got, nil
}
