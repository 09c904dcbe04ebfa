package vfstest

import (
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
)

// CrashImages yields what may be on the disk after the power fails now: everything that was synced,
// with any part of the rest. Independently of each other,
//
//   - each name changed since its folder was synced stands for any of the things it has stood for
//     since then, the last synced one and the present one included, so that after a rename both
//     names may be there, or neither; with a folder's name goes what lies in it;
//   - each file changed since it was synced has its synced content, its present content, nothing, or
//     half of the present.
//
// When there are at most limit such images they are all yielded, otherwise limit of them, chosen by
// seed. Each is a file system of its own whose content counts as synced.
func (m *Mem) CrashImages(limit int, seed uint64) iter.Seq[*Mem] {
	return func(yield func(*Mem) bool) {
		dims := m.crashChoices()
		total := 1
		for _, d := range dims {
			if total *= d; total > limit {
				total = -1
				break
			}
		}
		pick := make([]int, len(dims))
		if total > 0 {
			for range total {
				if !yield(m.crashImage(pick)) {
					return
				}
				for i := range pick { // the next number in a mixed-radix count
					if pick[i]++; pick[i] < dims[i] {
						break
					}
					pick[i] = 0
				}
			}
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same images for the same seed
		for range limit {
			for i := range pick {
				pick[i] = rng.IntN(dims[i])
			}
			if !yield(m.crashImage(pick)) {
				return
			}
		}
	}
}

// unsynced returns, in a fixed order, the names and the files about which a crash has a choice.
func (m *Mem) unsynced() (names []string, files []*node) {
	names = slices.Sorted(maps.Keys(m.was))
	seen := map[*node]bool{}
	add := func(n *node) {
		if n != nil && n.dirty && !seen[n] {
			seen[n] = true
			files = append(files, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		add(m.names[name])
	}
	for _, name := range names {
		for _, n := range m.was[name] {
			add(n)
		}
	}
	return names, files
}

func (m *Mem) crashChoices() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, files := m.unsynced()
	var dims []int
	for _, name := range names {
		dims = append(dims, len(m.was[name])+1)
	}
	for _, n := range files {
		dims = append(dims, len(contents(n)))
	}
	return dims
}

// contents are the contents that a crash may leave in a file.
func contents(n *node) [][]byte {
	all := [][]byte{n.synced, n.data, nil, n.data[:len(n.data)/2]}
	var distinct [][]byte
	for _, c := range all {
		if !slices.ContainsFunc(distinct, func(d []byte) bool { return slices.Equal(c, d) }) {
			distinct = append(distinct, c)
		}
	}
	return distinct
}

func (m *Mem) crashImage(pick []int) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, files := m.unsynced()
	image := &Mem{
		Now: m.Now, LinkErr: m.LinkErr, Umask: m.Umask, UID: m.UID, GID: m.GID,
		ino: m.ino, names: map[string]*node{}, was: map[string][]*node{},
	}
	content := map[*node][]byte{}
	for i, n := range files {
		content[n] = contents(n)[pick[len(names)+i]]
	}
	copies := map[*node]*node{} // two names of one file stay so
	put := func(name string, n *node) {
		if n == nil {
			delete(image.names, name)
			return
		}
		c := copies[n]
		if c == nil {
			c = &node{ino: n.ino, mode: n.mode, uid: n.uid, gid: n.gid, mtime: n.mtime, data: n.data}
			if data, ok := content[n]; ok {
				c.data = data
			}
			c.data = slices.Clone(c.data)
			c.synced = slices.Clone(c.data)
			copies[n] = c
		}
		image.names[name] = c
	}
	for name, n := range m.names {
		put(name, n)
	}
	for i, name := range names {
		stood := append(slices.Clone(m.was[name]), m.names[name])
		put(name, stood[pick[i]])
	}
	// What lies in a folder that was lost is lost with it. Sorted, a folder comes before what it holds.
	for _, name := range slices.Sorted(maps.Keys(image.names)) {
		if dir := image.names[filepath.Dir(name)]; dir == nil || !dir.mode.IsDir() {
			delete(image.names, name)
		}
	}
	return image
}
