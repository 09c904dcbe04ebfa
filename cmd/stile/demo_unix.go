//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

const (
	demoWriters = 8
	demoRecords = 25
)

// demo is one run of the demonstration.
type demo struct {
	dir    string
	exe    string
	broken int // promises that were not kept
}

func demoLocks() int {
	work, err := newWorkFolder("", "stile-demo-")
	if err != nil {
		return fail(err, false)
	}
	d := &demo{dir: work.path}
	if d.exe, err = os.Executable(); err == nil {
		err = d.play()
	}
	err = errors.Join(err, work.remove())
	if err != nil {
		return fail(err, false)
	}
	return allKept(d.broken)
}

func (d *demo) play() error {
	for i, scene := range []struct {
		title string
		play  func() error
	}{
		{"Without a lock", d.withoutLock},
		{"With 'stile run'", d.withLock},
		{"A holder is killed", d.killedHolder},
		{"Only the wrapper is killed", d.killedWrapper},
		{"A holder is stalled", d.stalledHolder},
	} {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		fmt.Fprintf(stdout, "%d. %s\n", i+1, scene.title)
		if err := scene.play(); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(scene.title), err)
		}
	}
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(stdout, "   "+format+"\n", args...) }

// promise prints what was promised and whether it was kept.
func (d *demo) promise(kept bool, format string, args ...any) {
	mark := "ok:"
	if !kept {
		mark = "BROKEN:"
		d.broken++
	}
	say("%s %s", mark, fmt.Sprintf(format, args...))
}

func (d *demo) stile(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: d.exe, Args: append([]string{"stile"}, args...)}
}

// exit runs stile to its end and gives its exit code and what it said.
func (d *demo) exit(args ...string) (int, string, error) {
	cmd := d.stile(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, "", err
	}
	return cmd.ProcessState.ExitCode(), string(out), nil
}

// holder is a "stile run" whose command stays until its input is closed.
type holder struct {
	cmd *exec.Cmd
	in  io.Closer
	out io.ReadCloser
}

// start starts a holder or, with entered false, one that may have to wait.
func (d *demo) start(entered bool, args ...string) (*holder, error) {
	cmd := d.stile(append(args, "--", d.exe, childVerb, "hold")...)
	// Pipes of our own, which the wrapper's end does not close: the command's
	// input must stay open when only the wrapper dies, and the end of its
	// output tells when the last of them has gone.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	input, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = input, w
	err = cmd.Start()
	_ = w.Close()
	_ = input.Close()
	h := &holder{cmd, in, r}
	if err == nil && entered {
		err = h.entered()
	}
	return h, err
}

// entered returns when the holder's command runs.
func (h *holder) entered() error {
	line, err := bufio.NewReader(h.out).ReadString('\n')
	if err != nil || line != "in\n" {
		return fmt.Errorf("the command did not start: %q: %w", line, err)
	}
	return nil
}

func (h *holder) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// end lets the command come to its end, and returns when all have gone.
func (h *holder) end() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
	_, _ = io.Copy(io.Discard, h.out)
	_ = h.out.Close()
}

func (d *demo) withoutLock() error {
	const total = demoWriters * demoRecords
	say("%d writers add %d records each to one JSON file, all at once:", demoWriters, demoRecords)
	say("read the file, add a record, replace the file.")
	// Whether writers meet is chance; that none did would show nothing.
	for range 5 {
		n, err := d.writeTogether("plain.json", "plain")
		if err != nil {
			return err
		}
		if n < total {
			say("-> of %d records %d are in the file: %d lost, and no error anywhere.", total, n, total-n)
			return nil
		}
	}
	say("-> by luck none of %d records was lost, in five tries.", total)
	return nil
}

func (d *demo) withLock() error {
	const total = demoWriters * demoRecords
	say("The same program, each time as 'stile run notes.json -- add …'.")
	n, err := d.writeTogether("notes.json", "locked")
	if err != nil {
		return err
	}
	d.promise(n == total, "of %d records %d are in the file.", total, n)
	return nil
}

