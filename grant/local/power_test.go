package local

import (
	"path/filepath"
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// TestTornPageSetAsideMeanwhile: half a page that goes between two looks at it is no missing container.
func TestTornPageSetAsideMeanwhile(t *testing.T) {
	s := newSim(t, classes[1])
	s.upTo(2)
	name := "/e/containers/atlas/pages/" + place{1, 3}.name()
	s.mem.Put(name, []byte("half"), 0o600)
	seen := 0
	store := s.store(s.mem, 9, func(op vfstest.Op) error {
		if op.Kind == "open" && filepath.ToSlash(op.Name) == name {
			if seen++; seen == 1 {
				return s.mem.Rename(name, "/e/aside")
			}
		}
		return nil
	})
	head, err := store.Head(t.Context(), "atlas")
	if err != nil || head.Page().Rev != 2 || seen == 0 {
		t.Fatalf("head %v, %v; looked %d times", head.Ref(), err, seen)
	}
}

// TestNextWriterVouchesForItsBase: a process dies when its page is there, and not on the disk; another builds on it,
// and is told that this succeeded. Then the power fails.
func TestNextWriterVouchesForItsBase(t *testing.T) {
	const i = 2 // touch
	for _, class := range classes {
		t.Run(class, func(t *testing.T) {
			built := 0
			for n := 0; ; n++ {
				s := newSim(t, class)
				cmd, _ := s.upTo(i)
				in := &vfstest.Injector{At: n, Kill: true}
				_ = s.run(s.store(s.mem, 7, in.Before), cmd, grant.Ref{})
				if len(in.Hits()) == 0 {
					break
				}
				s.dead[7] = true
				s.unblock(s.mem, 9, class)
				if err := s.run(s.store(s.mem, 9, nil), grant.Petition{Meta: s.meta(grant.Agent("yara"))}, grant.Ref{}); err != nil {
					t.Fatal(err)
				}
				built += s.times(s.mem, 9, cmd)
				s.powerCut(class, in.Hits()[0].String())
			}
			if built == 0 {
				t.Error("nobody built on the dead process's page")
			}
		})
	}
}
