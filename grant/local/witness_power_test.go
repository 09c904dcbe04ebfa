package local

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

const (
	simWitness = "/s/stile/witness/e/atlas"
	simPages   = "/e/containers/atlas/pages"
)

// touched makes revisions until there are n, and gives what was seen of the container after each.
func (s *sim) touched(n int) []grant.Witness {
	s.t.Helper()
	s.upTo(2) // created, and a petition of anna's
	store := s.store(s.mem, 1, nil)
	for range n - 2 {
		if err := s.run(store, grant.Touch{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
			s.t.Fatal(err)
		}
	}
	return s.seen(s.mem)
}

// seen is what who looked at each revision has seen.
func (s *sim) seen(mem *vfstest.Mem) (all []grant.Witness) {
	s.t.Helper()
	chain, err := grant.Chain(s.t.Context(), s.store(mem, 9, nil), "atlas")
	if err != nil {
		s.t.Fatal(err)
	}
	w := grant.Witness{}
	for _, rev := range chain {
		w = grant.WitnessOf(rev, w)
		all = append(all, w)
	}
	return all
}

// witness is what a process finds that has just started, and what it has logged about it.
func (s *sim) witness(mem *vfstest.Mem) (grant.Witness, string) {
	s.t.Helper()
	var log bytes.Buffer
	store := s.store(mem, 9, nil)
	store.log = slog.New(slog.NewTextHandler(&log, nil))
	w, err := store.Witness("atlas")
	if err != nil {
		s.t.Fatal(err)
	}
	return w, log.String()
}

// goesOn wants of a disk that the power failed over: its witness is one that was true once, the next revision gets
// over it and into it, and a backup of before that is told by it.
func (s *sim) goesOn(mem *vfstest.Mem, where string) {
	s.t.Helper()
	w, _ := s.witness(mem)
	seen := s.seen(mem)
	if w != (grant.Witness{}) && !slices.Contains(seen, w) {
		s.t.Fatalf("%s: a witness of what never was: %+v", where, w)
	}
	if err := s.run(s.store(mem, 9, nil), grant.Touch{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
		s.t.Fatalf("%s: the next command: %v", where, err)
	}
	seen = s.seen(mem)
	if w, _ := s.witness(mem); w != seen[len(seen)-1] {
		s.t.Fatalf("%s: after the next command the witness is %+v, not %+v", where, w, seen[len(seen)-1])
	}
	s.setBack(mem, len(seen)-1)
	if _, err := s.store(mem, 9, nil).Head(s.t.Context(), "atlas"); err != nil {
		s.t.Fatal(err)
	}
	err := s.run(s.store(mem, 9, nil), grant.Petition{Meta: s.meta(grant.Agent("ben"))}, grant.Ref{})
	if grant.CodeOf(err) != grant.CodeRollback {
		s.t.Fatalf("%s: set back by one revision: %v", where, err)
	}
}

// setBack leaves the first n revisions, as a backup has them.
func (s *sim) setBack(mem *vfstest.Mem, n int) {
	s.t.Helper()
	names := mem.Names(simPages)
	gone := append([]string{path.Join("/e/containers/atlas", hintName)}, prefixed(simPages, names[n:])...)
	for _, name := range gone {
		if _, there := mem.Get(name); there {
			if err := mem.Remove(name); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

func prefixed(dir string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, path.Join(dir, name))
	}
	return all
}

// TestWitnessPowerCut: the power fails at each change of the witness folder: where it is made, where a line is
// added, and where a file begins and an old one goes. Nothing of it is synced.
func TestWitnessPowerCut(t *testing.T) {
	// How many revisions until a third file begins.
	s := newSim(t, classes[0])
	s.touched(2)
	store, third := s.store(s.mem, 1, nil), 2
	for files := 1; len(s.mem.Names(simWitness)) >= files; third++ {
		files = len(s.mem.Names(simWitness))
		last := s.mem.Names(simWitness)[files-1]
		if err := s.run(store, grant.Touch{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
			t.Fatal(err)
		}
		if now := s.mem.Names(simWitness); files == keptWitnesses && now[len(now)-1] != last {
			break
		}
	}
	kinds := map[string]int{}
	for _, n := range []int{0, 2, third} {
		for at := 0; ; at++ {
			s := newSim(t, classes[0])
			var cmd grant.Command
			if n == 0 {
				cmd, _ = s.upTo(0)
			} else {
				s.touched(n)
				cmd = grant.Touch{Meta: s.meta(grant.Agent("anna"))}
			}
			in := &vfstest.Injector{At: at, Kill: true, Only: func(op vfstest.Op) bool {
				return strings.HasPrefix(filepath.ToSlash(op.Name), path.Dir(simWitness)) &&
					slices.Contains([]string{"mkdir", "create", "openappend", "write", "close", "remove"}, op.Kind)
			}}
			_ = s.run(s.store(s.mem, 7, in.Before), cmd, grant.Ref{})
			where := fmt.Sprintf("%d revisions, all done", n)
			if len(in.Hits()) > 0 {
				where = fmt.Sprintf("%d revisions, %s", n, in.Hits()[0])
				kinds[in.Hits()[0].Kind]++
			}
			s.dead[7], s.dead[1] = true, true
			for image := range s.mem.CrashImages(12, uint64(at)) {
				if n == 0 && len(image.Names(simPages)) == 0 {
					continue
				}
				if n == 0 { // there is no petition yet that could be touched
					if err := s.run(s.store(image, 9, nil), grant.Petition{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{}); err != nil {
						t.Fatalf("%s: %v", where, err)
					}
				}
				s.goesOn(image, where)
			}
			if len(in.Hits()) == 0 {
				break
			}
		}
	}
	for _, kind := range []string{"mkdir", "create", "openappend", "write", "close", "remove"} {
		if kinds[kind] == 0 {
			t.Errorf("the power never failed at a %s: %v", kind, kinds)
		}
	}
}

// TestWitnessTail: whatever a power cut leaves of the last lines, what is whole before it tells, garbage is named,
// and what is added behind it is a line.
func TestWitnessTail(t *testing.T) {
	s := newSim(t, classes[0])
	seen := s.touched(4)
	file := path.Join(simWitness, s.mem.Names(simWitness)[0])
	data, _ := s.mem.Get(file)
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines) != 5 || len(s.mem.Names(simWitness)) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	third := len(lines[0]) + len(lines[1])
	tails := map[string]func(lost []byte) []byte{
		"lost":    func([]byte) []byte { return nil },
		"zeros":   func(lost []byte) []byte { return make([]byte, len(lost)) },
		"garbage": func(lost []byte) []byte { return bytes.Repeat([]byte{0xa5, 0x01, '\n', '{'}, len(lost)/4+1) },
		// A block that an earlier file has had, at the same place.
		"of old": func(lost []byte) []byte {
			return append(slices.Clone(lines[0][len(lines[0])-min(len(lost), len(lines[0])):]), '\n')
		},
	}
	for what, tail := range tails {
		for cut := third; cut < len(data); cut++ {
			image := oneImage(s.mem)
			left := append(slices.Clone(data[:cut]), tail(data[cut:])...)
			image.Put(file, left, 0o600)
			where := fmt.Sprintf("%s from byte %d of %d", what, cut, len(data))
			want := seen[1+bytes.Count(data[third:cut+1], []byte("\n"))] // a line counts without its end
			if bytes.HasPrefix(data, left[:min(cut+1, len(left))]) && len(left) > cut {
				continue // the garbage's first byte is the line's own
			}
			w, log := s.witness(image)
			if w != want && !(what != "lost" && w == lower(seen, want)) {
				t.Fatalf("%s: the witness is %+v, not %+v", where, w, want)
			}
			if named := strings.Contains(log, path.Base(file)); named != (what != "lost") && !bytes.Equal(left, data) && what != "of old" {
				t.Fatalf("%s: named %t: %s", where, named, log)
			}
			s.goesOn(image, where)
		}
	}
}

// lower is the one before.
func lower(seen []grant.Witness, w grant.Witness) grant.Witness {
	return seen[max(0, slices.Index(seen, w)-1)]
}

func oneImage(mem *vfstest.Mem) *vfstest.Mem {
	for image := range mem.CrashImages(1, 1) {
		return image
	}
	panic("no image")
}

// TestWitnessDamaged: no byte of a witness's line can become another and be believed.
func TestWitnessDamaged(t *testing.T) {
	s := newSim(t, classes[0])
	seen := s.touched(3)
	file := path.Join(simWitness, s.mem.Names(simWitness)[0])
	data, _ := s.mem.Get(file)
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	named := 0
	for at := last; at < len(data)-1; at++ {
		for _, c := range []byte{data[at] ^ 1, data[at] ^ 0x80, '9', ' '} {
			if c == data[at] {
				continue
			}
			left := slices.Clone(data)
			left[at] = c
			image := oneImage(s.mem)
			image.Put(file, left, 0o600)
			w, log := s.witness(image)
			if w != seen[1] {
				t.Fatalf("byte %d of %q: the witness is %+v", at-last, left[last:], w)
			}
			if strings.Contains(log, path.Base(file)) {
				named++
			} else if c >= '0' && c <= '9' && data[at] >= '0' && data[at] <= '9' {
				t.Fatalf("byte %d of %q is not named: %s", at-last, left[last:], log)
			}
		}
	}
	if named < 300 {
		t.Errorf("damage was named %d times", named)
	}
	// What is no file of lines at all is named as well, and gone past.
	image := oneImage(s.mem)
	image.Put(file, make([]byte, maxWitness+1), 0o600)
	if w, log := s.witness(image); w != (grant.Witness{}) || !strings.Contains(log, path.Base(file)) {
		t.Errorf("%+v, %s", w, log)
	}
	if err := errors.Join(s.run(s.store(image, 9, nil), grant.Touch{Meta: s.meta(grant.Agent("anna"))}, grant.Ref{})); err != nil {
		t.Fatal(err)
	}
	if w, _ := s.witness(image); w.Rev != 4 {
		t.Errorf("%+v", w)
	}
}
