package explore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// TestReductionHidesNothing searches small worlds with the reduction and without, and compares all the
// ends and, with a bug planted, whether it is found.
func TestReductionHidesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault *fault
	}{
		{name: "a writer and an unlock"},
		{name: "a writer and a forced unlock"},
		{name: "two writers"},
		{name: "a writer and a forced unlock", fault: fenceSkipped},
		{name: "two writers", fault: sweepByAge},
	} {
		for _, class := range Classes {
			name := c.name + ", " + class
			if c.fault != nil {
				name += ", " + c.fault.name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := world(t, c.name, class)
				w.fault = c.fault
				reduced, v1 := search(t, w, "")
				w.full = true
				full, v2 := search(t, w, "")
				if (v1 == nil) != (v2 == nil) || (v1 == nil) != (c.fault == nil) {
					t.Errorf("reduced: %v; in full: %v", v1, v2)
				}
				if c.fault != nil {
					return
				}
				if full.States <= reduced.States {
					t.Errorf("the reduction leaves %d of %d states", reduced.States, full.States)
				}
				a, b := slices.Sorted(maps.Keys(reduced.Outcomes)), slices.Sorted(maps.Keys(full.Outcomes))
				if !slices.Equal(a, b) {
					t.Errorf("the ends differ:\nreduced %q\nin full %q", a, b)
				}
			})
		}
	}
}

// TestSearchIsDeterministic runs one search twice.
func TestSearchIsDeterministic(t *testing.T) {
	w := world(t, "a writer and a forced unlock", Classes[1])
	a, _ := search(t, w, "")
	b, _ := search(t, w, "")
	if fmt.Sprint(a, a.Counts, a.Outcomes) != fmt.Sprint(b, b.Counts, b.Outcomes) {
		t.Errorf("%v, then %v", a, b)
	}
}

// TestDiskIsAFileSystem walks at random through the worlds and does each operation on vfstest.Mem too,
// whose results must be the same.
func TestDiskIsAFileSystem(t *testing.T) {
	for _, class := range Classes {
		for _, w := range Worlds {
			w := world(t, w.Name, class)
			w.full, w.bound = true, -1
			steps := 0
			synctest.Test(t, func(t *testing.T) {
				x := New(w)
				defer x.drv.close()
				for seed := range uint64(40) {
					steps += walk(t, x, rand.New(rand.NewPCG(seed, 0)))
				}
			})
			if steps < 1000 {
				t.Errorf("%v: only %d steps", w, steps)
			}
		}
	}
}

func walk(t *testing.T, x *Explorer, rng *rand.Rand) (steps int) {
	t.Helper()
	m := vfstest.NewMem(folder)
	if !x.world.hardLinks {
		m.LinkErr = noLink
	}
	s := x.first()
	for _, e := range s.disk.names {
		m.Put(folder+"/"+e.name, []byte(s.disk.inode(e.id).data), s.disk.inode(e.id).mode)
	}
	open := make([][]vfs.File, len(x.drv.actors))
	for ; ; steps++ {
		todo := x.moves(s)
		if len(todo) == 0 {
			break
		}
		mv := todo[rng.IntN(len(todo))]
		if mv.kind == dies && rng.IntN(20) > 0 {
			continue
		}
		o := s.at[mv.actor].at.op
		next, v := x.apply(s, mv)
		if v != nil {
			t.Fatal(v)
		}
		if mv.kind == moves {
			got := next.at[mv.actor].via
			want := mirror(m, &open[mv.actor], o)
			got.file, got.judge = 0, want.judge
			if got != want {
				t.Fatalf("%v: %+v, and Mem says %+v", o, got, want)
			}
		}
		s = next
	}
	for _, e := range s.disk.names {
		if data, ok := m.Get(folder + "/" + e.name); !ok || string(data) != s.disk.inode(e.id).data {
			t.Fatalf("%s: %q, and Mem has %q", e.name, s.disk.inode(e.id).data, data)
		}
	}
	if len(m.Names(folder)) != len(s.disk.names) {
		t.Fatalf("names: %v, and Mem has %v", s.disk.names, m.Names(folder))
	}
	return steps
}

// mirror does an operation on another file system.
func mirror(m *vfstest.Mem, open *[]vfs.File, o op) (r obs) {
	at := func(name string) string { return folder + "/" + name }
	var err error
	info := func(i vfs.Info) { r.mode, r.size = i.Mode, i.Size }
	file := func(f vfs.File) { *open = append(*open, f) }
	var f vfs.File
	var i vfs.Info
	switch o.kind {
	case opCreate:
		if f, err = m.Create(at(o.name), o.mode); err == nil {
			file(f)
		}
	case opOpen:
		if f, err = m.Open(at(o.name)); err == nil {
			file(f)
		}
	case opLink:
		err = m.Link(at(o.name), at(o.to))
	case opRename:
		err = m.Rename(at(o.name), at(o.to))
	case opRemove:
		err = m.Remove(at(o.name))
	case opLstat:
		if i, err = m.Lstat(at(o.name)); err == nil {
			info(i)
		}
	case opReadlink:
		_, err = m.Readlink(at(o.name))
	case opList:
		var names []string
		names, err = m.List(folder, o.data)
		for n, name := range names {
			if n > 0 {
				r.data += "\n"
			}
			r.data += name
		}
	case opRead:
		b := make([]byte, o.n)
		n, _ := (*open)[o.file].Read(b)
		r.data = string(b[:n])
	case opWrite:
		_, err = (*open)[o.file].Write([]byte(o.data))
	case opStat:
		if i, err = (*open)[o.file].Stat(); err == nil {
			info(i)
		}
	case opChmod:
		err = (*open)[o.file].Chmod(o.mode)
	case opClose:
		err = (*open)[o.file].Close()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.errno = errno
	}
	return r
}
