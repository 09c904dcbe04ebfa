package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bench is one run: where it works and what it found.
type bench struct {
	quick    bool
	dir      string // lock files: on the filesystem that is measured
	mem      string // mapped files: in memory where there is such a folder
	self     string
	floor    string // "" without a C compiler
	node     string // "" without node, or without npm's peers in modules
	py       string // a Python that has filelock; "" without
	npm      string // where npm's peers are
	spawn    string
	dispatch string // c/dispatch.c
	etcd     string // peers/etcd; "" without
	etcdAt   string // where its server listens; "" while there is none
	other    place  // the other kind of ext4; no folder when there is none
	brief    bool   // a quick run of everything has no time for the image
	stile    string // "" while the tool does not exist
	bare     string
	flock    string
	book     *book
	seq      int
}

// pick is a number for the full run and one for the quick run.
func (b *bench) pick(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// fresh gives a run its own lock and page.
func (b *bench) fresh(name, who string) (job, error) {
	b.seq++
	target := filepath.Join(b.dir, fmt.Sprintf("t%d", b.seq))
	if err := os.WriteFile(target, []byte("[]\n"), 0o600); err != nil {
		return job{}, err
	}
	return job{name: name, who: who, path: target, page: filepath.Join(b.mem, fmt.Sprintf("p%d", b.seq))}, nil
}

func (b *bench) discard(j job) {
	beside, _ := filepath.Glob(j.path + ".*") // locks, databases, estates
	for _, p := range append(beside, j.path) {
		_ = os.RemoveAll(p)
	}
	logs, _ := filepath.Glob(j.page + "*")
	for _, l := range logs {
		_ = os.Remove(l)
	}
}

// can says whether the contestant can run here; when it cannot, the book
// names it.
func (b *bench) can(who string) bool {
	c, ok := findContestant(who)
	switch {
	case c.in == "c" && b.floor == "":
		b.book.missing("%s: no C compiler", who)
	case c.in == "node" && b.node == "":
		b.book.missing("%s: no node, or npm could not install it", who)
	case c.in == "python" && b.py == "":
		b.book.missing("%s: no Python with the module filelock", who)
	case c.in == "etcd" && b.etcdAt == "":
		b.book.missing("%s: no server", who)
	default:
		return ok
	}
	return false
}

// at is the bench with its files in another folder.
func (b *bench) at(dir string) *bench {
	there := *b
	there.dir = dir
	return &there
}

// worker is one process of a run.
type worker struct {
	who  string
	cmd  *exec.Cmd
	out  *bufio.Scanner
	errs bytes.Buffer
	stop context.CancelFunc
}

// tooLong ends a worker that hangs. No job comes near it.
const tooLong = 3 * time.Minute

func (b *bench) start(j job) (*worker, error) {
	argv := []string{b.self, "worker"}
	switch c, _ := findContestant(j.who); c.in {
	case "c":
		argv[0] = b.floor
	case "node":
		argv = []string{b.node, filepath.Join("peers", "worker.js")}
	case "python":
		argv = []string{b.py, filepath.Join("peers", "worker.py")}
	case "etcd":
		argv[0] = b.etcd
	}
	argv = append(argv, j.args()...)
	if argv[0] == b.etcd {
		argv = append(argv, "server="+b.etcdAt)
	}
	if argv[0] == b.node {
		argv = append(argv, "modules="+b.npm)
	}
	return b.launch(j, argv)
}

func (b *bench) launch(j job, argv []string) (*worker, error) {
	ctx, stop := context.WithTimeout(context.Background(), tooLong)
	w := &worker{who: j.who, stop: stop}
	w.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	w.cmd.Stderr = &w.errs
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no worker outlives a bench that is killed
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		stop()
		return nil, err
	}
	w.out = bufio.NewScanner(out)
	if err := w.cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	return w, nil
}

// startReady starts a worker and waits until it may be let go.
func (b *bench) startReady(j job) (*worker, error) {
	w, err := b.start(j)
	if err == nil {
		err = w.ready()
	}
	return w, err
}

func (w *worker) ready() error {
	if w.out.Scan() && w.out.Text() == "ready" {
		return nil
	}
	_, err := w.finish()
	if err == nil {
		err = errors.New("worker was never ready")
	}
	return err
}

// finish reads a worker's figures and its end.
func (w *worker) finish() (map[string]float64, error) {
	defer w.stop()
	got := map[string]float64{}
	for w.out.Scan() {
		k, v, _ := strings.Cut(w.out.Text(), " ")
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			continue
		}
		got[k] = n
	}
	if err := w.cmd.Wait(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(w.errs.String()), "\n")
		return got, fmt.Errorf("%s: %w: %s", w.who, err, first)
	}
	return got, nil
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	w.stop()
}

// compile builds what the bench needs besides itself. What cannot be built is
// named as missing, and the rest runs.
func (b *bench) compile(tmp string) {
	var err error
	if b.self, err = os.Executable(); err != nil {
		b.logf("%v", err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		b.book.missing("C floor and spawn loop: no C compiler")
	} else {
		for _, p := range []struct {
			src string
			dst *string
		}{{"floor", &b.floor}, {"spawn", &b.spawn}, {"dispatch", &b.dispatch}} {
			bin := filepath.Join(tmp, p.src)
			if out, err := exec.Command(cc, "-O2", "-o", bin, filepath.Join("c", p.src+".c")).CombinedOutput(); err != nil {
				b.book.missing("c/%s.c: %v: %s", p.src, err, out)
				continue
			}
			*p.dst = bin
		}
	}
	b.findPeers(tmp)
	b.buildEtcd(tmp)
	if b.flock, err = exec.LookPath("flock"); err != nil {
		b.book.missing("flock(1): not installed")
	}
	b.bare = b.goBuild(tmp, "barerun", ".", "./barerun")
	if b.stile != "" {
		return // given by the caller
	}
	if _, err := os.Stat(filepath.Join("..", "cmd", "stile")); err != nil {
		b.book.missing("stile run: cmd/stile is not in this tree")
	} else {
		b.stile = b.goBuild(tmp, "stile", "..", "./cmd/stile")
	}
}

// findPeers looks for the contestants of other languages. npm's are installed
// into the bench's own folder, at the versions that peers/package.json names.
func (b *bench) findPeers(tmp string) {
	b.npm = filepath.Join(tmp, "npm")
	if node, err := exec.LookPath("node"); err == nil && os.Mkdir(b.npm, 0o700) == nil {
		list, err := os.ReadFile(filepath.Join("peers", "package.json"))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.npm, "package.json"), list, 0o600)
		}
		if err == nil {
			cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
			cmd.Dir = b.npm
			err = cmd.Run()
		}
		if err == nil {
			b.node = node
		}
	}
	for _, py := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(py, "-c", "import filelock").Run() == nil {
			b.py = py
			return
		}
	}
}

func (b *bench) goBuild(tmp, name, dir, pkg string) string {
	bin := filepath.Join(tmp, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.book.missing("%s: does not build: %s", name, strings.TrimSpace(string(out)))
		return ""
	}
	return bin
}
