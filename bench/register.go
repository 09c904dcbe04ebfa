package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/register"
)

// registerLand times a landing of 1 KiB and, in turn with it, one other command on the same grant. The store is
// opened anew for each, as a program that is started for one command has it.
func (b *bench) registerLand() {
	for _, p := range b.places() {
		err := b.inContainer(p.dir, func(c *grantClient, estate string) error {
			var land, beat []float64
			head := grant.Digest("")
			for range b.pick(500, 100) {
				took, err := timed(func() error { return c.reopened(estate, func() error { return c.heartbeat() }) })
				if err != nil {
					return err
				}
				beat = append(beat, took)
				var data [1024]byte
				_, _ = rand.Read(data[:])
				tree := &register.Tree{}
				if err := tree.AddBytes("artifact", 0o644, data[:]); err != nil {
					return err
				}
				took, err = timed(func() error { return c.reopened(estate, func() error { head, err = c.land(head, tree); return err }) })
				if err != nil {
					return err
				}
				land = append(land, took)
			}
			for kase, took := range map[string][]float64{"1 KiB": land, "a heartbeat": beat} {
				slices.Sort(took)
				b.book.add("register-land", kase+", "+p.name, "grant", "p50", "ms", percentile(took, 50)/1e6)
				b.book.add("register-land", kase+", "+p.name, "grant", "p99", "ms", percentile(took, 99)/1e6)
			}
			return nil
		})
		if err != nil {
			b.book.broken("register-land: %v", err)
		}
	}
}

// registerLarge lands a large file, and does with the usual tools what that is made of: a hash, a copy, a sync.
func (b *bench) registerLarge() {
	p := b.places()[0]
	size := int64(b.pick(1024, 64)) << 20
	kase := fmt.Sprintf("%d MiB, %s", size>>20, p.name)
	err := b.inContainer(p.dir, func(c *grantClient, estate string) error {
		file := filepath.Join(estate, "large")
		head := grant.Digest("")
		for range b.pick(2, 1) {
			if err := plantRandom(file, size); err != nil {
				return err
			}
			took, err := timed(func() error {
				return exec.Command("sh", "-c", `sha256sum "$0" >/dev/null && cp "$0" "$0.copy" && sync`, file).Run()
			})
			if err != nil {
				return err
			}
			b.book.add("register-large", kase, "sha256sum, cp, sync", "time", "ms", took/1e6)
			if err := errors.Join(os.Remove(file+".copy"), exec.Command("sync").Run()); err != nil {
				return err
			}
			tree := &register.Tree{}
			if err := tree.AddAs("large", file); err != nil {
				return err
			}
			if took, err = timed(func() error { head, err = c.land(head, tree); return err }); err != nil {
				return err
			}
			b.book.add("register-large", kase, "grant", "time", "ms", took/1e6)
		}
		return nil
	})
	if err != nil {
		b.book.broken("register-large: %v", err)
	}
}

// registerLog goes through a long register.
func (b *bench) registerLog() {
	p := b.places()[len(b.places())-1]
	landings := b.pick(10_000, 500)
	err := b.inContainer(p.dir, func(c *grantClient, estate string) error {
		head := grant.Digest("")
		for range landings {
			page, err := c.do(grant.Land{Meta: c.meta(), Session: c.session, Base: head, Manifest: grant.Digest(strings.Repeat("0", 64)), Note: "a landing"})
			if err != nil {
				return err
			}
			head = page.Register.Head
		}
		for range b.pick(9, 3) {
			seen := 0
			took, err := timed(func() error {
				return c.reopened(estate, func() error {
					for _, err := range register.Of(c.store, "bench").All(context.Background()) {
						if err != nil {
							return err
						}
						seen++
					}
					return nil
				})
			})
			if err != nil {
				return err
			}
			if seen != landings {
				return fmt.Errorf("%d of %d landings", seen, landings)
			}
			b.book.add("register-log", fmt.Sprintf("%d landings, %s", landings, p.name), "grant", "time", "ms", took/1e6)
		}
		return nil
	})
	if err != nil {
		b.book.broken("register-log: %v", err)
	}
}

// inContainer works under a grant in an estate of its own, and takes that away.
func (b *bench) inContainer(dir string, work func(c *grantClient, estate string) error) (err error) {
	estate, err := os.MkdirTemp(dir, "estate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(estate)) }()
	c, err := newGrantClient(estate)
	if err == nil {
		err = c.acquire()
	}
	if err != nil {
		return err
	}
	return work(c, estate)
}

func (c *grantClient) reopened(estate string, work func() error) (err error) {
	if c.store, err = local.Open(estate, local.Options{State: filepath.Join(estate, "state")}); err != nil {
		return err
	}
	return work()
}

func (c *grantClient) heartbeat() error {
	_, err := c.do(grant.Heartbeat{Meta: c.meta(), Session: c.session})
	return err
}

func (c *grantClient) land(base grant.Digest, tree *register.Tree) (grant.Digest, error) {
	r, err := register.Of(c.store, "bench").Land(context.Background(), register.Landing{
		Command: grant.Land{Meta: c.meta(), Session: c.session, Base: base}, Tree: tree,
	})
	return r.Head, err
}

// timed is how many nanoseconds work takes.
func timed(work func() error) (float64, error) {
	start := mono()
	err := work()
	return float64(mono() - start), err
}

// plantRandom writes a file that nothing can compress or share.
func plantRandom(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block)
	for n := int64(0); n < size && err == nil; n += int64(len(block)) {
		copy(block, fmt.Appendf(nil, "%020d", n))
		_, err = bytes.NewReader(block).WriteTo(f)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
