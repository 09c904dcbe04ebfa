package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/proc"
)

func doctorVerb() verb {
	return verb{
		name:     "doctor",
		brief:    "test what a folder's filesystem can do",
		synopsis: "[--json] [--estate DIR] [DIR]",
		detail: `Tests the folder itself (by default the current one), with real files and a second
process, and says which of the three ways over the fence are safe there: the
kernel lock ('stile run'), the lock file and the grant. It leaves nothing behind.
It also says which estate the commands begun there use, and why.

Exit code: 0 when all three are safe; 1 when the tests could not be made; 2 when
one is unsafe or works with a caveat.`,
		examples: `stile doctor
stile doctor --json /mnt/shared | jq .kernel_lock.verdict`,
		options:  func() []option { return new(doctorFlags).options() },
		operands: "DIR",
		run:      cmdDoctor,
	}
}

type doctorFlags struct {
	json   bool
	estate string
}

func (f *doctorFlags) options() []option {
	return []option{estateOption(&f.estate), jsonOption(&f.json)}
}

// check is one thing that was tried.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type verdict struct {
	Verdict string   `json:"verdict"` // safe, caveat or unsafe
	Reasons []string `json:"reasons"`
}

type diagnosis struct {
	Folder     string  `json:"folder"`
	Filesystem string  `json:"filesystem"`
	Local      bool    `json:"local"`
	Checks     []check `json:"checks"`
	KernelLock verdict `json:"kernel_lock"`
	LockFile   verdict `json:"lock_file"`
	Grant      verdict `json:"grant"`

	Estate    *estateInUse `json:"estate"`
	EstateErr *errorObject `json:"estate_error,omitempty"`
}

func cmdDoctor(args []string) int {
	var f doctorFlags
	p, err := parse(args, f.options(), false)
	if err != nil {
		return fail(err, f.json || wantsJSON(args))
	}
	dir, err := onePath(p)
	if err != nil {
		return fail(err, f.json)
	}
	d, err := diagnose(dir)
	if err != nil {
		report(stdout, classify(err), f.json)
		return exitFailed
	}
	in, refused := lookForEstate(f.estate, dir)
	d.Estate = in
	if refused != nil {
		d.EstateErr = newErrorObject(refused)
	}
	if f.json {
		printJSON(stdout, d)
	} else {
		d.print()
		fmt.Fprintf(stdout, "estate       %s\n", estateText(in, refused))
	}
	for _, v := range []verdict{d.KernelLock, d.LockFile, d.Grant} {
		if v.Verdict != "safe" {
			return exitProblem
		}
	}
	return 0
}

// workFolder is the folder that the tests use. It is removed at the end and
// at a signal; between two steps nothing is under way that could fill it again.
type workFolder struct {
	path string
	mu   sync.Mutex
}

func newWorkFolder(dir, pattern string) (*workFolder, error) {
	signals := catchSignals()
	signals.ready()
	w := &workFolder{}
	w.mu.Lock()
	go func() {
		sig := <-signals.arrived
		w.mu.Lock() // kept: this is the end
		if w.path != "" {
			_ = removeFolder(w.path)
		}
		os.Exit(128 + signalNumber(sig))
	}()
	defer w.mu.Unlock()
	path, err := os.MkdirTemp(dir, pattern)
	w.path = path
	return w, err
}

func (w *workFolder) step(f func(dir string) (ok bool, detail string)) (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w.path)
}

func (w *workFolder) remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := w.path
	w.path = ""
	return removeFolder(path)
}

