package local

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

// TestOvertakenAtThePublication: a writer has found its place free, and stands before the very call that publishes.
// Another publishes there. The first one gets CONFLICT, and the page is the other's.
func TestOvertakenAtThePublication(t *testing.T) {
	for _, class := range classes {
		t.Run(class, func(t *testing.T) {
			s := newSim(t, class)
			_, base := s.upTo(2)
			next := func(agent string) grant.Revision {
				head, err := s.store(s.mem, 9, nil).Head(t.Context(), "atlas")
				if err != nil {
					t.Fatal(err)
				}
				now := grant.Stamp{Source: grant.SourceStore, T: grant.TimeOf(s.clock.Now())}
				rev, err := grant.Apply(head, grant.Petition{Meta: s.meta(grant.Agent(agent))}, grant.Env{Now: now})
				if err != nil {
					t.Fatal(err)
				}
				return rev
			}
			mine, theirs := next("slow"), next("quick")
			place := path.Join(simPages, place{base.Epoch, base.Rev + 1}.name())
			overtaken := false
			slow := s.store(s.mem, 7, func(op vfstest.Op) error {
				last := (op.Kind == "link" || op.Kind == "rename") && strings.HasSuffix(filepath.ToSlash(op.New), place)
				if class == classes[1] { // under the lock nobody can come between: before it
					last = op.Kind == "link" && strings.HasSuffix(filepath.ToSlash(op.New), publishName+".lock")
				}
				if last && !overtaken {
					overtaken = true
					return s.store(s.mem, 9, nil).Swap(t.Context(), base, theirs)
				}
				return nil
			})
			if err := slow.Swap(t.Context(), base, mine); !errors.Is(err, grant.ErrConflict) || !overtaken {
				t.Fatalf("overtaken %t: %v", overtaken, err)
			}
			for pid := range int64(2) {
				head, err := s.store(s.mem, 7+2*pid, nil).Head(t.Context(), "atlas")
				if err != nil || head.Hash() != theirs.Hash() {
					t.Errorf("the head is %v, %v", head.Ref(), err)
				}
			}
		})
	}
}
