package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/register"
)

// grantClient is one agent of an estate with the container "bench".
type grantClient struct {
	store   *local.Store
	agent   string
	session grant.Session
	head    grant.Digest // the register's, when it was acquired
	nothing grant.Digest // an object that is there
	n       int
	leave   func() // the line of those who wait
}

// openGrant is the least passage of a grant, its lock and unlock: acquire, a landing, without which there is no
// release, and the release. Each of the three is a revision, synced. The landing names an object that is there.
func openGrant(path string) (passage, error) {
	c, err := newGrantClient(path + ".estate")
	if err != nil {
		return passage{}, err
	}
	return passage{lock: c.acquire, unlock: func() error { return c.landAndRelease(c.nothing) }, write: c.landNote, long: c.leaveLine}, nil
}

// openGrantEmpty is the same with a landing as agents make it who found nothing: its manifest is a new object.
func openGrantEmpty(path string) (passage, error) {
	c, err := newGrantClient(path + ".estate")
	if err != nil {
		return passage{}, err
	}
	return passage{lock: c.acquire, unlock: func() error {
		c.n++
		manifest, err := c.put(fmt.Sprintf("nothing found by %s, time %d\n", c.agent, c.n))
		if err != nil {
			return err
		}
		return c.landAndRelease(manifest)
	}}, nil
}

func (c *grantClient) put(text string) (grant.Digest, error) {
	d, _, err := c.store.Put(context.Background(), "bench", grant.KindArtifact, strings.NewReader(text))
	return d, err
}

