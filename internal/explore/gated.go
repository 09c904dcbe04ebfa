package explore

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// gatedFS is the file system as one actor sees it: it stops at each operation that matters to others,
// notes each result, and watches over the lock's name.
type gatedFS struct {
	vfs.FS
	x *actor
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprint(err)
}

func (g *gatedFS) op(what string, f func() error) error {
	if err := g.x.stop(what); err != nil {
		return err
	}
	err := f()
	g.x.saw(what, result(err))
	return err
}

func (g *gatedFS) Create(name string, perm fs.FileMode) (file vfs.File, err error) {
	if strings.Contains(name, ".tmp-") {
		g.x.reading, g.x.fenced = true, false
	}
	err = g.op("create "+name, func() error {
		f, err := g.FS.Create(name, perm)
		if err == nil {
			file = &gatedFile{File: f, g: g, name: name, shared: name == lockPath}
		}
		return err
	})
	return file, err
}

func (g *gatedFS) Open(name string) (file vfs.File, err error) {
	err = g.op("open "+name, func() error {
		if name == lockPath {
			g.x.sawLock = g.x.r.lockNow()
			if g.x.reading {
				g.x.moved = false // this is the fence
			}
		}
		f, err := g.FS.Open(name)
		if err == nil {
			info, _ := f.Stat()
			// Its bytes may still be on their way where locks are written in place.
			file = &gatedFile{File: f, g: g, name: name, shared: g.x.r.w.NoLinks && name != logPath}
			g.x.saw(fmt.Sprint(info.Ino))
		}
		return err
	})
	return file, err
}

func (g *gatedFS) Link(oldname, newname string) error {
	return g.op("link "+oldname+" "+newname, func() error {
		err := g.FS.Link(oldname, newname)
		if err == nil && newname == lockPath {
			g.x.published()
		}
		return err
	})
}

func (g *gatedFS) Rename(oldname, newname string) error {
	return g.op("rename "+oldname+" "+newname, func() error {
		r := g.x.r
		if newname == lockPath {
			if _, err := g.FS.Lstat(lockPath); err == nil {
				r.faults = append(r.faults, Overwrote)
			}
		}
		if oldname == lockPath {
			g.x.moves()
		}
		if newname == logPath {
			g.x.reading = false
			if !g.x.fenced {
				r.faults = append(r.faults, Unfenced)
			}
			if !g.x.holds() || g.x.moved {
				r.window = true
			}
		}
		return g.FS.Rename(oldname, newname)
	})
}

func (g *gatedFS) Remove(name string) error {
	if strings.Contains(name, ".tmp-") {
		g.x.reading = false
	}
	return g.op("remove "+name, func() error {
		if name == lockPath {
			g.x.moves()
		}
		if n, ok := format.Parse(path.Base(name), "log"); ok && g.x.r.lives(n.PID) && n.PID != int64(g.x.i+1) {
			g.x.r.faults = append(g.x.r.faults, SweptLive)
		}
		return g.FS.Remove(name)
	})
}

func (g *gatedFS) Lstat(name string) (vfs.Info, error) {
	if g.x.died {
		return vfs.Info{}, vfstest.ErrKilled
	}
	if name != logPath || !g.x.reading {
		return g.FS.Lstat(name) // a name of its own; or only to know that it is a regular file
	}
	var info vfs.Info
	err := g.op("lstat "+name, func() (err error) {
		info, err = g.FS.Lstat(name)
		g.x.saw(fmt.Sprint(info.Ino, info.Size))
		return err
	})
	return info, err
}

func (g *gatedFS) List(dir, prefix string) (names []string, err error) {
	err = g.op("list "+prefix, func() error {
		names, err = g.FS.List(dir, prefix)
		if strings.Contains(prefix, ".claim-") {
			g.x.sawClaims = g.x.r.claimsNow()
		}
		g.x.saw(names...)
		return err
	})
	return names, err
}

func (g *gatedFS) SyncDir(dir string) error { return g.FS.SyncDir(dir) }

// lives reports whether pid is a process of the run that has not died.
func (r *run) lives(pid int64) bool {
	return pid >= 1 && pid <= int64(len(r.procs)) && !r.procs[pid-1].died
}

// holds reports whether the lock under the name is of this actor's present hold.
func (x *actor) holds() bool {
	data, _ := x.r.mem.Get(lockPath)
	l, err := format.ParseLock(data)
	return err == nil && l.Token == x.token
}

// published notes whose lock stands under the name now, when it is this actor's own.
func (x *actor) published() {
	data, _ := x.r.mem.Get(lockPath)
	if l, err := format.ParseLock(data); err == nil && l.PID == int64(x.i+1) {
		x.token = l.Token
	}
}

// moves checks whose lock this actor is about to move: another's, whose process lives and has not let
// go of it itself, must not be.
func (x *actor) moves() {
	data, _ := x.r.mem.Get(lockPath)
	l, err := format.ParseLock(data)
	if err != nil || l.PID < 1 || l.PID > int64(len(x.r.procs)) {
		return
	}
	owner := x.r.procs[l.PID-1]
	owner.moved = true
	switch {
	case owner == x:
		if owner.token == l.Token {
			owner.token = ""
		}
	case !owner.died && !owner.done && owner.token == l.Token:
		x.r.faults = append(x.r.faults, MovedLive)
	}
}

// gatedFile is an open file. Where its content can still change, or is what others wait to see, reading
// and writing stop at the gate.
type gatedFile struct {
	vfs.File
	g      *gatedFS
	name   string
	shared bool
	read   bool // some of it; a lock is written in one piece, so the rest is settled
}

func (f *gatedFile) Read(p []byte) (n int, err error) {
	if f.g.x.died {
		return 0, vfstest.ErrKilled
	}
	if !f.shared || f.read {
		n, err = f.File.Read(p)
	} else if err = f.g.x.stop("read " + f.name); err == nil {
		n, err = f.File.Read(p)
		f.read = true
	}
	if f.name == lockPath && f.g.x.reading && bytes.Contains(p[:n], []byte(f.g.x.token)) {
		f.g.x.fenced = true
	}
	f.g.x.saw("read", string(p[:n]), result(err))
	return n, err
}

func (f *gatedFile) Write(p []byte) (n int, err error) {
	if f.g.x.died {
		return 0, vfstest.ErrKilled
	}
	if f.shared {
		if err := f.g.x.stop("write " + f.name); err != nil {
			return 0, err
		}
	}
	n, err = f.File.Write(p)
	f.g.x.saw("write", result(err))
	if f.shared {
		f.g.x.published()
	}
	return n, err
}

func (f *gatedFile) Sync() error { return f.alive(f.File.Sync) }

func (f *gatedFile) Chmod(mode fs.FileMode) error {
	return f.alive(func() error { return f.File.Chmod(mode) })
}

func (f *gatedFile) Chown(uid, gid int) error {
	return f.alive(func() error { return f.File.Chown(uid, gid) })
}

func (f *gatedFile) Close() error {
	err := f.File.Close()
	return f.alive(func() error { return err })
}

func (f *gatedFile) alive(do func() error) error {
	if f.g.x.died {
		return vfstest.ErrKilled
	}
	return do()
}
