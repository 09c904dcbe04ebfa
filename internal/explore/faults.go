package explore

import (
	"io"
	"io/fs"
	"strings"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// The bugs that are planted to show that the checks see them. Each changes what an actor does by
// changing the seams under it, in the place that the actor's last named step points to.

// releaseByUnlink looks at the lock under its name and then removes that name, as a release must not.
var releaseByUnlink = &fault{name: "release by unlink", fs: func(base vfs.FS, e *env) vfs.FS {
	return &faultyFS{FS: base, rename: func(from, to string) error {
		if basename(from) != lockName || e.port.local.step == seam.BreakConfirmed {
			return base.Rename(from, to)
		}
		data, err := readAll(base, from)
		if err != nil {
			return err
		}
		if !strings.Contains(data, e.port.local.token) {
			return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		return base.Remove(from)
	}}
}}

// breakWithoutConfirm moves the lock that it judged without looking at it again.
var breakWithoutConfirm = &fault{name: "break without the confirm", fs: func(base vfs.FS, e *env) vfs.FS {
	return rememberLock(base, func() bool { return e.port.local.step == seam.BreakClaimed })
}}

// fenceSkipped commits as though the lock were still its own.
var fenceSkipped = &fault{name: "fence skipped", fs: func(base vfs.FS, e *env) vfs.FS {
	own := ""
	return &faultyFS{FS: base, created: func(name string, f vfs.File) vfs.File {
		if role(basename(name)) == "pending" || basename(name) == lockName {
			return &tee{f, func(b []byte) { own = string(b) }}
		}
		return f
	}, open: func(name string) (vfs.File, error) {
		if basename(name) == lockName && e.port.local.step == seam.CommitTempWritten {
			return &copyOf{data: own}, nil
		}
		return base.Open(name)
	}}
}}

// breakWithoutClaim neither makes a claim nor looks for those of others.
var breakWithoutClaim = &fault{name: "break without the claim", fs: func(base vfs.FS, _ *env) vfs.FS {
	claim := func(name string) bool { return strings.Contains(name, ".lock.claim-") }
	return &faultyFS{FS: base, create: func(name string, perm fs.FileMode) (vfs.File, error) {
		if claim(name) {
			return &copyOf{}, nil
		}
		return base.Create(name, perm)
	}, list: func(dir, prefix string) ([]string, error) {
		if claim(prefix) {
			return nil, nil
		}
		return base.List(dir, prefix)
	}, remove: func(name string) error {
		if claim(name) {
			return nil
		}
		return base.Remove(name)
	}}
}}

// putBackByRename gives a moved lock its name again by a rename, which replaces what is there.
var putBackByRename = &fault{name: "put-back by plain rename", fs: func(base vfs.FS, _ *env) vfs.FS {
	return &faultyFS{FS: base, link: func(from, to string) error {
		if role(basename(from)) == "broken" {
			return base.Rename(from, to)
		}
		return base.Link(from, to)
	}}
}}

// sweepByAge takes every leftover for a dead process's: any of them may be older than any window.
var sweepByAge = &fault{name: "sweep by age",
	fs: func(base vfs.FS, e *env) vfs.FS {
		return &faultyFS{FS: base, list: func(dir, prefix string) ([]string, error) {
			e.sweeping = !strings.Contains(prefix, ".claim-")
			return base.List(dir, prefix)
		}}
	},
	judge: func(judge judgeFunc, e *env) judgeFunc {
		return func(h proc.Holder, near string) proc.Judgement {
			if h.Proc == nil && e.sweeping {
				return proc.Judgement{Verdict: proc.Dead, Reason: proc.NoSuchProcess}
			}
			return judge(h, near)
		}
	},
}

// claimNameReused draws the same attempt for every claim.
var claimNameReused = &fault{name: "claim name reused across attempts", rand: func(base io.Reader, e *env) io.Reader {
	return randFunc(func(b []byte) (int, error) {
		if e.port.local.step == seam.BreakJudged {
			clear(b)
			return len(b), nil
		}
		return base.Read(b)
	})
}}

// neighbourSwept marks the names of two pid namespaces alike, so that each takes the other's for its own.
var neighbourSwept = &fault{name: "a neighbour namespace's names swept", oneTag: true}

// staleCommitted commits without a last look at whether the log is still the one that was read.
var staleCommitted = &fault{name: "commit over a changed log", fs: func(base vfs.FS, e *env) vfs.FS {
	var was vfs.Info
	return &faultyFS{FS: base, open: func(name string) (vfs.File, error) {
		f, err := base.Open(name)
		if err == nil && basename(name) == logName {
			if was, err = f.Stat(); err != nil {
				return nil, err
			}
		}
		return f, err
	}, lstat: func(name string) (vfs.Info, error) {
		if basename(name) == logName && e.port.local.step == seam.CommitTempWritten {
			return was, nil
		}
		return base.Lstat(name)
	}}
}}

// The rest are for the checks that none of the above would fail.

// claimLeft never takes a claim away.
var claimLeft = &fault{name: "claim left", fs: func(base vfs.FS, _ *env) vfs.FS {
	return &faultyFS{FS: base, remove: func(name string) error {
		if role(basename(name)) == "claim" {
			return nil
		}
		return base.Remove(name)
	}}
}}

// deadTakenForAlive never believes that a holder is dead.
var deadTakenForAlive = &fault{name: "dead holder taken for alive", judge: func(judge judgeFunc, _ *env) judgeFunc {
	return func(h proc.Holder, near string) proc.Judgement {
		j := judge(h, near)
		if h.Proc != nil {
			j.Verdict = proc.Alive
		}
		return j
	}
}}

// commitForgotten reports a commit that has not been made.
var commitForgotten = &fault{name: "commit forgotten", fs: func(base vfs.FS, _ *env) vfs.FS {
	return &faultyFS{FS: base, rename: func(from, to string) error {
		if basename(to) == logName {
			return base.Remove(from)
		}
		return base.Rename(from, to)
	}}
}}

// recordRepeated writes its record twice.
var recordRepeated = &fault{name: "record repeated", fs: func(base vfs.FS, e *env) vfs.FS {
	return &faultyFS{FS: base, created: func(name string, f vfs.File) vfs.File {
		if role(basename(name)) == "tmp" {
			return &twice{f, e.name + "\n"}
		}
		return f
	}}
}}

type twice struct {
	vfs.File
	more string
}

func (t *twice) Write(b []byte) (int, error) {
	n, err := t.File.Write(append(b[:len(b):len(b)], t.more...))
	return min(n, len(b)), err
}

// endedForgotten is the remedy of decision 0012 left out.
var endedForgotten = &fault{name: "own ended lock not known again", forgets: true}

var faults = []*fault{
	releaseByUnlink, breakWithoutConfirm, breakWithoutClaim, putBackByRename, fenceSkipped, sweepByAge,
	claimNameReused, neighbourSwept, staleCommitted, endedForgotten,
	claimLeft, deadTakenForAlive, commitForgotten, recordRepeated,
}

type randFunc func([]byte) (int, error)

func (f randFunc) Read(b []byte) (int, error) { return f(b) }

// faultyFS does some operations in another way.
type faultyFS struct {
	vfs.FS
	create  func(string, fs.FileMode) (vfs.File, error)
	created func(string, vfs.File) vfs.File
	open    func(string) (vfs.File, error)
	lstat   func(string) (vfs.Info, error)
	link    func(from, to string) error
	rename  func(from, to string) error
	remove  func(string) error
	list    func(dir, prefix string) ([]string, error)
}

func (f *faultyFS) Create(name string, perm fs.FileMode) (vfs.File, error) {
	if f.create != nil {
		return f.create(name, perm)
	}
	file, err := f.FS.Create(name, perm)
	if err == nil && f.created != nil {
		file = f.created(name, file)
	}
	return file, err
}

func (f *faultyFS) Open(name string) (vfs.File, error) {
	if f.open != nil {
		return f.open(name)
	}
	return f.FS.Open(name)
}

func (f *faultyFS) Lstat(name string) (vfs.Info, error) {
	if f.lstat != nil {
		return f.lstat(name)
	}
	return f.FS.Lstat(name)
}

func (f *faultyFS) Link(from, to string) error {
	if f.link != nil {
		return f.link(from, to)
	}
	return f.FS.Link(from, to)
}

func (f *faultyFS) Rename(from, to string) error {
	if f.rename != nil {
		return f.rename(from, to)
	}
	return f.FS.Rename(from, to)
}

func (f *faultyFS) Remove(name string) error {
	if f.remove != nil {
		return f.remove(name)
	}
	return f.FS.Remove(name)
}

func (f *faultyFS) List(dir, prefix string) ([]string, error) {
	if f.list != nil {
		return f.list(dir, prefix)
	}
	return f.FS.List(dir, prefix)
}

// rememberLock answers a look at the lock with what the last look has found, while from says so.
func rememberLock(base vfs.FS, from func() bool) vfs.FS {
	last := ""
	return &faultyFS{FS: base, open: func(name string) (vfs.File, error) {
		if basename(name) != lockName {
			return base.Open(name)
		}
		if from() {
			return &copyOf{data: last}, nil
		}
		f, err := base.Open(name)
		if err != nil {
			return nil, err
		}
		last = ""
		return &tee{f, func(b []byte) { last += string(b) }}, nil
	}}
}

func readAll(base vfs.FS, name string) (string, error) {
	f, err := base.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

// tee tells of what is read or written.
type tee struct {
	vfs.File
	tell func([]byte)
}

func (t *tee) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	t.tell(b[:n])
	return n, err
}

func (t *tee) Write(b []byte) (int, error) {
	t.tell(b)
	return t.File.Write(b)
}

// copyOf is a file that is nowhere.
type copyOf struct {
	data string
	at   int
}

func (c *copyOf) Read(b []byte) (int, error) {
	if c.at == len(c.data) {
		return 0, io.EOF
	}
	n := copy(b, c.data[c.at:])
	c.at += n
	return n, nil
}

func (c *copyOf) Write(b []byte) (int, error) { return len(b), nil }
func (c *copyOf) Stat() (vfs.Info, error) {
	return vfs.Info{Mode: regular, Size: int64(len(c.data)), ModTime: epoch}, nil
}
func (c *copyOf) Chmod(fs.FileMode) error { return nil }
func (c *copyOf) Chown(int, int) error    { return nil }
func (c *copyOf) Sync() error             { return nil }
func (c *copyOf) Close() error            { return nil }
