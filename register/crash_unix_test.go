//go:build unix

package register

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/lockfile"
)

// childEnv makes this test binary a process that lands.
const childEnv = "STILE_REGISTER_CHILD"

// nightly asks for the long variants.
var nightly = os.Getenv("STILE_NIGHTLY") != ""

func TestMain(m *testing.M) {
	if task := os.Getenv(childEnv); task != "" {
		if err := childLands(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// task is what a child lands.
type task struct {
	Dir, Src, Agent, Nonce, Secret string
	Grant                          int64
	Base                           grant.Digest
	Again                          bool // there may have been an attempt
	KillAt                         int  // it kills itself instead of its nth file operation; -1: never
	NoLinks                        bool
	Collect                        bool // it collects instead
}

func childLands(text string) error {
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	var n atomic.Int64
	fsys := vfstest.Wrap(vfs.OS(), func(op vfstest.Op) error {
		if int(n.Add(1))-1 == k.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if op.Kind == "link" && k.NoLinks {
			return syscall.EPERM
		}
		return nil
	})
	s, err := local.Open(k.Dir, local.Options{State: filepath.Join(k.Dir, "state"), Seams: &seam.Set{FS: fsys}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	if k.Collect {
		_, err := Collect(ctx, s, box, time.Minute, false)
		return err
	}
	l := Landing{
		Command: grant.Land{
			Meta:    grant.Meta{Container: box, Nonce: k.Nonce, By: grant.Agent(k.Agent)},
			Session: grant.Session{Grant: k.Grant}, Base: k.Base,
		},
		Tree: &Tree{}, Anywhere: k.Again,
	}
	if _, err := hex.Decode(l.Command.Secret[:], []byte(k.Secret)); err != nil {
		return err
	}
	if err := l.Tree.AddDir(k.Src); err != nil {
		return err
	}
	r, err := Of(s, box).Land(ctx, l)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("landed %d\n", r.Seq)
	return err
}

func (k *task) command(t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return cmd
}

// run gives what the child said, and whether it was killed.
func (k *task) run(t *testing.T) (said string, killed bool, err error) {
	t.Helper()
	cmd := k.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return out.String(), true, nil
		}
		err = fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), false, err
}

// realWorld is a world by the system's clock, for children.
func realWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), clock: &clock{t: time.Now()}}
	w.open(nil)
	w.must(w.do(grant.Create{Meta: w.meta(grant.Operator("op"))}))
	return w
}

func (a *agent) task(src string) *task {
	a.w.t.Helper()
	return &task{
		Dir: a.w.dir, Src: src, Agent: a.name, Nonce: a.w.nonce(), Secret: hex.EncodeToString(a.s.Secret[:]), Grant: a.s.Grant,
		Base: a.w.page().Register.Head, KillAt: -1,
	}
}

// folderOf makes a folder to land.
func folderOf(t *testing.T, sizes ...int) string {
	t.Helper()
	dir := t.TempDir()
	for i, n := range sizes {
		data := make([]byte, n)
		_, _ = rand.Read(data)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unlock is what an operator does about lock files that were left empty: without hard links a writer that dies
// between making one and filling it leaves such a block. It says how many there were.
func (w *world) unlock() int {
	w.t.Helper()
	found := 0
	for _, dir := range []string{filepath.Join(w.dir, "containers", box), filepath.Join(w.dir, "state")} {
		w.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".lock") || !d.Type().IsRegular() {
				return err
			}
			target := strings.TrimSuffix(path, ".lock")
			st, err := lockfile.Status(target, lockfile.Options{})
			if err != nil || !st.Locked || st.Holder.State != lockfile.Unreadable {
				return nil //nolint:nilerr // a kernel lock's, or one whose dead holder the next writer sees
			}
			found++
			_, err = lockfile.Unlock(context.Background(), target, lockfile.UnlockOptions{Force: true})
			return err
		}))
	}
	return found
}

