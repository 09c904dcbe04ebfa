package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

const childVariable = "STILE_TEST_LOCAL_CHILD"

func TestMain(m *testing.M) {
	if work := os.Getenv(childVariable); work != "" {
		if err := runChild(work); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is what a process of TestHistories is told.
type child struct {
	Estate, State, Class, Agent, Log string
	Seed                             uint64
}

// worker is such a process at work.
type worker struct {
	child
	store *Store
	log   *os.File
	rand  *rand.Rand
	n     int
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func runChild(work string) error {
	w := &worker{}
	if err := json.Unmarshal([]byte(work), &w.child); err != nil {
		return err
	}
	w.rand = rand.New(rand.NewPCG(w.Seed, 1))
	var err error
	if w.log, err = os.OpenFile(w.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if w.store, err = Open(w.Estate, Options{State: w.State, Seams: &seam.Set{FS: classFS(w.Class)}}); err != nil {
		return err
	}
	// It ends with its standard input, so that no test leaves one behind.
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for {
		w.round()
	}
}

func (w *worker) write(e event) {
	data, err := json.Marshal(e)
	if err == nil {
		_, err = w.log.Write(append(data, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// losing loses the answers of some swaps.
type losing struct {
	*Store
	lose bool
}

func (l *losing) Swap(ctx context.Context, base grant.Ref, next grant.Revision) error {
	err := l.Store.Swap(ctx, base, next)
	if l.lose {
		l.lose = false
		return grant.ErrUnknown
	}
	return err
}

// do carries a command out, with an answer lost now and then, and logs both ends of it.
func (w *worker) do(mine int64, command func(grant.Meta) grant.Command) (*grant.Page, bool) {
	w.n++
	meta := grant.Meta{Container: "atlas", Nonce: fmt.Sprintf("%s-%d", w.Agent, w.n), By: grant.Agent(w.Agent)}
	cmd := command(meta)
	w.write(event{ID: w.n, T: monotonic(), Kind: cmd.Op(), Nonce: meta.Nonce, Mine: mine})
	s := &losing{w.store, w.rand.IntN(10) == 0}
	ctx, cancel := context.WithCancel(context.Background())
	if w.rand.IntN(20) == 0 {
		// Nobody waits for the answer: it may still happen, and the log says that nobody knows.
		time.AfterFunc(time.Duration(w.rand.IntN(1000))*time.Microsecond, cancel)
	}
	rev, _, err := grant.Do(ctx, s, grant.Request{Command: cmd, Env: func(ctx context.Context, _ grant.Revision) (grant.Env, error) {
		now, err := w.store.Now(ctx)
		return grant.Env{Now: grant.Stamp{Source: grant.SourceStore, T: now}}, err
	}})
	cancel()
	r := event{ID: w.n, Return: true, T: monotonic()}
	var refused *grant.Refusal
	switch {
	case err == nil:
		r.Page = seenOf(rev.Page())
	case errors.As(err, &refused):
		r.Code = refused.Code
	default:
		r.Lost = true
	}
	w.write(r)
	return rev.Page(), err == nil
}

func (w *worker) read() *grant.Page {
	w.n++
	w.write(event{ID: w.n, T: monotonic(), Kind: opRead})
	head, err := w.store.Head(context.Background(), "atlas")
	r := event{ID: w.n, Return: true, T: monotonic(), Lost: err != nil}
	if err == nil {
		r.Page = seenOf(head.Page())
	}
	w.write(r)
	return head.Page()
}

// round is one try to get the container, and what an agent does who has it.
func (w *worker) round() {
	head := w.read()
	if head == nil {
		return
	}
	if head.State == grant.StateHeld && w.rand.IntN(8) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		_ = w.store.Watch(ctx, "atlas", grant.Ref{Epoch: head.Epoch, Rev: head.Rev})
		cancel()
	}
	if now, err := w.store.Now(context.Background()); err == nil && head.State == grant.StateHeld && now >= head.Expiry && w.rand.IntN(3) == 0 {
		w.do(0, func(m grant.Meta) grant.Command {
			m.By = grant.Operator(w.Agent)
			return grant.Clear{Meta: m, Reason: "silent", Seen: head.Rev}
		})
		return
	}
	var s grant.Session
	for i := range s.Secret {
		s.Secret[i] = byte(w.rand.IntN(256))
	}
	page, ok := w.do(0, func(m grant.Meta) grant.Command { return grant.Acquire{Meta: m, Session: s.Secret.Hash()} })
	if !ok {
		return
	}
	s.Grant = page.Grant
	for range 1 + w.rand.IntN(2) {
		if w.rand.IntN(2) == 0 {
			w.do(s.Grant, func(m grant.Meta) grant.Command { return grant.Heartbeat{Meta: m, Session: s} })
		}
		text := fmt.Sprintf("%s %d", w.Agent, w.n)
		d, _, err := w.store.Put(context.Background(), "atlas", grant.KindArtifact, strings.NewReader(text))
		if err != nil {
			return
		}
		base := page.Register.Head
		landed, ok := w.do(s.Grant, func(m grant.Meta) grant.Command { return grant.Land{Meta: m, Session: s, Base: base, Manifest: d} })
		if !ok {
			return
		}
		page = landed
	}
	head2 := page.Register.Head
	w.do(s.Grant, func(m grant.Meta) grant.Command { return grant.Release{Meta: m, Session: s, ReadBack: head2} })
}

// TestHistories lets eight processes contend for a container while they are killed and stopped past their expiry,
// and holds what they saw against the model, and the chain against the invariants.
func TestHistories(t *testing.T) {
	for _, class := range classes {
		t.Run(class, func(t *testing.T) { histories(t, class) })
	}
}

type process struct {
	name string
	cmd  *exec.Cmd
	stop func() error
}

func histories(t *testing.T, class string) {
	c := child{Estate: estateDir(t), State: t.TempDir(), Class: class}
	logs := t.TempDir()
	store, err := Open(c.Estate, Options{State: c.State, Seams: &seam.Set{FS: classFS(class)}})
	if err != nil {
		t.Fatal(err)
	}
	params := grant.Params{Cap: 60, Extension: 1, Window: 1, PetitionIdle: 60}
	create := grant.Create{Meta: grant.Meta{Container: "atlas", Nonce: "the-first", By: grant.Operator("olga")}, Params: params}
	if _, _, err := store.Do(t.Context(), grant.Request{Command: create}); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var files []string
	start := func() *process {
		w := c
		w.Agent = fmt.Sprintf("agent%d", len(files))
		w.Log, w.Seed = filepath.Join(logs, w.Agent), dice.Uint64()
		files = append(files, w.Log)
		work, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		p := exec.Command(os.Args[0], "-test.run=^$")
		p.Env = append(os.Environ(), childVariable+"="+string(work))
		p.Stderr = os.Stderr
		in, err := p.StdinPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return &process{w.Agent, p, in.Close}
	}
	procs := make([]*process, 8)
	for i := range procs {
		procs[i] = start()
	}
	defer func() {
		for _, p := range procs {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	}()
	rounds := 4
	if os.Getenv("STILE_NIGHTLY") == "1" {
		rounds = 120
	}
	for range rounds {
		before := headOf(t, store)
		i := dice.IntN(len(procs))
		// As a rule the holder, if it is at work still.
		holder := func(p *process) bool { return before.Holder != nil && p.name == before.Holder.Agent }
		if k := slices.IndexFunc(procs, holder); k >= 0 && dice.IntN(3) > 0 {
			i = k
		}
		p := procs[i]
		if dice.IntN(2) == 0 {
			if err := errors.Join(p.cmd.Process.Kill(), waitKilled(p.cmd)); err != nil {
				t.Fatal(err)
			}
			procs[i] = start()
			until(t, store, before, false, func(p *grant.Page, _ bool) bool { return p.Grant > before.Grant })
			continue
		}
		// Whoever holds now, if it is this one, is overtaken meanwhile; unless it was stopped inside the fence, or
		// while it wrote a page in place, where nobody can.
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		last, still, half := int64(0), 0, 0
		until(t, store, before, true, func(p *grant.Page, whole bool) bool {
			if still++; p.Rev != last {
				last, still = p.Rev, 0
			}
			if !whole {
				half++
			}
			return p.Grant > before.Grant+1 || still > 10 || half > 1
		})
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range procs {
		if err := errors.Join(p.stop(), p.cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
	unblocked(t, store)
	chain, err := grant.Chain(t.Context(), store, "atlas")
	if err == nil {
		err = grant.Verify(chain)
	}
	if err != nil {
		t.Fatal(err)
	}
	ops, counts, err := operations(files, chain)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d revisions, %d grants, %d operations: %v", len(chain), chain[len(chain)-1].Page().Grant, len(ops), counts)
	if !porcupine.CheckOperations(containerModel, ops) {
		result, info := porcupine.CheckOperationsVerbose(containerModel, ops, time.Minute)
		name := filepath.Join(os.TempDir(), fmt.Sprintf("stile-history-%d.html", seed))
		t.Fatalf("not linearizable (%s): %s %v", result, name, porcupine.VisualizePath(containerModel, info, name))
	}
}

func waitKilled(cmd *exec.Cmd) error {
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		return fmt.Errorf("the killed process ended with %w", err)
	}
	return nil
}

// unblocked does what an operator does, where a killed writer left half a page or half a lock.
func unblocked(t *testing.T, s *Store) {
	t.Helper()
	publish := filepath.Join(s.root, "atlas", publishName)
	if st, err := lockfile.Status(publish, lockfile.Options{}); err == nil && st.Locked && st.Holder.State == lockfile.Unreadable {
		if _, err := lockfile.Unlock(t.Context(), publish, lockfile.UnlockOptions{Force: true}); err != nil && !errors.Is(err, lockfile.ErrChanged) {
			t.Fatal(err)
		}
	}
	if _, err := s.Head(t.Context(), "atlas"); errors.Is(err, grant.ErrBadPage) {
		if _, err := s.SetAside(t.Context(), "atlas"); err != nil {
			t.Fatal(err)
		}
	}
}

// headOf is the head.
func headOf(t *testing.T, s *Store) *grant.Page {
	t.Helper()
	unblocked(t, s)
	head, err := s.Head(t.Context(), "atlas")
	if err != nil {
		t.Fatal(err)
	}
	return head.Page()
}

// until waits for a page that is as asked, from the last one that was seen. It is told false for a page that is
// half there, whose writer was stopped in the middle of it: he lives, and nobody may set it aside.
func until(t *testing.T, s *Store, p *grant.Page, stopped bool, done func(p *grant.Page, whole bool) bool) {
	t.Helper()
	for {
		whole := true
		if stopped {
			// Not for as long as Head waits for such a writer, and so does every process.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			head, err := s.Head(ctx, "atlas")
			cancel()
			switch whole = err == nil; {
			case whole:
				p = head.Page()
			case !errors.Is(err, grant.ErrBadPage) && !errors.Is(err, context.DeadlineExceeded):
				t.Fatal(err)
			}
		} else {
			p = headOf(t, s)
		}
		if done(p, whole) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_ = s.Watch(ctx, "atlas", grant.Ref{Epoch: p.Epoch, Rev: p.Rev})
		cancel()
	}
}