func newGrantClient(estate string) (*grantClient, error) {
	if err := os.Mkdir(estate, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	store, err := local.Open(estate, local.Options{State: filepath.Join(estate, "state")})
	if err != nil {
		return nil, err
	}
	c := &grantClient{store: store, agent: rand.Text()}
	_, err = c.do(grant.Create{Meta: c.meta()})
	if grant.CodeOf(err) == grant.CodeExists {
		err = nil
	}
	if err == nil {
		c.nothing, err = c.put("nothing\n")
	}
	return c, err
}

func (c *grantClient) meta() grant.Meta {
	return grant.Meta{Container: "bench", Nonce: rand.Text(), By: grant.Agent(c.agent)}
}

func (c *grantClient) do(cmd grant.Command) (*grant.Page, error) {
	rev, _, err := c.store.Do(context.Background(), grant.Request{Command: cmd})
	return rev.Page(), err
}

// acquire stands in line, and stays at its head until the release.
func (c *grantClient) acquire() (err error) {
	if c.leave, err = c.store.LineUp(context.Background(), "bench"); err != nil {
		return err
	}
	for {
		_, _ = rand.Read(c.session.Secret[:])
		page, err := c.do(grant.Acquire{Meta: c.meta(), Session: c.session.Secret.Hash()})
		if err == nil {
			c.session.Grant, c.head = page.Grant, page.Register.Head
			return nil
		}
		if grant.CodeOf(err) != grant.CodeHeld {
			return err
		}
		if err := c.free(); err != nil {
			return err
		}
	}
}

// leaveLine lets the next in line watch. Who will hold for long does so at once.
func (c *grantClient) leaveLine() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// free returns when nobody holds the container, or the holder's time is up.
func (c *grantClient) free() error {
	for {
		head, err := c.store.Head(context.Background(), "bench")
		if err != nil || head.Page().State != grant.StateHeld {
			return err
		}
		left := max(time.Until(head.Page().Expiry.Std()), 50*time.Millisecond)
		ctx, stop := context.WithTimeout(context.Background(), left)
		err = c.store.Watch(ctx, "bench", head.Ref())
		stop()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// landNote lands a text.
func (c *grantClient) landNote(text string) error {
	page, err := c.do(grant.Land{Meta: c.meta(), Session: c.session, Base: c.head, Manifest: c.nothing, Note: strings.TrimSpace(text)})
	if err == nil {
		c.head = page.Register.Head
	}
	return err
}

// lastLanding is the last text that was landed.
func lastLanding(estate string) (text string, err error) {
	store, err := local.Open(estate, local.Options{State: filepath.Join(estate, "state")})
	if err != nil {
		return "", err
	}
	for landed, err := range register.Of(store, "bench").All(context.Background()) {
		if err != nil {
			return "", err
		}
		if landed.Note != "" {
			text = landed.Note + "\n"
		}
	}
	return text, nil
}

func (c *grantClient) landAndRelease(manifest grant.Digest) error {
	page, err := c.do(grant.Land{Meta: c.meta(), Session: c.session, Base: c.head, Manifest: manifest, Empty: "a benchmark"})
	if err != nil {
		return err
	}
	_, err = c.do(grant.Release{Meta: c.meta(), Session: c.session, ReadBack: page.Register.Head})
	c.leaveLine()
	return err
}

func (b *bench) grantContend() {
	who := []string{"grant", "grant+empty", "etcd", "lockfile"}
	long := time.Duration(b.pick(1200, 600)) * time.Millisecond
	for _, p := range b.places() {
		b.at(p.dir).withEtcd(func(there *bench) {
			there.rounds(b.pick(3, 1), who, func(id string) error { return there.grantCrowds(p, id, long) })
		})
	}
}

func (b *bench) grantCrowds(p place, id string, long time.Duration) error {
	for _, n := range []int{1, 8} {
		got, err := b.crowd(id, n, 0, long)
		if err != nil {
			return err
		}
		kase := fmt.Sprintf("%d processes, %s", n, p.name)
		b.book.add("grant-contend", kase, id, "rate", "/s", got.rate)
		b.book.add("grant-contend", kase, id, "slowest/fastest", "", got.evenness)
		b.book.add("grant-contend", kase, id, "wait p50", "ms", got.p50)
		b.book.add("grant-contend", kase, id, "p99", "ms", got.p99)
		if got.lost+got.overlaps > 0 {
			b.book.broken("grant-contend: %s: %s: %d steps lost, %d holds overlapped", id, kase, got.lost, got.overlaps)
		}
	}
	return nil
}

// grantCommand times one command on an idle container: the store is opened anew each time, as a program that is
// started for one command has it.
func (b *bench) grantCommand() {
	for _, p := range b.places() {
		for range b.pick(3, 1) {
			took, err := b.at(p.dir).heartbeats(b.pick(1000, 300))
			if err != nil {
				b.book.broken("grant-command: %v", err)
				return
			}
			slices.Sort(took)
			b.book.add("grant-command", p.name, "grant", "p50", "ms", percentile(took, 50)/1e6)
			b.book.add("grant-command", p.name, "grant", "p99", "ms", percentile(took, 99)/1e6)
			b.book.add("grant-command", p.name, "grant", "max", "ms", percentile(took, 100)/1e6)
		}
	}
}

func (b *bench) heartbeats(n int) (took []float64, err error) {
	estate, err := os.MkdirTemp(b.dir, "estate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(estate)
	c, err := newGrantClient(estate)
	if err == nil {
		err = c.acquire()
	}
	for range n {
		if err != nil {
			return nil, err
		}
		start := mono()
		fresh, oerr := local.Open(estate, local.Options{State: filepath.Join(estate, "state")})
		if oerr != nil {
			return nil, oerr
		}
		c.store = fresh
		_, err = c.do(grant.Heartbeat{Meta: c.meta(), Session: c.session})
		took = append(took, float64(mono()-start))
	}
	return took, err
}

// grantStatus reads the heads of many containers with long histories.
func (b *bench) grantStatus() {
	containers, revisions := b.pick(1000, 100), 1000
	for _, p := range b.places() {
		estate, err := os.MkdirTemp(p.dir, "estate-")
		if err == nil {
			err = plantContainers(estate, containers, revisions)
		}
		kase := fmt.Sprintf("%d containers of %d revisions, %s", containers, revisions, p.name)
		for range b.pick(9, 3) {
			if err != nil {
				break
			}
			var took float64
			if took, err = readHeads(estate, containers); err == nil {
				b.book.add("grant-status", kase, "grant", "time", "ms", took/1e6)
			}
		}
		if rerr := os.RemoveAll(estate); err == nil {
			err = rerr
		}
		if err != nil {
			b.book.broken("grant-status: %v", err)
		}
	}
}

// plantContainers writes containers as they lie on disk, without going through all their revisions: the last page
// is real, those before it have their names only. The hint lags by as much as it may.
func plantContainers(estate string, containers, revisions int) error {
	for i := range containers {
		name := fmt.Sprintf("container-%04d", i)
		dir := filepath.Join(estate, "containers", name)
		pages := filepath.Join(dir, "pages")
		page := func(rev int) string { return filepath.Join(pages, fmt.Sprintf("0001-%016d.json", rev)) }
		meta := grant.Meta{Container: name, Nonce: "benchmark", By: grant.Operator("bench")}
		now := grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: grant.TimeOf(time.Now())}}
		made, err := grant.Apply(grant.Revision{}, grant.Create{Meta: meta}, now)
		if err != nil {
			return err
		}
		last := *made.Page()
		last.Rev, last.Op, last.PrevHash = int64(revisions), grant.OpTouch, made.Hash()
		head, err := grant.Seal(&last)
		if err != nil {
			return err
		}
		err = errors.Join(os.MkdirAll(pages, 0o700), os.Mkdir(filepath.Join(dir, "pending"), 0o700),
			os.WriteFile(page(1), made.Bytes(), 0o600))
		for rev := 2; rev < revisions && err == nil; rev++ {
			err = os.Link(page(1), page(rev))
		}
		hint := fmt.Sprintf("0001-%016d.json\n", revisions-7)
		err = errors.Join(err, os.WriteFile(page(revisions), head.Bytes(), 0o600), os.WriteFile(filepath.Join(dir, "head"), []byte(hint), 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}

func readHeads(estate string, want int) (took float64, err error) {
	start := mono()
	store, err := local.Open(estate, local.Options{State: filepath.Join(estate, "state")})
	if err != nil {
		return 0, err
	}
	names, err := store.Containers(context.Background())
	if err != nil {
		return 0, err
	}
	if len(names) != want {
		return 0, fmt.Errorf("%d containers of %d", len(names), want)
	}
	for _, name := range names {
		if _, err := store.Head(context.Background(), name); err != nil {
			return 0, err
		}
	}
	return float64(mono() - start), nil
}
