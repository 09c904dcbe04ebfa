package explore

import (
	"context"
	"encoding/binary"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/vfs"
)

// folder is where everything happens.
const folder = "/w"

// files is the file system as one actor sees it. Each method stops at the gate, and the scheduler
// decides what comes of it.
type files struct {
	p      *port
	opened int
}

func basename(name string) string { return path.Base(name) }

// failure turns the result of a step into the error that the system would give.
func failure(r obs, what, name string) error {
	switch {
	case r.how == killed:
		return &fs.PathError{Op: what, Path: name, Err: errKilled}
	case r.errno != 0:
		return &fs.PathError{Op: what, Path: name, Err: r.errno}
	}
	return nil
}

func (f *files) Create(name string, perm fs.FileMode) (vfs.File, error) {
	r := f.p.do(op{kind: opCreate, name: basename(name), mode: perm.Perm()})
	if err := failure(r, "create", name); err != nil {
		return nil, err
	}
	return f.file(name), nil
}

func (f *files) Open(name string) (vfs.File, error) {
	r := f.p.do(op{kind: opOpen, name: basename(name)})
	if err := failure(r, "open", name); err != nil {
		return nil, err
	}
	return f.file(name), nil
}

func (f *files) file(name string) vfs.File {
	f.opened++
	return &file{f.p, basename(name), f.opened - 1}
}

func (f *files) Link(from, to string) error {
	return failure(f.p.do(op{kind: opLink, name: basename(from), to: basename(to)}), "link", from)
}

func (f *files) Rename(from, to string) error {
	return failure(f.p.do(op{kind: opRename, name: basename(from), to: basename(to)}), "rename", from)
}

func (f *files) Remove(name string) error {
	return failure(f.p.do(op{kind: opRemove, name: basename(name)}), "remove", name)
}

func (f *files) Lstat(name string) (vfs.Info, error) {
	r := f.p.do(op{kind: opLstat, name: basename(name)})
	return r.info(), failure(r, "lstat", name)
}

func (f *files) Readlink(name string) (string, error) {
	return "", failure(f.p.do(op{kind: opReadlink, name: basename(name)}), "readlink", name)
}

func (f *files) List(dir, prefix string) ([]string, error) {
	r := f.p.do(op{kind: opList, name: basename(dir), data: prefix})
	if err := failure(r, "open", dir); err != nil || r.data == "" {
		return nil, err
	}
	return strings.Split(r.data, "\n"), nil
}

func (f *files) SyncDir(dir string) error {
	return failure(f.p.do(op{kind: opSyncDir, name: basename(dir)}), "sync", dir)
}

type file struct {
	p     *port
	name  string
	index int
}

func (f *file) Read(b []byte) (int, error) {
	r := f.p.do(op{kind: opRead, name: f.name, file: f.index, n: len(b)})
	if err := failure(r, "read", f.name); err != nil {
		return 0, err
	}
	if r.data == "" {
		return 0, io.EOF
	}
	return copy(b, r.data), nil
}

func (f *file) Write(b []byte) (int, error) {
	r := f.p.do(op{kind: opWrite, name: f.name, file: f.index, data: string(b)})
	if err := failure(r, "write", f.name); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) Stat() (vfs.Info, error) {
	r := f.p.do(op{kind: opStat, name: f.name, file: f.index})
	return r.info(), failure(r, "stat", f.name)
}

func (f *file) Chmod(mode fs.FileMode) error {
	return failure(f.p.do(op{kind: opChmod, name: f.name, file: f.index, mode: mode.Perm()}), "chmod", f.name)
}

func (f *file) Chown(int, int) error {
	return failure(f.p.do(op{kind: opChown, name: f.name, file: f.index}), "chown", f.name)
}

func (f *file) Sync() error {
	return failure(f.p.do(op{kind: opSync, name: f.name, file: f.index}), "sync", f.name)
}

func (f *file) Close() error {
	return failure(f.p.do(op{kind: opClose, name: f.name, file: f.index}), "close", f.name)
}

// info describes a file. Each has a time of its own, as on a file system with fine timestamps.
func (r obs) info() vfs.Info {
	return vfs.Info{Mode: r.mode, Size: r.size, ModTime: epoch.Add(time.Duration(r.file)), Dev: 1, Ino: uint64(r.file + 1)}
}

var epoch = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// The clock of an actor moves only while it waits. A wait that something ended takes one tick; a wait
// for nothing takes longer than any timeout here.
const (
	tick    = 10 * time.Millisecond
	forever = time.Hour
)

type clock struct {
	p   *port
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Sleep(context.Context, time.Duration) error {
	switch c.p.do(op{kind: opSleep}).how {
	case killed:
		return errKilled
	case late:
		c.now = c.now.Add(forever)
	default:
		c.now = c.now.Add(tick)
	}
	return nil
}

// dice gives each actor bytes of its own: never the same twice, and the same in every run.
type dice struct{ actor, n uint32 }

func (d *dice) Read(b []byte) (int, error) {
	d.n++
	clear(b)
	if len(b) >= 8 {
		binary.BigEndian.PutUint32(b, d.actor)
		binary.BigEndian.PutUint32(b[4:], d.n)
	}
	return len(b), nil
}

func (p *port) judge(h proc.Holder, _ string) proc.Judgement {
	o := op{kind: opJudge, holder: proc.Holder{PID: h.PID, Host: h.Host}}
	if h.Proc != nil {
		o.id, o.hasID = *h.Proc, true
	}
	return p.do(o).judge
}

const noLink = syscall.ENOTSUP