// removeFolder tries more than once: processes that are just ending may still
// put a file into it.
func removeFolder(path string) (err error) {
	for range 50 {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func diagnose(dir string) (d *diagnosis, err error) {
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, usagef("%s is not a folder", dir)
	}
	d = &diagnosis{Folder: dir, Filesystem: "unknown"}
	if abs, err := filepath.Abs(dir); err == nil {
		d.Folder = display.Text(abs)
	}
	if local, kind, err := proc.FilesystemLocal(dir); err == nil {
		d.Local, d.Filesystem = local, kind
	}
	work, err := newWorkFolder(dir, ".stile-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.remove()) }()

	has := make(map[string]bool)
	for _, c := range checks {
		ok, detail := work.step(c.try)
		has[c.name] = ok
		d.Checks = append(d.Checks, check{c.name, ok, display.Text(detail)})
	}
	d.judge(has)
	return d, nil
}

// checks are made in this order; each leaves files behind under names of its
// own in the work folder.
var checks = [...]struct {
	name string
	try  func(dir string) (bool, string)
}{
	{"exclusive_create", tryExclusiveCreate},
	{"flock_excludes", func(dir string) (bool, string) { return tryExclusion(dir, "flock") }},
	{"ofd_lock_excludes", func(dir string) (bool, string) { return tryExclusion(dir, "ofd") }},
	{"hard_link", tryLink},
	{"rename_over_open", tryRename},
	{"fsync_file", tryFileSync},
	{"fsync_folder", tryFolderSync},
}

func tryExclusiveCreate(dir string) (bool, string) {
	name := filepath.Join(dir, "exclusive")
	for i := range 2 {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		switch {
		case i == 0 && err != nil:
			return false, err.Error()
		case i == 1 && err == nil:
			return false, "a file was created exclusively twice"
		case i == 1 && !errors.Is(err, os.ErrExist):
			return false, err.Error()
		}
	}
	return true, "the second creation is refused"
}

// tryExclusion locks a file here and lets another process try it, before and
// after it is let go.
func tryExclusion(dir, kind string) (bool, string) {
	name := filepath.Join(dir, kind)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err.Error()
	}
	defer f.Close()
	if got, err := tryLock(f, kind); err != nil || !got {
		return false, fmt.Sprintf("taking it gave: %v", err)
	}
	switch code, text := runChild("try-lock", kind, name); {
	case code == 0:
		return false, "two processes held it at once"
	case code != exitHeld:
		return false, "the second process said: " + text
	}
	_ = f.Close()
	if code, text := runChild("try-lock", kind, name); code != 0 {
		return false, "it stayed locked after its holder let go: " + text
	}
	return true, "a second process is kept out, and let in afterwards"
}

// runChild runs a second process of this same program and gives its exit code
// and what it said.
func runChild(args ...string) (int, string) {
	exe, err := os.Executable()
	if err != nil {
		return exitFailed, err.Error()
	}
	cmd := &exec.Cmd{Path: exe, Args: append([]string{"stile", childVerb}, args...)}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return exitFailed, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func tryLink(dir string) (bool, string) {
	from, to := filepath.Join(dir, "link-from"), filepath.Join(dir, "link-to")
	if err := os.WriteFile(from, nil, 0o600); err != nil {
		return false, err.Error()
	}
	if err := os.Link(from, to); err != nil {
		return false, err.Error()
	}
	if err := os.Link(from, to); !errors.Is(err, os.ErrExist) {
		return false, "a link over an existing name was not refused"
	}
	return true, "made, and refused over an existing name"
}

// tryRename replaces a file that is open: the reader must keep the old bytes
// and the name must show the new ones.
func tryRename(dir string) (bool, string) {
	name, next := filepath.Join(dir, "renamed"), filepath.Join(dir, "renamed-next")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		return false, err.Error()
	}
	if err := os.WriteFile(next, []byte("new"), 0o600); err != nil {
		return false, err.Error()
	}
	f, err := openShared(name)
	if err != nil {
		return false, err.Error()
	}
	defer f.Close()
	if err := os.Rename(next, name); err != nil {
		return false, err.Error()
	}
	var old [4]byte
	n, _ := f.Read(old[:])
	now, err := os.ReadFile(name)
	if string(old[:n]) != "old" || err != nil || string(now) != "new" {
		return false, fmt.Sprintf("the open file read %q, the name reads %q", old[:n], now)
	}
	if _, err := os.Lstat(next); err == nil {
		return false, "the old name is still there"
	}
	return true, "the open file keeps the old bytes, the name shows the new"
}

func tryFileSync(dir string) (bool, string) {
	f, err := os.Create(filepath.Join(dir, "synced"))
	if err != nil {
		return false, err.Error()
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		return false, err.Error()
	}
	if err := f.Sync(); err != nil {
		return false, err.Error()
	}
	return true, "answers (whether the disk obeys cannot be tested)"
}