// writeTogether lets all the writers add to one new file at once and counts
// the records that are in it afterwards.
func (d *demo) writeTogether(name, how string) (int, error) {
	file := filepath.Join(d.dir, name)
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		return 0, err
	}
	var writers []*exec.Cmd
	var errs []error
	for i := range demoWriters {
		cmd := d.stile(childVerb, "writer", how, file, strconv.Itoa(i), strconv.Itoa(demoRecords))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			errs = append(errs, err)
			break
		}
		writers = append(writers, cmd)
	}
	for _, cmd := range writers {
		errs = append(errs, cmd.Wait())
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var records []demoRecord
	if err := json.Unmarshal(b, &records); err != nil {
		return 0, err
	}
	distinct := make(map[demoRecord]bool)
	for _, r := range records {
		distinct[r] = true
	}
	return len(distinct), nil
}

func (d *demo) file() string { return filepath.Join(d.dir, "notes.json") }

func (d *demo) killedHolder() error {
	first, err := d.start(true, "run", "-F", d.file())
	if err != nil {
		return err
	}
	defer first.end()
	next, err := d.start(false, "run", "-w", "60", d.file())
	if err != nil {
		return err
	}
	defer next.end()
	if err := d.someoneWaits(); err != nil {
		return err
	}
	say("One process holds the lock, another waits. SIGKILL to the holder:")
	killed := time.Now()
	first.kill()
	if err := next.entered(); err != nil {
		return err
	}
	took := time.Since(killed)
	d.promise(true, "the waiter was in after %.1f ms, the start of its command included.", took.Seconds()*1000)
	return nil
}

// someoneWaits returns when the kernel shows a waiter.
func (d *demo) someoneWaits() error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r, err := kernlock.Status(d.file(), kernlock.Options{})
		if err != nil {
			return err
		}
		if r.Waiters != 0 { // -1: the system does not tell
			return nil
		}
	}
	return errors.New("the waiter never came to wait")
}

func (d *demo) killedWrapper() error {
	h, err := d.start(true, "run", d.file())
	if err != nil {
		return err
	}
	defer h.end()
	say("SIGKILL to 'stile run' alone, while its command works on:")
	h.kill()
	code, _, err := d.exit("run", "-n", d.file(), "--", d.exe, "version")
	if err != nil {
		return err
	}
	d.promise(code == exitHeld, "another 'stile run -n' is kept out (exit %d).", code)
	h.end()
	code, _, err = d.exit("run", d.file(), "--", d.exe, "version")
	if err != nil {
		return err
	}
	d.promise(code == 0, "when the command has ended, the next one enters (exit %d).", code)
	return nil
}

func (d *demo) stalledHolder() error {
	h, err := d.start(true, "run", "-F", "--agent", "sleepy", "--operation", "rewrite", d.file())
	if err != nil {
		return err
	}
	defer h.end()
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer h.kill()
	say("SIGSTOP to a holder, and somebody else waits half a second at most:")
	fmt.Fprintln(stdout)
	waiter := []string{"run", "-w", "0.5", "--agent", "patient", "notes.json", "--", d.exe, "version"}
	code, err := d.show(waiter, "$ stile run -w 0.5 --agent patient notes.json -- …")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	d.promise(code == exitHeld, "no endless wait: exit %d, and an incident for whoever looks after it.", code)
	fmt.Fprintln(stdout)
	if _, err := d.show([]string{"status", "notes.json"}, "$ stile status notes.json"); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	if _, err := d.show([]string{"incidents", "notes.json"}, "$ stile incidents notes.json"); err != nil {
		return err
	}
	log, err := kernlock.Incidents(d.file(), kernlock.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	n := 0
	for i := range log.Rows {
		if log.Rows[i].Holder != nil && log.Rows[i].Holder.PID == int64(h.cmd.Process.Pid) {
			n++
		}
	}
	d.promise(n == 1, "%s on file that %s the stalled process, pid %d.", plural(n, "incident", "incidents"),
		map[bool]string{true: "names", false: "name"}[n == 1], h.cmd.Process.Pid)
	return nil
}

// show runs a command in the demo's folder and prints it as a terminal would.
func (d *demo) show(args []string, prompt string) (int, error) {
	cmd := d.stile(args...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	fmt.Fprintln(stdout, "   "+prompt)
	for line := range strings.Lines(string(out)) {
		fmt.Fprint(stdout, "   | "+line)
	}
	return cmd.ProcessState.ExitCode(), nil
}
