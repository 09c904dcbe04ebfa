package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/lockfile"
)

// stopped is for how long at most a holder is stopped: past every time after which a contestant takes its lock away.
// A variable for this package's tests.
var stopped = 5 * time.Second

// paused stops a holder with SIGSTOP, and lets it go on, and write, when another has written or nobody could.
func (b *bench) paused() {
	b.withEtcd(func(b *bench) {
		var all []func() error
		var held sync.Mutex // of the results
		var order []string
		results := map[string]pause{}
		for _, id := range []string{"kernlock+record", "lockfile", "lockfile, cleared", "grant", "gofrs", "lockedfile", "filelock", "proper-lockfile", "etcd"} {
			who, cleared := id, id == "lockfile, cleared"
			if cleared {
				who = "lockfile"
			}
			if !b.can(who) {
				continue
			}
			j, err := b.fresh("pause", who)
			if err != nil {
				b.book.broken("paused: %v", err)
				return
			}
			order = append(order, id)
			all = append(all, func() error {
				defer b.discard(j)
				got, err := b.pauseOnce(j, cleared)
				if err != nil {
					return fmt.Errorf("%s: %w", id, err)
				}
				held.Lock()
				defer held.Unlock()
				results[id] = got
				return nil
			})
		}
		// They only wait, so all wait at once; nothing here is compared by its time.
		ends := make(chan error, len(all))
		for _, do := range all {
			go func() { ends <- do() }()
		}
		for range all {
			if err := <-ends; err != nil {
				b.book.broken("paused: %v", err)
			}
		}
		for _, id := range order {
			got, ok := results[id]
			if !ok {
				continue
			}
			b.book.add("paused", "", id, "another held meanwhile", "", got.took)
			b.book.add("paused", "", id, "after", "ms", float64(got.after)/1e6)
			b.book.add("paused", "", id, "late write refused", "", got.refused)
			b.book.add("paused", "", id, "newer write lost", "", got.lost)
			if got.lost > 0 {
				b.book.broken("paused: %s: the write of a holder that had lost its lock landed over a newer one", id)
			}
		}
	})
}

type pause struct {
	took, refused, lost float64 // 1 or 0
	after               int64   // from the stop to the second's write
}

func (b *bench) pauseOnce(j job, cleared bool) (got pause, err error) {
	if j.who == "grant" {
		if err := shortGrant(j.path + ".estate"); err != nil {
			return got, err
		}
	}
	page, err := openPage(j.page)
	if err != nil {
		return got, err
	}
	defer page.close()
	first, err := b.startReady(j)
	if err != nil {
		return got, err
	}
	for until := mono() + int64(10*time.Second); page.entered(0) == 0; nap(100_000) {
		if mono() > until {
			first.kill()
			return got, errors.New("nobody held a free lock")
		}
	}
	stop := mono()
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return got, err
	}
	j.name, j.id = "second", 1
	second, err := b.startReady(j)
	if err != nil {
		first.kill()
		return got, err
	}
	if cleared {
		for page.asked(1) == 0 {
			nap(100_000)
		}
		nap(int64(20 * time.Millisecond))
		if _, err := lockfile.Unlock(context.Background(), j.path, lockfile.UnlockOptions{Force: true}); err != nil {
			return got, err
		}
	}
	for mono() < stop+int64(stopped) && page.entered(1) == 0 {
		nap(1_000_000)
	}
	if at := page.entered(1); at != 0 {
		got.took, got.after = 1, at-stop
	}
	page.store(wordTurn, 1)
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return got, err
	}
	end, err := first.finish()
	if err != nil {
		return got, err
	}
	if _, err := second.finish(); err != nil {
		return got, err
	}
	got.refused = end["refused"]
	text, err := b.landed(j)
	if err == nil && text != "second\n" {
		if text != "late\n" {
			return got, fmt.Errorf("the file says %q", text)
		}
		got.lost = 1
	}
	return got, err
}

// landed is what is there in the end. The second writes after the first's hold, so that is its own text, unless the late
// write came after it.
func (b *bench) landed(j job) (string, error) {
	if j.who != "grant" {
		data, err := os.ReadFile(j.path)
		return string(data), err
	}
	return lastLanding(j.path + ".estate")
}

// shortGrant makes the container with the shortest life that a grant may have.
func shortGrant(estate string) error {
	if err := os.Mkdir(estate, 0o700); err != nil {
		return err
	}
	store, err := local.Open(estate, local.Options{State: filepath.Join(estate, "state")})
	if err != nil {
		return err
	}
	p := grant.DefaultParams()
	p.Cap, p.Extension, p.Window = 1, 1, 1
	c := &grantClient{store: store, agent: "bench"}
	_, err = c.do(grant.Create{Meta: c.meta(), Params: p})
	return err
}
