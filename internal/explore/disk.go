package explore

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// disk is one folder of regular files. It is a value: do works on a clone, so that the search can go
// back to any state. vfstest.Mem keeps what a power cut may leave, and cannot be copied or compared.
type disk struct {
	names  []dirent // sorted by name
	inodes []inode  // sorted by id; those that have a name or are open
}

type dirent struct {
	name string
	id   int
}

// inode ids are made of the creating actor and how many files it has created, so that a state does
// not depend on the order in which different actors created theirs.
type inode struct {
	id      int
	data    string
	mode    fs.FileMode
	writing bool // its creator has it open
}

func (d *disk) clone() disk { return disk{slices.Clone(d.names), slices.Clone(d.inodes)} }

func (d *disk) find(name string) (int, bool) {
	return slices.BinarySearchFunc(d.names, name, func(e dirent, n string) int { return strings.Compare(e.name, n) })
}

// id returns the inode of a name, or -1.
func (d *disk) id(name string) int {
	if i, ok := d.find(name); ok {
		return d.names[i].id
	}
	return -1
}

func (d *disk) inode(id int) *inode {
	i, ok := slices.BinarySearchFunc(d.inodes, id, func(n inode, id int) int { return n.id - id })
	if !ok {
		return nil
	}
	return &d.inodes[i]
}

// content returns what is under a name.
func (d *disk) content(name string) (data string, ok bool) {
	id := d.id(name)
	if id < 0 {
		return "", false
	}
	return d.inode(id).data, true
}

func (d *disk) bind(name string, id int) {
	i, ok := d.find(name)
	if ok {
		d.names[i].id = id
		return
	}
	d.names = slices.Insert(d.names, i, dirent{name, id})
}

func (d *disk) unbind(name string) {
	if i, ok := d.find(name); ok {
		d.names = slices.Delete(d.names, i, i+1)
	}
}

func (d *disk) create(name string, id int, mode fs.FileMode) syscall.Errno {
	if d.id(name) >= 0 {
		return syscall.EEXIST
	}
	i, _ := slices.BinarySearchFunc(d.inodes, id, func(n inode, id int) int { return n.id - id })
	d.inodes = slices.Insert(d.inodes, i, inode{id: id, mode: mode, writing: true})
	d.bind(name, id)
	return 0
}

// link refuses a taken name on both classes of file system, with the same error.
func (d *disk) link(from, to string, hardLinks bool) syscall.Errno {
	id := d.id(from)
	switch {
	case id < 0:
		return syscall.ENOENT
	case d.id(to) >= 0:
		return syscall.EEXIST
	case !hardLinks:
		return noLink
	}
	d.bind(to, id)
	return 0
}

func (d *disk) rename(from, to string) syscall.Errno {
	id := d.id(from)
	switch {
	case id < 0:
		return syscall.ENOENT
	case id == d.id(to): // two names of one file: POSIX has rename do nothing
		return 0
	}
	d.unbind(from)
	d.bind(to, id)
	return 0
}

func (d *disk) remove(name string) syscall.Errno {
	if d.id(name) < 0 {
		return syscall.ENOENT
	}
	d.unbind(name)
	return 0
}

func (d *disk) list(prefix string) string {
	var b strings.Builder
	for _, e := range d.names {
		if strings.HasPrefix(e.name, prefix) {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(e.name)
		}
	}
	return b.String()
}

// collect forgets the inodes that have no name and that open does not say are open.
func (d *disk) collect(open func(id int) bool) {
	d.inodes = slices.DeleteFunc(d.inodes, func(n inode) bool {
		return !slices.ContainsFunc(d.names, func(e dirent) bool { return e.id == n.id }) && !open(n.id)
	})
}