// A landing that is killed at whatever file operation is there whole or not at all, and the same one lands
// afterwards, once. With hard links nobody has to help; without them at most a page is torn, by name.
func TestLandingKilledAtEveryOperation(t *testing.T) {
	for _, noLinks := range []bool{false, true} {
		t.Run(map[bool]string{false: "hard links", true: "no hard links"}[noLinks], func(t *testing.T) {
			blocks, n := 0, 0
			for ; ; n++ {
				// From the same start each time: else n and the operations would move together.
				w := realWorld(t)
				a := w.acquire("a")
				k := a.task(folderOf(t, 300, 70))
				k.NoLinks, k.KillAt = noLinks, n
				seq := w.page().Register.Seq
				said, killed, err := k.run(t)
				if err != nil {
					t.Fatalf("operation %d: %v", n, err)
				}
				if noLinks {
					blocks += w.unlock()
				}
				w.open(nil) // the parent's memory is of before
				head, err := w.store.Head(context.Background(), box)
				var block *local.BlockError
				if noLinks && errors.As(err, &block) {
					blocks++
					if !strings.Contains(block.Hint, "stile grant restore") || said != "" {
						t.Errorf("operation %d: %v, child said %q", n, err, said)
					}
					continue
				}
				w.must(err)
				got := head.Page().Register.Seq
				if got != seq && got != seq+1 || said != "" && got != seq+1 {
					t.Fatalf("operation %d: the register went from %d to %d, the child said %q", n, seq, got, said)
				}
				w.verify()
				if !killed {
					break
				}
				k.KillAt, k.Again = -1, true
				if said, _, err = k.run(t); err != nil || said != fmt.Sprintf("landed %d\n", seq+1) {
					t.Fatalf("operation %d: again: %q, %v", n, said, err)
				}
				w.open(nil)
				w.verify()
				out := filepath.Join(t.TempDir(), "out")
				_, m, err := w.reg.Content(context.Background(), "")
				w.must(err)
				w.must(w.reg.Export(context.Background(), m, out, false))
				same(t, k.Src, out)
				if left, err := os.ReadDir(filepath.Join(w.dir, "containers", box, "pending")); err != nil || len(left) > 0 {
					t.Errorf("operation %d: left: %v, %v", n, left, err)
				}
			}
			if n < 40 || noLinks && blocks == 0 || !noLinks && blocks > 0 {
				t.Errorf("%d operations, %d blocks", n, blocks)
			}
			t.Logf("%d operations, %d named blocks", n, blocks)
		})
	}
}

// Killed at any moment, with artifacts that take their time.
func TestLandingKilledAtRandom(t *testing.T) {
	rounds, size := 20, 4<<20
	if nightly {
		rounds, size = 200, 20<<20
	}
	w := realWorld(t)
	a := w.acquire("a")
	src := folderOf(t, size, 1000)
	began := time.Now()
	if said, _, err := a.task(src).run(t); err != nil {
		t.Fatal(said, err)
	}
	whole := time.Since(began)
	acknowledged, killed := int64(1), 0
	for i := range rounds {
		w.must(os.WriteFile(filepath.Join(src, "f1"), fmt.Appendf(nil, "round %d", i), 0o644))
		data, err := os.ReadFile(filepath.Join(src, "f0"))
		w.must(err)
		data[i%len(data)]++
		w.must(os.WriteFile(filepath.Join(src, "f0"), data, 0o644))
		w.open(nil)
		k := a.task(src)
		before := w.page().Register.Seq
		cmd := k.command(t)
		var out bytes.Buffer
		cmd.Stdout = &out
		w.must(cmd.Start())
		timer := time.AfterFunc(time.Duration(mathrand.Int64N(int64(whole)+1)), func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		timer.Stop()
		if err != nil {
			killed++
		}
		w.open(nil)
		after := w.page().Register.Seq
		if out.Len() > 0 {
			acknowledged++
		}
		if after < acknowledged || after > before+1 || out.Len() > 0 && after != before+1 {
			t.Fatalf("round %d: %d landings, %d acknowledged; before it %d", i, after, acknowledged, before)
		}
		if after == before {
			k.Again = true
			if said, _, err := k.run(t); err != nil {
				t.Fatalf("round %d: again: %q, %v", i, said, err)
			}
		}
		acknowledged = before + 1
		w.open(nil)
		if got := w.cat("", "f1"); got != fmt.Sprintf("round %d", i) {
			t.Fatalf("round %d: %q", i, got)
		}
	}
	w.verify()
	t.Logf("%d of %d were killed", killed, rounds)
	before := w.collect(false)
	w.verify()
	if before.Kept == 0 {
		t.Error("nothing is kept")
	}
}

// Eight landing processes, and collections beside them: nothing that landed goes.
func TestCollectBesideLandings(t *testing.T) {
	span := 1500 * time.Millisecond
	if nightly {
		span = 10 * time.Second
	}
	w := realWorld(t)
	a := w.acquire("a")
	end := time.Now().Add(span)
	type outcome struct {
		landed, collected int
		err               error
	}
	done := make(chan outcome)
	work := func(collect bool) {
		var o outcome
		for i := 0; time.Now().Before(end) && o.err == nil; i++ {
			k := a.task(folderOf(t, 100+i, 5000))
			k.Collect = collect
			_, _, err := k.run(t)
			switch {
			case err == nil && collect:
				o.collected++
			case err == nil:
				o.landed++
			case strings.Contains(err.Error(), "the register's head is"): // another was quicker: it tries again
			default:
				o.err = err
			}
		}
		done <- o
	}
	for range 8 {
		go work(false)
	}
	go work(true)
	total := outcome{}
	for range 9 {
		o := <-done
		total.landed += o.landed
		total.collected += o.collected
		total.err = errors.Join(total.err, o.err)
	}
	w.must(total.err)
	w.open(nil)
	if int64(total.landed) != w.page().Register.Seq || total.landed == 0 || total.collected == 0 {
		t.Errorf("%d landings acknowledged, %d there; %d collections", total.landed, w.page().Register.Seq, total.collected)
	}
	w.verify()
	w.collect(false)
	w.verify()
	t.Logf("%d landings, %d collections", total.landed, total.collected)
}
