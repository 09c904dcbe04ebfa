package local

import (
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
)

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
