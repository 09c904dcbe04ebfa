package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/lockfile"
)

// sim is an estate in memory, and processes that a test kills at will.
type sim struct {
	t     *testing.T
	mem   *vfstest.Mem
	clock *granttest.Clock
	dead  map[int64]bool
	rand  *rand.ChaCha8
	procs map[int64]*seam.Process
	n     int
	// session of the grant that the script works under
	secret grant.Secret
	grant  int64
	acked  []grant.Ref
}

func newSim(t *testing.T, class string) *sim {
	s := &sim{
		t: t, mem: vfstest.NewMem("/e", "/s"), clock: granttest.NewClock(), dead: map[int64]bool{},
		rand: rand.NewChaCha8([32]byte{}), procs: map[int64]*seam.Process{},
	}
	s.mem.Now = s.clock.Now
	if class == classes[1] {
		s.mem.LinkErr = syscall.ENOTSUP
	}
	return s
}

// jump is a clock on which sleeping takes no time of the world's.
type jump struct{ *granttest.Clock }

func (j jump) Sleep(ctx context.Context, d time.Duration) error {
	j.Step(d)
	return ctx.Err()
}

// store is the store as the process pid has it; its file operations pass the hook.
func (s *sim) store(mem *vfstest.Mem, pid int64, hook func(vfstest.Op) error) *Store {
	s.t.Helper()
	var fsys vfs.FS = mem
	opened := false
	if hook != nil {
		fsys = vfstest.Wrap(mem, func(op vfstest.Op) error {
			if !opened {
				return nil
			}
			return hook(op)
		})
	}
	if s.procs[pid] == nil {
		self := proc.Holder{PID: pid, Host: "here"}
		s.procs[pid] = seam.NewProcess(func() proc.Holder { return self }, func() string { return "0123abcd" }, true)
	}
	store, err := Open("/e", Options{
		State: "/s/stile", Estate: "e", fence: noFence,
		Seams: &seam.Set{
			FS: fsys, Clock: jump{s.clock}, Rand: s.rand, Process: s.procs[pid],
			Judge: func(h proc.Holder, _ string) proc.Judgement {
				if s.dead[h.PID] {
					return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
				}
				return proc.Judgement{Verdict: proc.Alive, Reason: proc.Running}
			},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	opened = true
	return store
}

func (s *sim) meta(by grant.Actor) grant.Meta {
	s.n++
	return grant.Meta{Container: "atlas", Nonce: fmt.Sprintf("nonce-%04d", s.n), By: by}
}

func (s *sim) session() grant.Session { return grant.Session{Grant: s.grant, Secret: s.secret} }

// step is one command of the script: made on the head, and run on a store.
type step struct {
	name string
	make func(s *sim, head *grant.Page) grant.Command
	// before is what else happens first.
	before func(*sim)
}

// script is one command of each kind, in an order in which each succeeds.
var script = []step{
	{"create", func(s *sim, _ *grant.Page) grant.Command {
		return grant.Create{Meta: s.meta(grant.Operator("olga"))}
	}, nil},
	{"petition", func(s *sim, _ *grant.Page) grant.Command { return grant.Petition{Meta: s.meta(grant.Agent("anna"))} }, nil},
	{"touch", func(s *sim, _ *grant.Page) grant.Command { return grant.Touch{Meta: s.meta(grant.Agent("anna"))} }, nil},
	{"acquire", acquiring, nil},
	{"heartbeat", func(s *sim, _ *grant.Page) grant.Command {
		return grant.Heartbeat{Meta: s.meta(grant.Agent("anna")), Session: s.session()}
	}, hour},
	{"ids", func(s *sim, _ *grant.Page) grant.Command {
		return grant.LeaseIDs{Meta: s.meta(grant.Agent("anna")), Session: s.session(), Count: 5}
	}, nil},
	{"block", func(s *sim, _ *grant.Page) grant.Command {
		return grant.AssignBlock{Meta: s.meta(grant.Agent("anna")), Session: s.session(), Worker: "ben", Note: "the north"}
	}, nil},
	{"land", landing, nil},
	{"release", func(s *sim, p *grant.Page) grant.Command {
		return grant.Release{Meta: s.meta(grant.Agent("anna")), Session: s.session(), ReadBack: p.Register.Head}
	}, nil},
	{"acquire again", acquiring, nil},
	{"take over", acquiring, func(s *sim) { s.clock.Step(5 * time.Hour) }},
	{"clear", func(s *sim, p *grant.Page) grant.Command {
		return grant.Clear{Meta: s.meta(grant.Operator("olga")), Reason: "silent", Seen: p.Rev}
	}, func(s *sim) { s.clock.Step(5 * time.Hour) }},
	{"petition after a clear", func(s *sim, _ *grant.Page) grant.Command {
		return grant.Petition{Meta: s.meta(grant.Agent("carl"))}
	}, nil},
	{"withdraw", func(s *sim, _ *grant.Page) grant.Command { return grant.Withdraw{Meta: s.meta(grant.Agent("carl"))} }, nil},
}

// tonight tells whether a step's faults are tried in every run; the others are in the long one.
func tonight(name string) bool {
	return os.Getenv("STILE_NIGHTLY") == "1" || slices.Contains([]string{"create", "acquire", "land", "clear"}, name)
}

func hour(s *sim) { s.clock.Step(time.Hour) }

func acquiring(s *sim, p *grant.Page) grant.Command {
	s.secret = grant.Secret{byte(s.n)}
	s.grant = p.Grant + 1
	return grant.Acquire{Meta: s.meta(grant.Agent("anna")), Session: s.secret.Hash()}
}

const artifact = "what is landed\n"

func landing(s *sim, p *grant.Page) grant.Command {
	return grant.Land{
		Meta: s.meta(grant.Agent("anna")), Session: s.session(), Base: p.Register.Head,
		Manifest: "4b0f5c0a7ee1b3bc4a9f0c83e3bb5c68e0b5e1cbb2e5e3d3a1b0fb33c4cb0f59",
	}
}

// run carries a command out, a landing's artifact first.
func (s *sim) run(store *Store, cmd grant.Command, since grant.Ref) error {
	if land, ok := cmd.(grant.Land); ok {
		d, _, err := store.Put(s.t.Context(), "atlas", grant.KindArtifact, strings.NewReader(artifact))
		if err != nil {
			return err
		}
		land.Manifest = d
		cmd = land
	}
	rev, _, err := store.Do(s.t.Context(), grant.Request{Command: cmd, Since: since})
	if err == nil {
		s.acked = append(s.acked, rev.Ref())
	}
	return err
}

// upTo plays the script before step i, and makes the command of that.
func (s *sim) upTo(i int) (cmd grant.Command, since grant.Ref) {
	s.t.Helper()
	store := s.store(s.mem, 1, nil)
	for k, st := range script[:i+1] {
		if st.before != nil {
			st.before(s)
		}
		var page *grant.Page
		if k > 0 {
			head, err := store.Head(s.t.Context(), "atlas")
			if err != nil {
				s.t.Fatal(err)
			}
			page, since = head.Page(), head.Ref()
		}
		cmd = st.make(s, page)
		if k < i {
			if err := s.run(store, cmd, grant.Ref{}); err != nil {
				s.t.Fatalf("%s: %v", st.name, err)
			}
		}
	}
	return cmd, since
}

// times counts the revisions with a command's nonce, in a chain that must hold.
func (s *sim) times(mem *vfstest.Mem, pid int64, cmd grant.Command) int {
	s.t.Helper()
	store := s.store(mem, pid, nil)
	chain, err := grant.Chain(s.t.Context(), store, "atlas")
	if errors.Is(err, grant.ErrLockMissing) {
		return 0
	}
	if err == nil {
		err = errors.Join(grant.Verify(chain), grant.Persisted(chain, s.acked...))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, r := range chain {
		if r.Page().Nonce == grant.MetaOf(cmd).Nonce {
			n++
		}
	}
	return n
}

// unblock is the operator's one command, where a torn page is in the way. It may be only without hard links.
func (s *sim) unblock(mem *vfstest.Mem, pid int64, class string) {
	s.t.Helper()
	store := s.store(mem, pid, nil)
	o := lockfile.Options{Seams: store.seams}
	if st, err := lockfile.Status("/e/containers/atlas/publish", o); err == nil && st.Holder.State == lockfile.Unreadable {
		if class == classes[0] {
			s.t.Fatal("with hard links there is a torn lock")
		}
		_, err := lockfile.Unlock(s.t.Context(), "/e/containers/atlas/publish", lockfile.UnlockOptions{Force: true, Seams: store.seams})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	_, err := store.Head(s.t.Context(), "atlas")
	if !errors.Is(err, grant.ErrBadPage) {
		return
	}
	if class == classes[0] {
		s.t.Fatalf("with hard links there is a torn page: %v", err)
	}
	_, kept, err := store.Restore(s.t.Context(), grant.Restore{Meta: s.meta(grant.Operator("olga")), Reason: "torn"})
	if kept == "" || err != nil && grant.CodeOf(err) != grant.CodeRollback {
		s.t.Fatalf("the one command that helps: kept %q, %v", kept, err)
	}
}

// settled wants that a retry of the command has its effect exactly once, whatever the first attempt came to, and
// that nothing unpublished is left.
func (s *sim) settled(mem *vfstest.Mem, pid int64, class string, cmd grant.Command, since grant.Ref) {
	s.t.Helper()
	s.unblock(mem, pid, class)
	if err := s.run(s.store(mem, pid, nil), cmd, since); err != nil {
		if _, create := cmd.(grant.Create); !create || grant.CodeOf(err) != grant.CodeExists {
			s.t.Fatalf("the retry: %v", err)
		}
	}
	if n := s.times(mem, pid, cmd); n != 1 {
		s.t.Fatalf("after the retry it was done %d times", n)
	}
	if err := s.run(s.store(mem, pid, nil), grant.Petition{Meta: s.meta(grant.Agent("zoe"))}, grant.Ref{}); err != nil {
		s.t.Fatalf("the next command: %v", err)
	}
	if left := mem.Names("/e/containers/atlas/pending"); len(left) > 0 {
		s.t.Fatalf("left: %q", left)
	}
}

// TestEveryOperationFails fails each file operation of one command of each kind: once, and from then on, and as if
// the answer alone was lost.
func TestEveryOperationFails(t *testing.T) {
	for _, class := range classes {
		for i, st := range script {
			if !tonight(st.name) {
				continue
			}
			t.Run(class+"/"+st.name, func(t *testing.T) {
				for _, mode := range []string{"once", "onward", "answer lost"} {
					var total int
					for n := 0; ; n++ {
						s := newSim(t, class)
						cmd, since := s.upTo(i)
						var err error = syscall.EIO
						if n%2 == 1 {
							err = syscall.ENOSPC
						}
						fault := err
						if mode == "answer lost" {
							fault = &vfstest.After{Err: err}
						}
						in := &vfstest.Injector{At: n, Err: fault, Onward: mode == "onward"}
						got := s.run(s.store(s.mem, 7, in.Before), cmd, grant.Ref{})
						if len(in.Hits()) == 0 {
							total = n
							break
						}
						s.afterFault(class, mode, in.Hits()[0], cmd, since, got)
					}
					if total < 20 {
						t.Errorf("%s: only %d operations", mode, total)
					}
				}
			})
		}
	}
}

func (s *sim) afterFault(class, mode string, op vfstest.Op, cmd grant.Command, since grant.Ref, got error) {
	s.t.Helper()
	where := fmt.Sprintf("%s, %s", mode, op)
	if got != nil && !errors.Is(got, syscall.EIO) && !errors.Is(got, syscall.ENOSPC) && !(mode != "once" && grant.CodeOf(got) != "") {
		s.t.Fatalf("%s: the error does not say so: %v", where, got)
	}
	if grant.CodeOf(got) == grant.CodeConflict {
		s.t.Fatalf("%s: called a conflict: %v", where, got)
	}
	s.unblock(s.mem, 7, class)
	n := s.times(s.mem, 9, cmd)
	switch {
	case got == nil && n != 1:
		s.t.Fatalf("%s: reported success, done %d times", where, n)
	case got != nil && n != 0 && !errors.Is(got, grant.ErrUnknown):
		s.t.Fatalf("%s: done, and reported %v", where, got)
	}
	if got == nil {
		s.powerCut(class, where)
	}
	s.settled(s.mem, 7, class, cmd, since)
}

// powerCut wants what was acknowledged in every image of the disk: failure 24.
func (s *sim) powerCut(class, where string) {
	s.t.Helper()
	for image := range s.mem.CrashImages(6, 1) {
		s.dead[7], s.dead[1] = true, true
		store := s.store(image, 9, nil)
		chain, err := grant.Chain(s.t.Context(), store, "atlas")
		if err == nil {
			err = errors.Join(grant.Verify(chain), grant.Persisted(chain, s.acked...))
		}
		if err != nil {
			s.t.Fatalf("%s: after a power cut: %v", where, err)
		}
		s.artifact(store, chain)
		s.dead[7], s.dead[1] = false, false
	}
}

// artifact wants that what the head's landing names can be read.
func (s *sim) artifact(store *Store, chain []grant.Revision) {
	s.t.Helper()
	for _, r := range chain {
		if r.Page().Op != grant.OpLand {
			continue
		}
		f, err := store.Get(s.t.Context(), "atlas", grant.KindArtifact, r.Page().Landing.SHA256)
		if err != nil {
			s.t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || string(data) != artifact {
			s.t.Fatalf("what landed reads %q, %v", data, err)
		}
	}
}

// TestKilledAtEveryOperation ends the process at each file operation, and cuts the power then.
func TestKilledAtEveryOperation(t *testing.T) {
	for _, class := range classes {
		for i, st := range script {
			if !tonight(st.name) {
				continue
			}
			t.Run(class+"/"+st.name, func(t *testing.T) {
				torn := false
				for n := 0; ; n++ {
					s := newSim(t, class)
					cmd, since := s.upTo(i)
					in := &vfstest.Injector{At: n, Kill: true}
					err := s.run(s.store(s.mem, 7, in.Before), cmd, grant.Ref{})
					if len(in.Hits()) == 0 {
						break
					}
					if err == nil {
						s.powerCut(class, "killed at "+in.Hits()[0].String())
					}
					s.dead[7] = true
					if _, err := s.store(s.mem, 9, nil).Head(t.Context(), "atlas"); errors.Is(err, grant.ErrBadPage) {
						torn = true
					}
					for image := range s.mem.CrashImages(4, uint64(n)) {
						s.dead[1] = true
						c := *s
						c.acked = append([]grant.Ref(nil), s.acked...)
						c.unblock(image, 9, class)
						if got := c.times(image, 9, cmd); got > 1 {
							t.Fatalf("done %d times", got)
						}
						c.settled(image, 9, class, cmd, since)
						s.dead[1] = false
					}
					s.settled(s.mem, 9, class, cmd, since)
				}
				if torn != (class == classes[1]) {
					t.Errorf("%s: a torn page was met: %v", class, torn)
				}
			})
		}
	}
}
